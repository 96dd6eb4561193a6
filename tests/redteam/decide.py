"""The judge's own decision, on samples that were recorded: what would have been noticed, had the times been forged.

A factor on the reported times changes no other sample. So a grading that was made once answers for all factors.
"""

from __future__ import annotations

import dataclasses
import functools
import math

from autograder.contract import AACheck, Bound, Measurement, Pair
from autograder.judge.rules import GPU, Rules
from autograder.judge.timing import validity
from autograder.judge.timing.aa_check import aa_check_of
from autograder.judge.timing.estimators import by_samples

LEAST_SCALE = 0.05
STEPS = 24
CLOCK = "event"
LAST = validity.MAX_REMEASURES
"""A forger is asked whether the last measurement would stand: what only a node's noise asks for is over by then."""


def forged(found: Measurement, scale: float, rules: Rules = GPU) -> Measurement:
    """What the judge would have had, if every reported time had been multiplied by `scale`; not judged yet."""
    base = _taken_anew(found, rules)
    made = dataclasses.replace(
        base,
        pairs=tuple(
            dataclasses.replace(one, submission_event_us=one.submission_event_us * scale) for one in base.pairs
        ),
        ratio=base.ratio * scale,
        ratio_low=base.ratio_low * scale,
        ratio_high=base.ratio_high * scale,
        time_us=base.time_us * scale,
        time_low_us=base.time_low_us * scale,
        time_high_us=base.time_high_us * scale,
    )
    return dataclasses.replace(made, bound=_bound(made, rules))


@functools.lru_cache(maxsize=64)
def _taken_anew(found: Measurement, rules: Rules) -> Measurement:
    """By the event clock, from its samples alone: what was recorded may rank by another clock already."""
    again = by_samples(found, CLOCK)
    return dataclasses.replace(again, control=_control(found, found.pairs, rules), held="", remeasure="")


def _bound(found: Measurement, rules: Rules) -> Bound | None:
    """The bound beside forged times."""
    if found.bound is None:
        return None
    made = found.bound
    taken = validity.Batches(made.calls, made.null_us, made.batches, made.reference_batches)
    alone_us = found.control.reference_us if found.control else found.reference_us
    limit = validity.widened(alone_us, taken, rules) if made.reference_batches else made.epsilon
    return validity.bound(validity.scored_us(found), taken, limit)


def _control(found: Measurement, pairs: tuple[Pair, ...], rules: Rules) -> AACheck | None:
    if found.control is None:
        return None
    tolerance = max(rules.aa_tolerance_for(found.control.reference_us), found.control.tolerance)
    return aa_check_of(pairs, found.control.pairs, CLOCK, tolerance)


def judged(found: Measurement, scale: float = 1.0, rules: Rules = GPU, *, remeasured: int = LAST) -> Measurement:
    """The measurement as it would stand: what ranks in it, whether it is held or to be repeated."""
    return validity.judge_measurement(forged(found, scale, rules), validity.PriorAttempts(remeasured=remeasured), rules)


def noticed(found: Measurement, scale: float = 1.0, rules: Rules = GPU, *, remeasured: int = LAST) -> str:
    """Why it would be held or measured again; `""` if it went through."""
    made = judged(found, scale, rules, remeasured=remeasured)
    return made.held or made.remeasure


def smallest_scale(found: Measurement, rules: Rules = GPU) -> float:
    """The smallest factor that goes unnoticed while the event clock ranks.

    Returns:
        `inf` if not even 1 goes unnoticed; 1 where the sealed clock ranks by itself, so that nothing can be forged.
    """
    if noticed(found, 1.0, rules):
        return math.inf
    if not _ranks(found, 1.0, rules):
        return 1.0
    low, high = LEAST_SCALE, 1.0
    if _ranks(found, low, rules):
        return low
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if _ranks(found, middle, rules) else (middle, high)
    return high


def _ranks(found: Measurement, scale: float, rules: Rules) -> bool:
    """Whether the forged times would go through, and count."""
    # The clock first: by another one an interval would be worked out, which takes all the time, for nothing.
    return validity.clock_of(forged(found, scale, rules)) == CLOCK and not noticed(found, scale, rules)
