"""Whether a profiled call did what a rung asks of it: its launches, the instructions it executed, the bytes it moved.

Trace and counters are claims of the submission's own processes (`probes.profiling`), so no points hang on
this. Kernels that were not counted can only add to a number: what is exceeded already, or reached already, is told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from autograder.assignment import Assignment, RunRequirement
from autograder.contract import Lane, RequirementResult
from autograder.judge.compile.requirements import AT_LEAST, COMPARE, rule_of
from autograder.judge.probes.work_findings import LIBRARIES
from autograder.profiles import Figure, Mix, Profile, SpanKind

_ALL = 0.99
"""From this share of the device's time on, counted kernels are the whole call."""


@dataclass(frozen=True)
class _Found:
    """A number of the call; where it is not `whole` it may be larger."""

    value: float
    whole: bool


def evaluate(assignment: Assignment, lane: Lane, profile: Profile) -> tuple[RequirementResult, ...]:
    """Every requirement on the profiled case."""
    return tuple(
        _one(assignment, asked, lane, profile) for asked in assignment.run_requirements if asked.case == profile.case
    )


def _one(assignment: Assignment, asked: RunRequirement, lane: Lane, profile: Profile) -> RequirementResult:
    told = {name: _told(assignment, name, bound, profile) for name, bound in asked.bounds.items()}
    verdicts = {met for met, _ in told.values()}
    met = False if False in verdicts else None if None in verdicts else True
    message = " ".join(said for one, said in told.values() if one is met)
    return RequirementResult(asked.name, asked.about, lane.value, rule_of(asked), met, message)


def _told(assignment: Assignment, name: str, bound: tuple[str, int], profile: Profile) -> tuple[bool | None, str]:
    sign, number = bound
    found = _READ[name](assignment, profile) if name in _READ else _executed(profile, Mix[name])
    if found is None:
        return None, f"`{name}` was not counted: {_why(name, profile)}"
    met = _met(sign, number, found)
    if met is None:
        return None, f"`{name}` is {found.value:,.0f} at least; not every kernel was counted."
    return met, f"`{name}` is {found.value:,.0f}."


def _met(sign: str, number: int, found: _Found) -> bool | None:
    """Whether it holds, whatever the rest of the call adds; `None` where that decides."""
    met = COMPARE[sign](found.value, number)
    if found.whole:
        return met
    if sign in AT_LEAST:
        return met or None
    return False if (found.value > number if sign == "==" else not met) else None


def _why(name: str, profile: Profile) -> str:
    part = "trace" if name in _TRACED else "counters"
    return profile.missing.get(part) or "the profile has nothing of it."


def _executed(profile: Profile, kind: Mix) -> _Found | None:
    counted = [kernel for kernel in profile.kernels if kernel.mix]
    if not counted:
        return None
    value = profile.of_call(counted, lambda kernel: kernel.mix.get(kind.value, 0))
    return _Found(value, _covered(sum(kernel.share for kernel in counted)))


def _traffic(_: Assignment, profile: Profile) -> _Found | None:
    both = (Figure.dram_read_bytes, Figure.dram_written_bytes)
    counted = [kernel for kernel in profile.kernels if all(kernel.figure(figure) is not None for figure in both)]
    if not counted or not profile.bytes_moved:
        return None
    moved = profile.of_call(counted, lambda kernel: sum(kernel.figure(figure) or 0.0 for figure in both))
    return _Found(100 * moved / profile.bytes_moved, _covered(sum(kernel.share for kernel in counted)))


def _covered(share: float) -> bool:
    return share >= _ALL


def _names(profile: Profile) -> list[str]:
    return [span.name for span in profile.timeline.spans if span.kind is SpanKind.kernel]


def _launches(_: Assignment, profile: Profile) -> _Found | None:
    line = profile.timeline
    return _Found(len(_names(profile)), not line.left_out) if line.call_ns else None


def _library(assignment: Assignment, profile: Profile) -> _Found | None:
    line = profile.timeline
    listed = assignment.library_kernels
    found = [name for name in _names(profile) if LIBRARIES.search(name) or any(word in name for word in listed)]
    return _Found(len(found), not line.left_out) if line.call_ns else None


_TRACED: Mapping[str, Callable[[Assignment, Profile], _Found | None]] = {
    "launches": _launches,
    "library_kernels": _library,
}
_READ: Mapping[str, Callable[[Assignment, Profile], _Found | None]] = {**_TRACED, "traffic": _traffic}
