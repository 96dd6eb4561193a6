"""Speed as a paired ratio: submission and reference take turns, and every timed call is checked like any other."""

from __future__ import annotations

import dataclasses
import random
import statistics
from collections.abc import Sequence

import torch

from autograder.assignment import Assignment, Case
from autograder.contract import Measurement, Pair

RESAMPLES = 1000
CONFIDENCE = 0.95
_SEED = 20261121
"""Known, so that an interval follows from its samples."""


def measurement(assignment: Assignment, case: Case, pairs: Sequence[Pair], clock: str) -> Measurement:
    """Put the pairs of one ranked case together, by the clock that ranks on their lane."""
    flops, bytes_moved = assignment.cost_of(case)
    empty = Measurement(
        case=case.name, clock=clock, ratio=0.0, ratio_low=0.0, ratio_high=0.0, time_us=0.0, time_low_us=0.0,
        time_high_us=0.0, reference_us=0.0, flops=flops, bytes_moved=bytes_moved, pairs=tuple(pairs),
    )  # fmt: skip
    return by_samples(empty, clock)


def by_samples(found: Measurement, clock: str) -> Measurement:
    """The measurement with what its own pairs say by one clock, whatever ranked in it before."""
    times, references = zip(*(by_clock(pair, clock) for pair in found.pairs), strict=True)
    ratios = [submission / reference for submission, reference in zip(times, references, strict=True)]
    ratio_low, ratio_high = interval(ratios)
    time_low, time_high = interval(times)
    return dataclasses.replace(
        found,
        clock=clock,
        ratio=statistics.median(ratios),
        ratio_low=ratio_low,
        ratio_high=ratio_high,
        time_us=statistics.median(times),
        time_low_us=time_low,
        time_high_us=time_high,
        reference_us=statistics.median(references),
    )


def too_wide(pairs: Sequence[Pair], clock: str, max_width: float) -> bool:
    """Whether the interval of the ratio is wider than `max_width`, relative to the ratio."""
    ratios = _ratios(pairs, clock)
    low, high = interval(ratios)
    return high - low > max_width * statistics.median(ratios)


def ratio_exceeds(pairs: Sequence[Pair], clock: str, max_ratio: float) -> bool:
    """Whether the ratio is above `max_ratio`."""
    return statistics.median(_ratios(pairs, clock)) > max_ratio


def by_clock(pair: Pair, clock: str) -> tuple[float, float]:
    """Submission's and reference's microseconds on the `event` or the `sealed` clock."""
    if clock == "event":
        return pair.submission_event_us, pair.reference_event_us
    return pair.submission_sealed_us, pair.reference_sealed_us


def call_us(pairs: Sequence[Pair], clock: str) -> float:
    """How many microseconds a call of the submission takes by one clock: the median, of an even number the upper."""
    return statistics.median_high(by_clock(pair, clock)[0] for pair in pairs)


def _ratios(pairs: Sequence[Pair], clock: str) -> list[float]:
    return [submission / reference for submission, reference in (by_clock(pair, clock) for pair in pairs)]


def interval(samples: Sequence[float]) -> tuple[float, float]:
    """A block-bootstrap interval of the median: blocks keep what neighbours in time have in common.

    Percentiles of the medians of resamples made of blocks of about n^(1/3) consecutive samples, the last followed by
    the first. It always holds the median itself.
    """
    count = len(samples)
    block = max(1, round(count ** (1 / 3)))
    blocks = -(-count // block)
    source = random.Random(_SEED)  # noqa: S311 - statistics, not a secret
    starts = torch.tensor(source.choices(range(count), k=RESAMPLES * blocks)).reshape(RESAMPLES, blocks, 1)
    drawn = ((starts + torch.arange(block)) % count).reshape(RESAMPLES, blocks * block)[:, :count]
    medians = torch.tensor(samples, dtype=torch.float64)[drawn].quantile(0.5, dim=1).sort().values
    tail = round(RESAMPLES * (1 - CONFIDENCE) / 2)
    middle = statistics.median(samples)
    return min(float(medians[tail]), middle), max(float(medians[-1 - tail]), middle)
