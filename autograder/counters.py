"""What is counted of one call where there is no GPU: the counters, what is worked out from them, a sentence on each.

A counter that Nsight Compute has too is called as there, without the `.sum` of its totals. What is no quantity of its
has a name of ours.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from autograder.contract import Counted, FindingKind, GradeResult, RequirementResult

SECTOR_BYTES = 32
COUNTED_BY = ("emulator", "interpreter")
"""What counts; a requirement names one as its target."""
FIGURES = ("launches", "traffic", "bank_conflicts")
"""What a requirement may compare: totals of the whole call, which nothing that a kernel does besides makes smaller."""
MOST = 10**15
"""No call counts further; a runner may claim any number."""
_ELSEWHERE = frozenset({
    FindingKind.no_kernel, FindingKind.decoration, FindingKind.library_call, FindingKind.no_replay,
})  # fmt: skip
"""Findings that say, or leave open, that what was counted is not what does the work."""


@dataclass(frozen=True)
class Counter:
    """One of them.

    Attributes:
        title: in a few words.
        about: a sentence on what it says.
    """

    title: str
    about: str


_REQUESTS = "A load or store that the lanes of a warp do together is one request."
COUNTERS: Mapping[str, Counter] = {
    "launches": Counter("Kernel launches", "Each launch costs microseconds before its first thread runs."),
    "traffic": Counter(
        "Global traffic, % of the least possible",
        "All sectors of 32 bytes that were asked for, beside the bytes that the exercise cannot do without.",
    ),
    "bank_conflicts": Counter(
        "Shared-memory bank conflicts",
        "How often shared memory had to be asked once more, because lanes wanted different words of one bank.",
    ),
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld": Counter("Global load requests", _REQUESTS),
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld": Counter(
        "Global load sectors",
        "Sectors of 32 bytes that load requests touch; 4 a request for coalesced floats.",
    ),
    "load_sectors_excess": Counter(
        "Excess load sectors",
        "Sectors beyond those that the bytes of each request would fill if they lay together.",
    ),
    "l1tex__t_requests_pipe_lsu_mem_global_op_st": Counter("Global store requests", _REQUESTS),
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st": Counter(
        "Global store sectors",
        "Sectors of 32 bytes that store requests touch; 4 a request for coalesced floats.",
    ),
    "store_sectors_excess": Counter(
        "Excess store sectors",
        "Sectors beyond those that the bytes of each request would fill if they lay together.",
    ),
    "atomic_requests": Counter("Global atomic requests", "Atomics that a warp does together are one request."),
    "atomic_sectors": Counter("Global atomic sectors", "Sectors of 32 bytes that atomics touch."),
    "shared_load_requests": Counter("Shared load requests", "Loads from shared memory, a warp's together."),
    "shared_store_requests": Counter("Shared store requests", "Stores to shared memory, a warp's together."),
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld": Counter(
        "Bank conflicts of loads", "Each one is a further cycle of shared memory; a padded or swizzled tile has none."
    ),
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st": Counter(
        "Bank conflicts of stores", "Each one is a further cycle of shared memory; a padded or swizzled tile has none."
    ),
    "copied_bytes": Counter("Bytes copied by the host", "Bytes of device memory that copies and fills read or write."),
    "atomic_bytes": Counter("Bytes of atomics", "Bytes that atomics of programs change."),
    "load_bytes": Counter("Bytes loaded", "Bytes that programs load from the tensors, masked lanes left out."),
    "store_bytes": Counter("Bytes stored", "Bytes that programs store to the tensors, masked lanes left out."),
    "load_sectors": Counter("Load sectors", "Sectors of 32 bytes that each load of each program touches, added up."),
    "store_sectors": Counter("Store sectors", "Sectors of 32 bytes that each store of each program touches, added up."),
}
"""Those of all that count, by name, in the order of lists."""
_SECTORS = tuple(name for name in COUNTERS if "sectors" in name and "excess" not in name)
_CONFLICTS = tuple(name for name in COUNTERS if "bank_conflicts_" in name)


def capped(claimed: Mapping[str, int]) -> dict[str, int]:
    """A runner's counters as numbers that can be."""
    return {name: min(max(count, 0), MOST) for name, count in claimed.items()}


def figures_of(counters: Mapping[str, int], least_bytes: float) -> dict[str, int]:
    """What requirements compare; a figure that cannot be had from these counters is left out.

    Args:
        least_bytes: that the exercise moves, by its own formula.
    """
    moved = SECTOR_BYTES * sum(counters.get(name, 0) for name in _SECTORS) + counters.get("copied_bytes", 0)
    found = {"launches": counters.get("launches", 0)}
    if least_bytes > 0:
        found["traffic"] = math.ceil(100 * moved / least_bytes)
    if any(name in counters for name in _CONFLICTS):
        found["bank_conflicts"] = sum(counters.get(name, 0) for name in _CONFLICTS)
    return found


def points_of(results: Iterable[RequirementResult]) -> float:
    """What the counters of a call are worth, where they give the speed points."""
    return math.fsum(one.points for one in results if one.met)


def doubt_of(result: GradeResult) -> str:
    """Why points by its counters wait for staff; `""` where they need not: counters are claims of the runner's."""
    if not result.counted:
        return ""
    elsewhere = [one.summary for one in result.findings if one.kind in _ELSEWHERE]
    return " ".join(dict.fromkeys([*(one.doubt for one in result.counted if one.doubt), *elsewhere]))


def told(found: Counted) -> list[tuple[str, str, int]]:
    """Title, sentence and value of each of its figures and counters that there is something to say of."""
    values = {**found.counters, **found.figures}
    return [(one.title, one.about, values[name]) for name, one in COUNTERS.items() if name in values]
