"""Numbers in a cubin, by the tools that come with triton: `cuobjdump` for resources, `nvdisasm` for instructions.

The bytes may be anything at all. Reading them is done in a runner of its own, which holds nothing but them. Standard
library only: that runner imports no triton, it only has its tools.
"""

from __future__ import annotations

import functools
import importlib.util
import re
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from autograder.compile_checks.messages import Reading

_TOOL_S = 20.0
_RESOURCES = re.compile(r"\bREG:(\d+)\b.*?\bSTACK:(\d+)\b.*?\bSHARED:(\d+)\b")
_INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)")
_KEPT = re.compile(r"\s*(?://##|/\*[0-9a-f]+\*/|\.L_x_\d+:)")
"""Lines that say which instructions there are and where they came from."""
_KINDS = {
    "spills": re.compile(r"(?:LDL|STL)(?:\.|$)"),
    "wgmma": re.compile(r"[HIQB]GMMA(?:\.|$)"),
    "tcgen05": re.compile(r"UT[A-Z]*MMA(?:\.|$)"),
    "tma": re.compile(r"U(?:TMA|BLK)(?:LDG|STG|REDG|CP|PF|RED)\w*(?:\.|$)"),
}
"""Mnemonics: wgmma is HGMMA (floating point), IGMMA, QGMMA (fp8), BGMMA; tcgen05.mma is UTCHMMA, UTCQMMA, …; TMA is
UTMALDG, UTMASTG, UTMAREDG and the bulk copies UBLKCP, UBLKRED."""


def resources(cubin: bytes) -> Reading:
    """Registers, stack and static shared memory of the cubin's first function; not readable where there is none."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        return _resources(file.name)


def read(cubin: bytes) -> Reading:
    """Everything that is a number."""
    return disassembled(cubin)[0]


def disassembled(cubin: bytes) -> tuple[Reading, str]:
    """Everything, and the instructions with the lines of the source that they came from."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        used = _resources(file.name)
        if not used.readable:
            return used, ""
        lines = _lines("nvdisasm", "-c", "-gi", file.name)
    reading = Reading(True, used.registers, used.stack_bytes, shared_bytes=used.shared_bytes, **count(lines))
    return reading, "\n".join(line for line in lines if _KEPT.match(line))


def count(lines: Iterable[str]) -> dict[str, int]:
    """Instructions of each kind in nvdisasm's text."""
    counts = dict.fromkeys(_KINDS, 0)
    for line in lines:
        found = _INSTRUCTION.match(line)
        if found is None:
            continue
        for kind, pattern in _KINDS.items():
            counts[kind] += pattern.match(found[1]) is not None
    return counts


def _resources(path: str) -> Reading:
    text = "\n".join(_lines("cuobjdump", "-res-usage", path))
    found = _RESOURCES.search(text)
    if found is None:
        return Reading(readable=False)
    registers, stack, shared = (int(number) for number in found.groups())
    return Reading(True, registers, stack, shared_bytes=shared)


@functools.cache
def _tools() -> Path:
    """Where triton's package has its tools."""
    found = importlib.util.find_spec("triton")
    places = found.submodule_search_locations if found else None
    if not places:
        raise FileNotFoundError("triton is not installed")
    return Path(places[0]) / "backends" / "nvidia" / "bin"


def _lines(tool: str, *arguments: str) -> list[str]:
    """What a tool prints; nothing where it fails or takes too long."""
    try:
        done = subprocess.run([_tools() / tool, *arguments], capture_output=True, timeout=_TOOL_S, check=False)
    except subprocess.TimeoutExpired:
        return []
    return done.stdout.decode(errors="replace").splitlines()
