"""Does a measurement stand? What both clocks, the A/A block and the data sheet say, put together.

    what is found                             first time        again
    ratio's interval too wide                 measure again     stands as it is
    null disturbed by others                  measure again     stands; nothing was taken off any batch
    reference slower beside the submission    measure again     held; its time after the kill counts at once
      and the ratio not borne by the bound
    … both slower, or reference unlike itself measure again     stands
    sealed bound above the event clock        measure again     held; the sealed number ranks at once
    … and the reference's about as far        the sealed numbers of both rank: this node cannot bound the case
    below 0.9 of the best verified time       measure again     stands
    below what the device can do              held              held

The event clock runs in the submission's process and can be forged; the sealed clock is the judge's. A batch of K
calls, less the shortest exchange that can be written, both without what copying the outputs takes, divided by K, is an
upper bound of one call: nobody's work is done before its inputs are there, nor after its outputs were copied. (But for
what a null's copies take longer than the batch's own: who slows those while the judge times them has so much off.) So
the event clock ranks if the bound lies within ε above it; where the reference, alone, is not seen within ε either,
within a little more than the reference is.

Whatever a neighbour can do to a measurement leads to *measure again*; nobody is held for the first of anything but a
time that no device reaches.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from autograder import samples
from autograder.contract import Batch, Bound, Finding, FindingKind, Measurement
from autograder.judge.rules import Rules

MOST_REMEASURES = 2
"""A node's fault is worth so many tries; what is still too wide then stands with its interval."""

TOO_WIDE = "The times vary too much on this node."
DISTURBED = "Others used this node, so that nothing could bound the times."
SLOWED = "The reference was slower beside the submission than after it."
UNSTEADY = "The reference's times beside the submission and after it differ: the node is not quiet."
DISAGREE = "The times that the submission's process reported are shorter than the judge's own clock allows."
TOO_FAST = "The time is far below the best one that was verified."
BELOW_FLOOR = "The time is shorter than what the device can do by its data sheet."

_LEAST_US = 1e-3
"""What an event clock tells apart at best; samples of older judges may be 0."""

_KINDS = {
    SLOWED: FindingKind.slowed_reference,
    DISAGREE: FindingKind.clock_disagreement,
    BELOW_FLOOR: FindingKind.below_floor,
}


@dataclass(frozen=True)
class Asked:
    """What a request says of earlier attempts: best verified times by case, and how often it was measured again."""

    best_us: dict[str, float] = field(default_factory=dict)
    remeasured: int = 0


@dataclass(frozen=True)
class Batches:
    """Batches of `calls` calls of both sides, and the null exchanges of as many."""

    calls: int
    null_us: tuple[float, ...]
    ours: tuple[Batch, ...]
    theirs: tuple[Batch, ...]


