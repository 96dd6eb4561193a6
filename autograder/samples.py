"""From raw samples to a ratio with an interval, and the pool of several attempts' samples. Pure, standard library only.

Server, receipts and a student's machine compute with this, so that a score can be recomputed anywhere, without a GPU.

Samples of an identical source are pooled: an attempt adds its samples to those before it and replaces none, so that
handing the same kernel in again draws no new lot. The score is taken at the median over all of them. Nothing that an
attempt could say about its own samples leaves them out: what could be left out could be drawn again.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from autograder.contract import Batch, Bound, Measurement, Pair
from autograder.errors import ContractError

RESAMPLES = 1000
CONFIDENCE = 0.95
MANY = 200
"""A pool of more samples is resampled `FEWER` times: its interval is narrow, and somebody waits for it."""
FEWER = 200
EVENT, SEALED, BOUND, BATCHES = "event", "sealed", "bound", "batches"
"""Which clock ranks. `bound`: the event clock was not believed, the sealed batches' upper bound of one call counts.
`batches`: not even the reference alone could be bounded, and both sides' sealed batches count."""
_SEED = 20261121
"""Known, so that an interval follows from its samples."""


@dataclass(frozen=True)
class PooledCase:
    """One ranked case over all attempts that measured it.

    Attributes:
        ratio, ratio_low, ratio_high: median of the pairwise submission / reference, with its interval.
        time_us, time_low_us, time_high_us: the submission's time likewise.
        attempts, pairs: how many of each.
    """

    case: str
    ratio: float
    ratio_low: float
    ratio_high: float
    time_us: float
    time_low_us: float
    time_high_us: float
    reference_us: float
    attempts: int
    pairs: int


@dataclass(frozen=True)
class AttemptSamples:
    """What one attempt samples: numbers in the order in which they were taken."""

    values: Sequence[float]

    def again(self, source: random.Random) -> list[float]:
        """How it might have come out otherwise."""
        return _blocks(source, self.values)


@dataclass(frozen=True)
class ShortestBatches(AttemptSamples):
    """The same where each side's shortest batch counts for every pair: other batches, another shortest.

    Attributes:
        ours, theirs: microseconds of one call by each batch; `theirs` is empty where the submission's time is meant.
    """

    ours: Sequence[float]
    theirs: Sequence[float] = ()

    def again(self, source: random.Random) -> list[float]:
        """With batches drawn again, and the shortest of those."""
        ours, theirs = (min(source.choices(one, k=len(one)), default=1.0) for one in (self.ours, self.theirs))
        return [ours / theirs] * len(self.values)


def times_of(measurement: Measurement) -> list[tuple[float, float]]:
    """Submission's and reference's microseconds of every pair, as they count.

    Where the reference was slowed to the submission's advantage, its time alone, after the submission's runner was
    killed, counts for every pair. Where the event clock was not believed, the bound counts for every pair.
    """
    taken = [_by_clock(pair, measurement.clock) for pair in measurement.pairs]
    if measurement.clock == BOUND and measurement.bound is not None:
        taken = [(measurement.bound.sealed_us, reference) for _, reference in taken]
    if measurement.clock == BATCHES and measurement.bound is not None:
        reference_us = reference_call_us(measurement.bound)
        return [(measurement.bound.sealed_us, reference_us) for _ in taken]
    if measurement.control is not None and slowed(measurement):
        taken = [(ours, measurement.control.reference_us) for ours, _ in taken]
    return taken


def slowed(measurement: Measurement) -> bool:
    """Whether the reference was slower beside the submission than alone, and the sealed bound does not bear the ratio.

    A neighbour slows both sides: then the ratio stays right, and the bound bears it.
    """
    control, bound = measurement.control, measurement.bound
    if control is None or control.agrees or control.drift <= 0:
        return False
    return bound is None or not bound.bounded


def sealed_call_us(bound: Bound, batches: Sequence[Batch]) -> float:
    """An upper bound of one call's time in µs: the shortest batch less the shortest null exchange, by its calls.

    Raises:
        ContractError: there is no batch, no null or no call.
    """
    if not batches or not bound.null_us or bound.calls < 1:
        raise ContractError("there is no batch, null or call to bound one by")
    return min(calls_us(bound, batches))


def reference_call_us(bound: Bound) -> float:
    """The same of the reference, by as many batches as the submission has; 0 where none was taken."""
    taken = _as_many(bound)
    return sealed_call_us(bound, taken) if taken else 0.0


def calls_us(bound: Bound, batches: Sequence[Batch]) -> list[float]:
    """The same in µs by every batch."""
    return [(batch.sealed_us - min(bound.null_us)) / bound.calls for batch in batches]


