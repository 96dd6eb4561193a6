"""A noisy neighbour: processes of the same machine that copy memory and compute, on most of its cores.

On a machine with a GPU one more copies over PCIe (`pcie.py`). Nobody computes on the judge's GPU: there a node measures
alone (design §4, invariant 11).
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

LEFT_ALONE = 4
"""Cores that the neighbour leaves to the judge, the runners and the system; a node pins them."""

PCIE = Path(__file__).with_name("pcie.py")
_COPIES = "a, b = bytearray(2**27), bytearray(2**27)\nwhile True: a[:] = b; b[:] = a"
_COMPUTES = "x = 1\nwhile True: x = x * 6364136223846793005 % 2**64 + 1"


@contextmanager
def neighbour(*, pcie: bool = False) -> Iterator[None]:
    """Make noise until the end of the context.

    Args:
        pcie: on the bus too; returns when something crosses it.
    """
    count = max(1, (os.cpu_count() or 2) - LEFT_ALONE)
    commands = [_COPIES if number % 2 else _COMPUTES for number in range(count)]
    with ExitStack() as noise:
        if pcie:
            _wait(noise.enter_context(_alive([sys.executable, "-P", str(PCIE)], _seeing_all())))
        for command in commands:
            noise.enter_context(_alive([sys.executable, "-I", "-S", "-c", command]))
        yield


@contextmanager
def _alive(command: list[str], environ: dict[str, str] | None = None) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def _seeing_all() -> dict[str, str]:
    """All GPUs of the machine, not the judge's alone."""
    return {name: text for name, text in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}


def _wait(process: subprocess.Popen[bytes]) -> None:
    """Until it copies; one that died makes no noise, and what is measured beside it would say nothing."""
    if process.stdout is None or process.stdout.readline() != b"copying\n":
        raise RuntimeError(f"the neighbour on PCIe ended with status {process.wait()}")
