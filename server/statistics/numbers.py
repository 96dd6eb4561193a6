"""Counts in bins and the numbers that sum a list up: pure."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Bin:
    """How many values lie from `low` to below `high`; the last bin of a histogram holds its `high` too."""

    low: float
    high: float
    count: int


@dataclass(frozen=True)
class Summary:
    """What a list of values comes to."""

    count: int
    mean: float
    low: float
    quarter: float
    median: float
    three_quarters: float
    high: float


def summary(values: Sequence[float]) -> Summary | None:
    """`None` of nothing."""
    if not values:
        return None
    quarters = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else [values[0]] * 3
    quarter, median, three_quarters = quarters
    return Summary(len(values), statistics.fmean(values), min(values), quarter, median, three_quarters, max(values))


def histogram(values: Sequence[float], low: float, high: float, bins: int) -> tuple[Bin, ...]:
    """Values in bins of the same width; what lies outside counts in the first or last one."""
    if high <= low or bins < 1:
        return ()
    width = (high - low) / bins
    counts = Counter(max(0, min(bins - 1, int((value - low) / width))) for value in values)
    return tuple(Bin(low + index * width, low + (index + 1) * width, counts[index]) for index in range(bins))


def log_histogram(values: Iterable[float], bins: int) -> tuple[Bin, ...]:
    """Positive values in bins of the same ratio: half and double are as far from 1."""
    logs = [math.log(value) for value in values if value > 0 and math.isfinite(value)]
    if not logs:
        return ()
    low, high = min(logs), max(logs)
    if high - low < 0.1:  # noqa: PLR2004  # all alike: one bin a tenth wide would show noise
        low, high = low - 0.05, high + 0.05
    return tuple(Bin(math.exp(one.low), math.exp(one.high), one.count) for one in histogram(logs, low, high, bins))
