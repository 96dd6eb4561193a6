"""The device nodes of one GPU: its own, the driver's control node, and unified memory's; no tools, no capabilities."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from autograder.errors import SandboxError

SHARED = ("/dev/nvidiactl", "/dev/nvidia-uvm")
_GPUS = Path("/proc/driver/nvidia/gpus")
_FACT = re.compile(r"^(GPU UUID|Device Minor):\s*(\S+)", re.MULTILINE)


def nodes(environ: Mapping[str, str] = os.environ, gpus: Path = _GPUS) -> tuple[str, ...]:
    """The nodes of the GPU that this process works with.

    Raises:
        SandboxError: there is none, or `CUDA_VISIBLE_DEVICES` does not say which of several.
    """
    return (f"/dev/nvidia{_the_one(environ, gpus)[1]}", *SHARED)


def uuid(environ: Mapping[str, str] = os.environ, gpus: Path = _GPUS) -> str:
    """The name of the GPU that this process works with; raises what `nodes` raises."""
    return _the_one(environ, gpus)[0]


def _the_one(environ: Mapping[str, str], gpus: Path) -> tuple[str, str]:
    """Its UUID and the number in the name of its node."""
    minors = _minors(gpus)
    wanted = environ.get("CUDA_VISIBLE_DEVICES", "")
    if len(minors) > 1 or wanted.startswith("GPU-"):
        minors = {uuid: minor for uuid, minor in minors.items() if wanted and uuid.startswith(wanted)}
    if len(minors) != 1:
        raise SandboxError(
            "set CUDA_VISIBLE_DEVICES to the UUID of the one GPU to grade on (`nvidia-smi -L` lists them)"
        )
    return next(iter(minors.items()))


def _minors(gpus: Path) -> dict[str, str]:
    """The number in the name of each GPU's node, by the GPU's UUID."""
    found = {}
    for path in sorted(gpus.glob("*/information")):
        facts = dict(_FACT.findall(path.read_text(encoding="utf-8", errors="replace")))
        if "Device Minor" in facts:
            found[facts.get("GPU UUID", path.parent.name)] = facts["Device Minor"]
    return found
