"""Numbers in the assembly that triton's compiler makes for AMD's devices. Standard library only.

The text may be anything at all; it is read in the runner that reads cubins. What it says of a kernel stands in its
metadata (LLVM's user guide for AMDGPU, *code object v3 and later*), its instructions between its label and its end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from autograder.compile_checks.messages import MOST_KERNELS, Reading

_MOST_OF_A_LINE = 1000

_NAME = re.compile(r"\s+\.name:\s+(\S+)\s*$")
_NUMBER = re.compile(
    r"\s+(?:- )?\.(group_segment_fixed_size|private_segment_fixed_size|vgpr_count|vgpr_spill_count):\s+(\d{1,9})\s*$"
)
_ITEM = re.compile(r"  - \.")
_LABEL = re.compile(r"\.(LBB\w+):")
_LOC = re.compile(r"\s*\.loc\s")
_PLACE = re.compile(r"([^\s\[\];]+):(\d{1,6}):\d+")
_INSTRUCTION = re.compile(r"\t([a-z]\w+)\b([^;]*)")
_KINDS = {
    "spills": re.compile(r"scratch_(?:load|store)_"),
    "mfma": re.compile(r"v_s?mfmac?_"),
    "ldg128": re.compile(r"(?:global|buffer|flat)_load_(?:lds_)?(?:dwordx4|b128)$"),
}
"""Mnemonics: MFMA is the product of tiles by one wavefront, `v_smfmac` its sparse form."""


def is_assembly(code: bytes) -> bool:
    """Whether it is what this module reads, and no cubin."""
    return code.lstrip().startswith(b".amdgcn_target")


def all_read(code: bytes) -> dict[str, tuple[Reading, str]]:
    """Every kernel by its symbol: numbers, and its instructions as `nvdisasm` writes them, with their lines."""
    lines = [line[:_MOST_OF_A_LINE] for line in code.decode("utf-8", "replace").split("\n")]
    found = islice(_metadata(lines), MOST_KERNELS)
    return {name: _both(numbers, _body(lines, name)) for name, numbers in found}


def _both(numbers: dict[str, int], body: Sequence[str]) -> tuple[Reading, str]:
    found = [instruction for line in body if (instruction := _INSTRUCTION.match(line))]
    counts = {kind: sum(bool(pattern.match(one[1])) for one in found) for kind, pattern in _KINDS.items()}
    reading = Reading(
        readable=True,
        registers=numbers.get("vgpr_count", 0),
        stack_bytes=numbers.get("private_segment_fixed_size", 0),
        shared_bytes=numbers.get("group_segment_fixed_size", 0),
        **counts,
    )
    return reading, "\n".join(_told(body))


def _metadata(lines: Sequence[str]) -> Iterator[tuple[str, dict[str, int]]]:
    """Name and numbers of every kernel of the metadata's list."""
    name, numbers = "", dict[str, int]()
    inside = False
    for line in lines:
        if line.startswith("amdhsa.kernels:"):
            inside = True
        elif inside and (line.startswith("amdhsa.") or _ITEM.match(line)):
            if name:
                yield name, numbers
            name, numbers = "", {}
            inside = not line.startswith("amdhsa.")
        if inside and (found := _NUMBER.match(line)):
            numbers[found[1]] = int(found[2])
        elif inside and (found := _NAME.match(line)):
            # Arguments have names too, and come first.
            name = found[1]
    if name:
        yield name, numbers


def _body(lines: Sequence[str], name: str) -> list[str]:
    start = next((number for number, line in enumerate(lines) if line.startswith(f"{name}:")), len(lines))
    end = next((number for number in range(start, len(lines)) if lines[number].startswith(".Lfunc_end")), len(lines))
    return list(lines[start:end])


def _told(body: Sequence[str]) -> Iterator[str]:
    for number, line in enumerate(body):
        if _LOC.match(line):
            places = _PLACE.findall(line.partition(";")[2])
            yield "\t//## " + " ".join(f'File "{path}", line {row}' for path, row in places)
        elif found := _INSTRUCTION.match(line):
            yield f"        /*{number:04x}*/                   {found[1]}{found[2].rstrip()} ;"
        elif found := _LABEL.match(line):
            yield f"{found[1]}:"
