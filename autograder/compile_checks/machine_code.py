"""Numbers in a cubin, by the tools that come with triton: `cuobjdump` for resources, `nvdisasm` for instructions.

The bytes may be anything at all. Reading them is done in a runner of its own, which holds nothing but them. Standard
library only: that runner imports no triton, it only has its tools.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from autograder.compile_checks import amdgcn
from autograder.compile_checks.child import BACKSTOP
from autograder.compile_checks.messages import Reading

_TOOL_S = 20
"""Of a processor."""
_RESOURCES = re.compile(r"\bREG:(\d+)\b.*?\bSTACK:(\d+)\b.*?\bSHARED:(\d+)\b")
_FUNCTION = re.compile(r"\s*Function (\S+):\s*$")
_SECTION = re.compile(r"\s*\.section\s+\.text\.([^\s,]+),")
_INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)")
_KEPT = re.compile(r"\s*(?://##|/\*[0-9a-f]+\*/|\.L_x_\d+:)")
"""Lines that say which instructions there are and where they came from."""
_KINDS = {
    "spills": re.compile(r"(?:LDL|STL)(?:\.|$)"),
    "wgmma": re.compile(r"[HIQB]GMMA(?:\.|$)"),
    "imma": re.compile(r"(?:I|IG|UTCI)MMA(?:\.|$)"),
    "tcgen05": re.compile(r"UT[A-Z]*MMA(?:\.|$)"),
    "tma": re.compile(r"U(?:TMA|BLK)(?:LDG|STG|REDG|CP|PF|RED)\w*(?:\.|$)"),
    "ldg128": re.compile(r"LDG(?:\.\w+)*\.(?:128|256)(?:\.|$)"),
}
"""Mnemonics: wgmma is HGMMA (floating point), IGMMA, QGMMA (fp8), BGMMA; imma is every product of
integers on tensor cores, IMMA, IGMMA and UTCIMMA; tcgen05.mma is UTCHMMA, UTCQMMA, …; TMA is
UTMALDG, UTMASTG, UTMAREDG and the bulk copies UBLKCP, UBLKRED; Blackwell has loads of 256 bits too."""


def resources(cubin: bytes) -> Reading:
    """Registers, stack and static shared memory of the cubin's first function; not readable where there is none."""
    return next(iter(resources_of_all(cubin).values()), Reading(readable=False))


def resources_of_all(cubin: bytes) -> dict[str, Reading]:
    """The same of every function, by its symbol."""
    with _file(cubin) as path:
        return _resources(path)


def read(cubin: bytes) -> Reading:
    """Everything that is a number, of the first function."""
    return disassembled(cubin)[0]


def disassembled(cubin: bytes) -> tuple[Reading, str]:
    """Everything of the first function, and its instructions with the lines of the source that they came from."""
    return next(iter(all_disassembled(cubin).values()), (Reading(readable=False), ""))


def all_disassembled(cubin: bytes) -> dict[str, tuple[Reading, str]]:
    """The same of every function, by its symbol; of assembly for AMD's devices too."""
    if amdgcn.is_assembly(cubin):
        return amdgcn.all_read(cubin)
    with _file(cubin) as path:
        used = _resources(path)
        # No analysis of data flow: it names targets on a stack that no GPU since 2017 has, and takes a third.
        lines = _by_function(_lines("nvdisasm", "-c", "-gi", "-ndf", path), list(used)) if used else {}
    return {name: _both(reading, lines.get(name, [])) for name, reading in used.items()}


def _both(used: Reading, lines: list[str]) -> tuple[Reading, str]:
    reading = Reading(True, used.registers, used.stack_bytes, shared_bytes=used.shared_bytes, **count(lines))
    return reading, "\n".join(line for line in lines if _KEPT.match(line))


def _by_function(lines: Iterable[str], names: Sequence[str]) -> dict[str, list[str]]:
    """The lines of each function's section."""
    found: dict[str, list[str]] = {name: [] for name in names}
    current: list[str] = []
    for line in lines:
        if (section := _SECTION.match(line)) is not None:
            current = found.get(section[1], [])
        current.append(line)
    return found


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


def _resources(path: str) -> dict[str, Reading]:
    found: dict[str, Reading] = {}
    name = ""
    for line in _lines("cuobjdump", "-res-usage", path):
        if (function := _FUNCTION.match(line)) is not None:
            name = function[1]
        elif name and (numbers := _RESOURCES.search(line)) is not None:
            registers, stack, shared = (int(number) for number in numbers.groups())
            found[name] = Reading(True, registers, stack, shared_bytes=shared)
    return found


@contextlib.contextmanager
def _file(cubin: bytes) -> Iterator[str]:
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        yield file.name


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
    held_short = ["/bin/sh", "-c", f'ulimit -t {_TOOL_S} && exec "$0" "$@"', str(_tools() / tool)]
    try:
        done = subprocess.run([*held_short, *arguments], capture_output=True, timeout=BACKSTOP * _TOOL_S, check=False)
    except subprocess.TimeoutExpired:
        return []
    return done.stdout.decode(errors="replace").splitlines()
