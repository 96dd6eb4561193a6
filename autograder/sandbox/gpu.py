"""The device nodes of one GPU: its own, the driver's control node, and unified memory's; no tools, no capabilities."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from autograder.errors import SandboxError

SHARED = ("/dev/nvidiactl", "/dev/nvidia-uvm")
FOLDER = Path("/proc/driver/nvidia/gpus")
"""Where the driver lists its GPUs, each in a folder named by its place on the bus."""
_FACT = re.compile(r"^(GPU UUID|Device Minor):\s*(\S+)", re.MULTILINE)


class _Gpu(NamedTuple):
    """A GPU as the driver lists it: its UUID, the number in the name of its node, and its place on the bus."""

    uuid: str
    minor: str
    bus: str


def nodes(environ: Mapping[str, str] = os.environ, gpus: Path = FOLDER) -> tuple[str, ...]:
    """The nodes of the GPU that this process works with.

    Raises:
        SandboxError: there is none, or `CUDA_VISIBLE_DEVICES` does not say which of several.
    """
    return (f"/dev/nvidia{_the_one(environ, gpus).minor}", *SHARED)


def uuid(environ: Mapping[str, str] = os.environ, gpus: Path = FOLDER) -> str:
    """The name of the GPU that this process works with; raises what `nodes` raises."""
    return _the_one(environ, gpus).uuid


def bus(environ: Mapping[str, str] = os.environ, gpus: Path = FOLDER) -> str:
    """The place on the bus of the GPU that this process works with; raises what `nodes` raises."""
    return _the_one(environ, gpus).bus


def buses(gpus: Path = FOLDER) -> list[str]:
    """The places of all GPUs of this machine, in order."""
    return [one.bus for one in _all(gpus)]


def _the_one(environ: Mapping[str, str], gpus: Path) -> _Gpu:
    there = _all(gpus)
    wanted = environ.get("CUDA_VISIBLE_DEVICES", "")
    if len(there) > 1 or wanted.startswith("GPU-"):
        there = [one for one in there if wanted and one.uuid.startswith(wanted)]
    if len(there) != 1:
        raise SandboxError(
            "set CUDA_VISIBLE_DEVICES to the UUID of the one GPU to grade on (`nvidia-smi -L` lists them)"
        )
    return there[0]


def _all(gpus: Path) -> list[_Gpu]:
    found = []
    for path in sorted(gpus.glob("*/information")):
        facts = dict(_FACT.findall(path.read_text(encoding="utf-8", errors="replace")))
        if "Device Minor" in facts:
            found.append(_Gpu(facts.get("GPU UUID", path.parent.name), facts["Device Minor"], path.parent.name))
    return found
