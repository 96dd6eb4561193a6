"""Holds the event clock, which a submission can forge, against the judge's own.

Both clocks see the same calls. The sealed one has the whole exchange in it (descriptors, mapping, freezing, snapshot),
which costs submission and reference alike: it is in neither of the pairwise differences. So

    median(submission - reference, event)   must not lie below a bound of   median(submission - reference, sealed)

by more than `MARGIN` of the reference's time. The bound is an order statistic, which holds for every distribution: an
honest measurement falls below it once in `1 / CHANCE` times.

This finds a clock that tells of much less than was used, and it is the first bound only: single calls show differences
down to a few tenths of a millisecond, and a reference that is slowed on the sealed clock hides as much. Batches, the
null exchange and the A/A block (design §4, invariants 7 to 9) are to come.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence

from autograder.contract import Finding, FindingKind, Measurement

CHANCE = 1e-4
"""How often an honest measurement may be held, at most."""

MARGIN = 0.03
"""Of the reference's time."""

HELD = "The times that the submission's process reported are shorter than the judge's own clock allows."


def disagreements(found: Iterable[Measurement]) -> tuple[Finding, ...]:
    """One finding for every measurement whose ranking clock claims more speed than the judge saw."""
    return tuple(_finding(one) for one in found if one.clock == "event" and missing_us(one) > 0)


def missing_us(found: Measurement) -> float:
    """By how many microseconds the claimed difference lies below what the sealed clock and the margin allow."""
    claimed = statistics.median(pair.submission_event_us - pair.reference_event_us for pair in found.pairs)
    least = lower_bound([pair.submission_sealed_us - pair.reference_sealed_us for pair in found.pairs])
    return least - claimed - MARGIN * found.reference_us


def lower_bound(samples: Sequence[float]) -> float:
    """What the median of independent samples lies below with a probability of at most `CHANCE`; -inf if too few.

    The k-th smallest of n samples lies above the median if fewer than k of them lie below: Σ_{i<k} C(n, i) / 2^n.
    """
    count, above, rank = len(samples), 0.0, 0
    while rank < count and (above := above + math.comb(count, rank) / 2**count) <= CHANCE:
        rank += 1
    return sorted(samples)[rank - 1] if rank else -math.inf


def _finding(found: Measurement) -> Finding:
    evidence = {
        "case": found.case,
        "reported": f"{found.time_us:.1f} µs beside {found.reference_us:.1f} µs of the reference",
        "missing": f"at least {missing_us(found):.1f} µs",
    }
    return Finding(FindingKind.clock_disagreement, HELD, evidence)