def pooled(measurements: Sequence[Measurement]) -> PooledCase:
    """One case's measurements put together, one of each attempt, oldest first.

    Raises:
        ContractError: there is none, they are of several cases, or a time or a ratio is not above zero.
    """
    names = {item.case for item in measurements}
    if len(names) != 1:
        raise ContractError(f"a pool is of one case, not of {len(names)}")
    measured = [(item, times_of(item)) for item in measurements if item.pairs]
    attempts = [pairs for _, pairs in measured]
    if not attempts or any(not 0 < number < float("inf") for pairs in attempts for pair in pairs for number in pair):
        raise ContractError(f"case {min(names)!r} has no samples, or one that is no time")
    ratios = [[ours / theirs for ours, theirs in pairs] for pairs in attempts]
    if any(not 0 < ratio < float("inf") for taken in ratios for ratio in taken):
        raise ContractError(f"case {min(names)!r} has times whose ratio no number holds")
    times = [[ours for ours, _ in pairs] for pairs in attempts]
    items = [item for item, _ in measured]
    ratio_low, ratio_high = interval([_sampled(*one) for one in zip(items, ratios, strict=True)])
    time_low, time_high = interval([_sampled(*one, alone=True) for one in zip(items, times, strict=True)])
    return PooledCase(
        case=min(names),
        ratio=_median(ratios),
        ratio_low=ratio_low,
        ratio_high=ratio_high,
        time_us=_median(times),
        time_low_us=time_low,
        time_high_us=time_high,
        reference_us=_median([[theirs for _, theirs in pairs] for pairs in attempts]),
        attempts=len(attempts),
        pairs=sum(len(pairs) for pairs in attempts),
    )


def _sampled(item: Measurement, values: Sequence[float], *, alone: bool = False) -> AttemptSamples:
    """One attempt's ratios, or its times alone, with what they follow from."""
    if item.clock != BATCHES or item.bound is None or not item.bound.batches:
        return AttemptSamples(values)
    theirs = [] if alone else calls_us(item.bound, _as_many(item.bound))
    return ShortestBatches(values, calls_us(item.bound, item.bound.batches), theirs)


def _as_many(bound: Bound) -> tuple[Batch, ...]:
    """Of the reference's batches, without as many first ones as were dropped of the submission's.

    The shortest of each side ranks, and that of more is shorter. The last of both sides were taken on the same cores.
    """
    return bound.reference_batches[len(bound.dropped) :]


def counted(measurement: Measurement, pool: PooledCase) -> Measurement:
    """A measurement with the pool's numbers in place of its own; its samples stay its own."""
    return replace(
        measurement,
        ratio=pool.ratio,
        ratio_low=pool.ratio_low,
        ratio_high=pool.ratio_high,
        time_us=pool.time_us,
        time_low_us=pool.time_low_us,
        time_high_us=pool.time_high_us,
        reference_us=pool.reference_us,
    )


def interval(attempts: Sequence[AttemptSamples]) -> tuple[float, float]:
    """A block-bootstrap interval of the median over all samples.

    Attempts are drawn first, then blocks of about n^(1/3) consecutive samples in each, the last followed by the first:
    blocks keep what neighbours in time have in common, attempts what one node and one hour have. It always holds the
    median itself.
    """
    source = random.Random(_SEED)  # noqa: S311 - statistics, not a secret
    middle = _median([one.values for one in attempts])
    times = FEWER if sum(len(one.values) for one in attempts) > MANY else RESAMPLES
    medians = sorted(statistics.median(_resample(source, attempts)) for _ in range(times))
    tail = round(times * (1 - CONFIDENCE) / 2)
    return min(medians[tail], middle), max(medians[-1 - tail], middle)


def _resample(source: random.Random, attempts: Sequence[AttemptSamples]) -> list[float]:
    chosen = attempts if len(attempts) == 1 else source.choices(attempts, k=len(attempts))
    return [number for one in chosen for number in one.again(source)]


def _blocks(source: random.Random, samples: Sequence[float]) -> list[float]:
    count = len(samples)
    block = max(1, round(count ** (1 / 3)))
    around = [*samples, *samples[:block]]
    starts = source.choices(range(count), k=-(-count // block))
    return [number for start in starts for number in around[start : start + block]][:count]


def _median(attempts: Sequence[Sequence[float]]) -> float:
    return statistics.median([number for samples in attempts for number in samples])


def _by_clock(pair: Pair, clock: str) -> tuple[float, float]:
    if clock == SEALED:
        return pair.submission_sealed_us, pair.reference_sealed_us
    return pair.submission_event_us, pair.reference_event_us
