"""A noisy neighbour: processes of the same machine that copy memory and compute, on most of its cores.

Not on the same GPU: there a node measures alone (design §4, invariant 11).
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

LEFT_ALONE = 4
"""Cores that the neighbour leaves to the judge, the runners and the system; a node pins them."""

_COPIES = "a, b = bytearray(2**27), bytearray(2**27)\nwhile True: a[:] = b; b[:] = a"
_COMPUTES = "x = 1\nwhile True: x = x * 6364136223846793005 % 2**64 + 1"


@contextmanager
def neighbour() -> Iterator[None]:
    """Make noise until the end of the context."""
    count = max(1, (os.cpu_count() or 2) - LEFT_ALONE)
    commands = [_COPIES if number % 2 else _COMPUTES for number in range(count)]
    noise = [subprocess.Popen([sys.executable, "-I", "-S", "-c", command]) for command in commands]
    try:
        yield
    finally:
        for process in noise:
            process.kill()
            process.wait()
