"""Two versions' kernels as compiled, side by side: their numbers, and of which instructions there are more or fewer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from autograder.contract import CompiledFor, CompiledKernel
from autograder.listings import KernelListing, Listings, rows_of

MOST_INSTRUCTIONS = 40
"""Kinds of instructions that are shown of one kernel, those that changed most first."""


@dataclass(frozen=True)
class KernelChange:
    """One kernel as compiled for one target, in both versions; `None` where a version has none at its place."""

    target: str
    old: CompiledKernel | None
    new: CompiledKernel | None

    @property
    def any(self) -> CompiledKernel:
        """Whichever is there, for its name."""
        return self.new or self.old  # type: ignore[return-value]  # one of the two always is

    @property
    def numbers(self) -> tuple[tuple[int | None, int | None], ...]:
        """Older and newer of every number of `NUMBERS`."""
        return tuple((_number(self.old, name), _number(self.new, name)) for name in NUMBERS)


NUMBERS = ("registers", "spills", "stack_bytes", "shared_bytes", "wgmma", "tcgen05", "tma", "ldg128")


def _number(kernel: CompiledKernel | None, name: str) -> int | None:
    return None if kernel is None or kernel.message else getattr(kernel, name)


@dataclass(frozen=True)
class InstructionChange:
    """One kernel for one target: how many of each kind of instruction there were and are, where that changed."""

    target: str
    kernel: str
    case: str
    launch: int
    before: int
    after: int
    kinds: tuple[tuple[str, int, int], ...]


def compiled_changes(old: Sequence[CompiledFor], new: Sequence[CompiledFor]) -> tuple[KernelChange, ...]:
    """The kernels of both, those of one name at one launch of one case beside each other, in the newer one's order."""
    before, after = _by_place(old), _by_place(new)
    return tuple(
        KernelChange(place[0], *pair)
        for place in dict.fromkeys([*after, *before])
        for pair in zip_longest(before.get(place, []), after.get(place, []))
    )


def _by_place(compiled: Sequence[CompiledFor]) -> dict[tuple[str, str, str, int], list[CompiledKernel]]:
    found: dict[tuple[str, str, str, int], list[CompiledKernel]] = {}
    for one in compiled:
        for kernel in one.kernels:
            found.setdefault((one.target, kernel.kernel, kernel.case, kernel.launch), []).append(kernel)
    return found


def instruction_changes(old: Listings, new: Listings) -> Iterator[InstructionChange]:
    """The kernels that stand in both, in the newer one's order; those whose machine code counts alike are left out."""
    before = {_place(kernel): _kinds(kernel) for kernel in reversed(old.kernels)}
    for place, kernel in {_place(one): one for one in reversed(new.kernels)}.items():
        was, now = before.get(place), _kinds(kernel)
        if was and now and was != now:
            changed = [(kind, was[kind], now[kind]) for kind in was.keys() | now.keys() if was[kind] != now[kind]]
            changed.sort(key=lambda one: (-abs(one[2] - one[1]), one[0]))
            sums = was.total(), now.total()
            yield InstructionChange(new.target, *place, *sums, kinds=tuple(changed[:MOST_INSTRUCTIONS]))


def _place(kernel: KernelListing) -> tuple[str, str, int]:
    return kernel.kernel, kernel.case, kernel.launch


def _kinds(kernel: KernelListing) -> Counter[str]:
    """Mnemonics with their modifiers, without the predicates before them."""
    rows = (row.text.split() for row in rows_of(kernel.sass) if not row.text.endswith(":"))
    words = (next((word for word in row if not word.startswith("@")), "") for row in rows)
    return Counter(word for word in words if word)
