"""Which clock ranks a measurement, whether it stands, and what is impossible.

    what is found                             first time        again
    ratio's interval too wide, and the
      reference varies by as much             measure again     stands as it is, after two tries
    null disturbed by others                  measure again     stands likewise; nothing was taken off any batch
    reference unlike itself beside and after  measure again     stands
    sealed bound above the event clock        both sides rank by their sealed batches
    below 0.9 of the best verified time       measure again     stands
    below what the device can do              held              held

The event clock runs in the submission's process and can be forged; the sealed clock is the judge's. A batch of K
calls, less the shortest exchange that can be written, both without what copying the outputs takes, divided by K, is an
upper bound of one call: nobody's work is done before its inputs are there, nor after its outputs were copied. (But for
what a null's copies take longer than the batch's own: who slows those while the judge times them has so much off.) So
the event clock, ten times as precise, ranks if the bound lies within ε above it. Where it does not, the judge's own
clock ranks, and that is all: what takes longer when calls follow each other is honest, as when a call allocates memory,
and who says otherwise of a forged clock gains nothing by it.

Nobody is held but for a time that no device reaches.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from autograder import samples
from autograder.contract import Batch, Bound, Finding, FindingKind, Measurement
from autograder.judge.protocol.runner_client import CallReply
from autograder.judge.rules import Rules
from autograder.judge.timing.estimators import by_clock, by_samples, interval

MAX_REMEASURES = 2
"""A node's fault is worth so many tries; what is still too wide then stands with its interval."""

TOO_WIDE = "The times vary too much on this node."
DISTURBED = "Other work on this node made it impossible to bound the times."
UNSTEADY = "The reference's times during and after the submission differ: the node is not idle."
TOO_FAST = "The time is far below the best one that was verified."
BELOW_FLOOR = "The time is shorter than the device's data sheet allows."

_MIN_REST, _MIN_SHARE, _MAX_NAMED = 0.03, 0.1, 4
"""Of a call's time and of the device's rest, what is worth a word; and how many calls of CUDA are named."""

_STRETCHED = 0.1
"""Of the shortest of the reference's batches: by less do they differ on a quiet node (5 % were seen)."""

_MIN_US = 1e-3
"""What an event clock tells apart at best; samples of older judges may be 0."""


@dataclass(frozen=True)
class PriorAttempts:
    """What a request says of earlier attempts: best verified times by case, and how often it was measured again."""

    best_us: dict[str, float] = field(default_factory=dict)
    remeasured: int = 0


@dataclass(frozen=True)
class Batches:
    """Batches of `calls` calls of both sides, and the null exchanges of as many."""

    calls: int
    null_us: tuple[float, ...]
    submission: tuple[Batch, ...]
    reference: tuple[Batch, ...]


def bound(scored_us: float, taken: Batches, limit: float) -> Bound:
    """What the sealed clock allows beside the time that would count, `scored_us`: an excess of at most `limit`."""
    sealed_us = sealed_call_us(taken.submission, taken.null_us, taken.calls)
    excess = sealed_us / max(scored_us, _MIN_US) - 1
    return Bound(
        calls=taken.calls,
        batches=taken.submission,
        reference_batches=taken.reference,
        null_us=taken.null_us,
        sealed_us=sealed_us,
        excess=excess,
        epsilon=limit,
        bounded=excess <= limit,
    )


def widened(alone_us: float, taken: Batches, rules: Rules) -> float:
    """The limit of a case in which not even the reference alone is seen within ε.

    A device that works without pause is slower by what it must not use in power, and our own runner has its delays.
    """
    reference_excess = sealed_call_us(taken.reference, taken.null_us, taken.calls) / alone_us - 1
    return max(
        rules.min_excess(alone_us), min(reference_excess + rules.reference_excess_margin, rules.max_excess(alone_us))
    )


def scored_us(found: Measurement) -> float:
    """The time that the score amounts to: the ratio at the reference's own pace, or the event clock's, if shorter.

    The median of ratios is not the ratio of medians: who forges in some pairs and slows the reference in others moves
    the one and neither of the others.
    """
    alone_us = found.control.reference_us if found.control else found.reference_us
    return min(found.time_us, found.ratio * alone_us)


def sealed_call_us(batches: Sequence[Batch], null_us: Sequence[float], calls: int) -> float:
    """An upper bound of one call's time in microseconds: the shortest batch less the shortest null, by calls."""
    return (min(batch.sealed_us for batch in batches) - min(null_us)) / calls


def judge_measurement(found: Measurement, asked: PriorAttempts, rules: Rules) -> Measurement:
    """Decide which clock ranks, and whether the measurement stands, is held, or is to be repeated."""
    found = _counted(found)
    for step in (_width, _aa_check, _best, _floor):
        found = step(found, asked, rules)
    return found


def disturbed(found: Measurement, asked: PriorAttempts) -> Measurement:
    """The same where the null was disturbed: that is the node's fault, as it is where times vary too much."""
    return _nodes_fault(found, asked, DISTURBED)