def bound(scored_us: float, taken: Batches, limit: float) -> Bound:
    """What the sealed clock allows beside the time that would count, `scored_us`: an excess of at most `limit`."""
    sealed_us = sealed_call_us(taken.ours, taken.null_us, taken.calls)
    excess = sealed_us / max(scored_us, _LEAST_US) - 1
    return Bound(
        calls=taken.calls,
        batches=taken.ours,
        reference_batches=taken.theirs,
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
    theirs = sealed_call_us(taken.theirs, taken.null_us, taken.calls) / alone_us - 1
    return max(rules.least(alone_us), min(theirs + rules.beyond, rules.most(alone_us)))


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


def standing(found: Measurement, asked: Asked, rules: Rules) -> Measurement:
    """The measurement with what ranks in it, why it is held, and why it is to be repeated."""
    found = _counted(found, rules)
    for step in (_width, _control, _bound, _best, _floor):
        found = step(found, asked, rules)
    return found


def disturbed(found: Measurement, asked: Asked) -> Measurement:
    """The same where the null was disturbed: that is the node's fault, as it is where times vary too much."""
    return _nodes_fault(found, asked, DISTURBED)


def findings(found: Iterable[Measurement]) -> tuple[Finding, ...]:
    """One for every measurement that is held."""
    return tuple(_finding(one) for one in found if one.held)


def _counted(found: Measurement, rules: Rules) -> Measurement:
    """By the clock that can be believed, and against the reference's time alone where it was slowed."""
    clock = clock_of(found, rules)
    if clock == found.clock and not samples.slowed(found):
        return found
    found = dataclasses.replace(found, clock=clock)
    return samples.counted(found, samples.pooled((found,)))


def clock_of(found: Measurement, rules: Rules) -> str:
    """Which clock can be believed: the event clock within ε of the bound; beyond it the sealed numbers.

    The reference's too, where not even it can be bounded, and the submission is about as far from its own clock.
    """
    limit = found.bound
    if limit is None or limit.bounded:
        return found.clock
    if samples.slowed(found) and limit.sealed_us <= found.time_us * (1 + limit.epsilon):
        # The submission's own time is borne out: only the reference's was not what it should be.
        return found.clock
    if not limit.reference_batches:
        return samples.BOUND
    alone_us = found.control.reference_us if found.control else found.reference_us
    most = rules.most(alone_us)
    theirs = samples.sealed_call_us(limit, limit.reference_batches) / alone_us - 1
    likely = (1 + theirs) * (1 + max(most, theirs))
    return samples.BATCHES if theirs > most - rules.beyond and 1 + limit.excess <= likely else samples.BOUND


def _width(found: Measurement, asked: Asked, rules: Rules) -> Measurement:
    # Of one that is far slower nobody asks how wide: it had no second stage either.
    wide = found.ratio <= rules.far and found.ratio_high - found.ratio_low > rules.widest * found.ratio
    return _nodes_fault(found, asked, TOO_WIDE) if wide else found


def _control(found: Measurement, asked: Asked, _: Rules) -> Measurement:
    """The reference has to be as fast beside the submission as by itself."""
    control = found.control
    if control is None or (control.agrees and abs(control.ratio - 1) <= control.tolerance):
        return found
    if not asked.remeasured:
        return _again(found, SLOWED if samples.slowed(found) else UNSTEADY)
    return dataclasses.replace(found, held=SLOWED) if samples.slowed(found) else found


def _bound(found: Measurement, asked: Asked, _: Rules) -> Measurement:
    """Who is seen to take longer than was claimed, where the reference is not, has to be looked at."""
    if found.clock != samples.BOUND:
        return found
    return dataclasses.replace(found, held=DISAGREE) if asked.remeasured else _again(found, DISAGREE)


def _best(found: Measurement, asked: Asked, rules: Rules) -> Measurement:
    best_us = asked.best_us.get(found.case, 0.0)
    soon = not asked.remeasured and found.time_us < rules.soft_floor * best_us
    return _again(found, TOO_FAST) if soon else found


def _floor(found: Measurement, _: Asked, __: Rules) -> Measurement:
    return dataclasses.replace(found, held=BELOW_FLOOR) if found.time_us < found.floor_us else found


def _nodes_fault(found: Measurement, asked: Asked, reason: str) -> Measurement:
    """Worth `MOST_REMEASURES` more tries; then it stands."""
    return _again(found, reason) if asked.remeasured < MOST_REMEASURES else found


def _again(found: Measurement, reason: str) -> Measurement:
    return dataclasses.replace(found, remeasure=found.remeasure or reason)


def _finding(found: Measurement) -> Finding:
    evidence = {"case": found.case, "time": f"{found.time_us:.1f} µs beside {found.reference_us:.1f} µs"}
    if found.bound:
        evidence["sealed"] = f"{found.bound.sealed_us:.1f} µs by {found.bound.calls} calls, ε {found.bound.excess:.3f}"
    if found.control:
        evidence["reference"] = f"{found.control.drift:+.3f} beside the submission"
    if found.floor_us:
        evidence["floor"] = f"{found.floor_us:.1f} µs"
    return Finding(_KINDS.get(found.held, FindingKind.clock_disagreement), found.held, evidence)