def note(found: Measurement, traced: CallReply | None) -> str:
    """What is said to the student where the event clock does not rank: what the difference is.

    Args:
        traced: a call after the timed ones, as the runner claims it was.
    """
    if found.clock not in {samples.BATCHES, samples.BOUND} or found.bound is None:
        return ""
    alone_us, in_a_row_us = by_samples(found, samples.EVENT).time_us, found.bound.sealed_us
    said = (
        f"Calls in a row take {in_a_row_us:.0f} µs each by the judge's clock; a single call takes {alone_us:.0f} µs by "
        "the device's clock. The judge's clock ranks here, for the reference too."
    )
    rest = 1 - traced.busy_us / in_a_row_us if traced and traced.busy_us else 0.0
    if traced is None or rest < _MIN_REST:
        return said
    said += f" The device is idle for {rest:.0%} of the time"
    total_ns = sum(one.ns for one in traced.waited_for)
    names = [one.name for one in traced.waited_for if one.ns >= _MIN_SHARE * total_ns][:_MAX_NAMED]
    return f"{said}, while your call is on the host: {', '.join(names)}." if names else f"{said}."


def findings(found: Iterable[Measurement]) -> tuple[Finding, ...]:
    """One for every measurement that is held."""
    return tuple(_finding(one) for one in found if one.held)


def _counted(found: Measurement) -> Measurement:
    """By the clock that can be believed."""
    clock = clock_of(found)
    if clock == found.clock:
        return found
    found = dataclasses.replace(found, clock=clock)
    return samples.counted(found, samples.pooled((found,)))


def clock_of(found: Measurement) -> str:
    """The event clock within ε of the bound; beyond it the sealed batches of both sides.

    Of the submission only, where it is so slow that its batches have fewer calls, as an exchange is nothing beside
    those; or where the reference's calls are so brief that nothing is left of its batches without the null.
    """
    limit = found.bound
    if limit is None or limit.bounded:
        return found.clock
    return samples.BATCHES if samples.reference_call_us(limit) > 0 else samples.BOUND


def _width(found: Measurement, asked: PriorAttempts, rules: Rules) -> Measurement:
    """Where the reference varies as well, it is the node; a submission that varies by itself stands as it is."""
    # Of one that is far slower nobody asks how wide: it had no second stage either.
    wide = (
        found.ratio <= rules.max_ratio_for_full_sampling
        and found.ratio_high - found.ratio_low > rules.max_interval_width * found.ratio
    )
    return _nodes_fault(found, asked, TOO_WIDE) if wide and _varies(found, rules) else found


def _varies(found: Measurement, rules: Rules) -> bool:
    """Whether the reference alone, or its batches where those rank, vary by more than an interval may be wide."""
    if found.clock == samples.BATCHES and found.bound is not None:
        taken = samples.calls_us(found.bound, found.bound.reference_batches)
        return max(taken) > (1 + _STRETCHED) * min(taken)
    if found.control is None:
        return True
    low, high = interval(
        [by_clock(pair, found.clock)[0] / by_clock(pair, found.clock)[1] for pair in found.control.pairs]
    )
    return high - low > rules.max_interval_width


def _aa_check(found: Measurement, asked: PriorAttempts, _: Rules) -> Measurement:
    """Where pairs rank, the reference has to be as fast beside the submission as by itself."""
    control = found.control
    if control is None or found.clock in {samples.BATCHES, samples.BOUND}:
        return found
    steady = control.agrees and abs(control.ratio - 1) <= control.tolerance
    return found if steady or asked.remeasured else _remeasure(found, UNSTEADY)


def _best(found: Measurement, asked: PriorAttempts, rules: Rules) -> Measurement:
    best_us = asked.best_us.get(found.case, 0.0)
    soon = not asked.remeasured and found.time_us < rules.soft_floor * best_us
    return _remeasure(found, TOO_FAST) if soon else found


def _floor(found: Measurement, _: PriorAttempts, __: Rules) -> Measurement:
    return dataclasses.replace(found, held=BELOW_FLOOR) if found.time_us < found.floor_us else found


def _nodes_fault(found: Measurement, asked: PriorAttempts, reason: str) -> Measurement:
    """Worth `MAX_REMEASURES` more tries; then it stands."""
    return _remeasure(found, reason) if asked.remeasured < MAX_REMEASURES else found


def _remeasure(found: Measurement, reason: str) -> Measurement:
    return dataclasses.replace(found, remeasure=found.remeasure or reason)


def _finding(found: Measurement) -> Finding:
    evidence = {"case": found.case, "time": f"{found.time_us:.1f} µs beside {found.reference_us:.1f} µs"}
    if found.bound:
        evidence["sealed"] = f"{found.bound.sealed_us:.1f} µs by {found.bound.calls} calls, ε {found.bound.excess:.3f}"
    evidence["floor"] = f"{found.floor_us:.1f} µs"
    return Finding(FindingKind.below_floor, found.held, evidence)
