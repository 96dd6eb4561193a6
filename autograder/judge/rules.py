"""How a lane measures, and at which thresholds; `docs/measurement.md` publishes what they let through.

Every number here is one that a submission knows. None of them can be steered by it to its gain: how many samples are
taken follows from n, the reference's time and one fixed second stage, a batch more only makes the bound tighter, a slow
submission's shorter batch has nothing taken off, and no batch more for its copies than a null's take.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Limit:
    """What the sealed bound of a case may show above the event clock, as a part of that.

    Attributes:
        below_us: where a call of the reference takes less.
        least: whatever the reference shows.
        most: where it shows nearly as much or more; delays of the same length are a larger part of a short call.
    """

    below_us: float
    least: float
    most: float


@dataclass(frozen=True)
class Rules:
    """Thresholds of measuring.

    Attributes:
        batches: the sealed clock bounds the event clock by batches of calls.
        control: after the submission's runner is killed, the reference is timed against itself.
        looks: after the timed calls, before the runner is killed, calls are made to see what does the work.
        traces: one of those is traced; there has to be a device that something runs on.
        shared_inputs: the reference gets the inputs that the submission has answered already, and its output, once
            one of the case was checked against the oracle, may serve as the expected value.
        limits: by how much the sealed bound may lie above the event clock (docs/decisions/0040), by how long a call of
            the reference takes.
        beyond: where the reference by itself, with no submission alive, lies above its own by nearly as much or more, a
            submission may by so much more than the reference, but never by more than the limit's `most`.
        tolerance, tolerance_brief: by how much the reference may be slower beside the submission than after it, or the
            node's spread; the second where a call of the reference takes less than `brief_us`, which is up to 1.8 %
            faster or slower by where its memory lies, and after a submission it lies elsewhere (docs/decisions/0040).
        widest: width of the ratio's interval, relative to the ratio, above which the second stage is taken, and above
            which after it the node is at fault.
        brief: where a call of the reference takes less than so many microseconds, the first stage has so many times
            the pairs, by the first line that fits: what differs from call to call is a larger part of it, and hardly
            anything else makes two gradings differ (docs/decisions/0040).
        far: a submission whose ratio is above this has no more pairs than the lane asks for, and no second stage: it
            gets no points for speed, and calls of a second would use up its time.
        second_stage: the second stage brings the pairs to so many times the first.
        batch_us: how much work a batch holds, so that an exchange is small beside it.
        long, long_us: where a call of the reference takes so many microseconds or more, so many times that: its calls
            are few, and what a runner's host does before the first of them, 0.4 to 0.7 ms for a wrapper in Python, is a
            part of all.
        light_bytes, light: a batch of calls that move little memory costs little to fill and to compare, so it holds
            up to `light` times that work, as far as its calls' inputs and outputs take no more than so many bytes.
        least_calls, most_calls: of one batch.
        longest_us: of one batch, by the submission's own clock: a slower one is given fewer calls.
        most_slabs: of one batch; one descriptor each.
        together_us: short calls share a slab, as many as take no longer: receiving, mapping and launching take the
            host 0.2 ms for a slab of a gigabyte, twice as long on a core whose sibling works, and must be shorter.
        most_batches: the first is enough if it shows the bound with something to spare. A shared host stops batches for
            milliseconds: with three of them honest kernels missed the bound in 1 and 4 of 60 gradings
            (docs/decisions/0040).
        most_dropped: of the first so many, those above the most that a limit allows are not looked at and do not count:
            comparing its outputs is most of what a batch takes. The others are looked at, as the shortest of them may
            rank (docs/decisions/0040).
        spare, spare_brief: so much, the second where a call of the reference takes less than `brief_us`: the time that
            will count is known when the reference has been timed alone, and may be that much shorter than the event
            clock's. With the third batch of longer calls half of it, and so on: where several lie just within the
            limit, the margin is not worth six batches (docs/decisions/0040).
        reference_batches: of the reference alone, before a submission lives; after it no fewer than these, nor than the
            submission's.
        control_pairs, long_control_pairs: of the A/A block, the second where a call of the reference takes `long_us`
            or more. Eight say there what twelve do: in 1 852 recorded blocks the drift differs by 0.3 % at most, and by
            0.8 % below `brief_us`, where more is tolerated (docs/decisions/0040).
        memory_share: of the device's memory, for one batch.
        null_exchanges: of which the shortest counts.
        most_null_us: what the shortest of a quiet node takes at most. 0.26 to 1 ms were seen, the longest of a
            reduction on an H100; beside a neighbour on all cores and PCIe 13 ms, which made a batch seem a quarter
            shorter than its calls (red team 24b).
        soft_floor: a time below this part of the best verified one is measured again.
    """

    batches: bool = True
    control: bool = True
    looks: bool = True
    traces: bool = True
    shared_inputs: bool = True
    limits: tuple[Limit, ...] = (Limit(100.0, 0.05, 0.08), Limit(200.0, 0.07, 0.07), Limit(math.inf, 0.06, 0.06))
    beyond: float = 0.015
    tolerance: float = 0.02
    tolerance_brief: float = 0.03
    widest: float = 0.02
    brief: tuple[tuple[float, float], ...] = ((40.0, 12.0), (60.0, 6.0), (150.0, 3.0), (1000.0, 1.3))
    far: float = 100.0
    second_stage: int = 2
    batch_us: float = 10000.0
    long: float = 1.5
    long_us: float = 100.0
    light_bytes: float = 12e9
    light: float = 2.0
    least_calls: int = 8
    most_calls: int = 256
    longest_us: float = 1e6
    most_slabs: int = 56
    together_us: float = 1000.0
    most_batches: int = 6
    most_dropped: int = 3
    reference_batches: int = 3
    spare: float = 0.004
    spare_brief: float = 0.016
    brief_us: float = 150.0
    control_pairs: int = 12
    long_control_pairs: int = 8
    memory_share: float = 0.62
    null_exchanges: int = 8
    most_null_us: float = 2000.0
    soft_floor: float = 0.9

    def first_stage(self, pairs: int, call_us: float) -> int:
        """How many pairs are taken first, where the lane asks for `pairs` and a call of the reference takes so long.

        An even number, as pairs go A B, B A: of an odd one more begin with the submission, and the median of pairs that
        are of two kinds would be of that kind (docs/decisions/0040).
        """
        return 2 * max(1, round(pairs * next((times for below_us, times in self.brief if call_us < below_us), 1.0) / 2))

    def work_us(self, call_us: float, light_us: float) -> float:
        """How much work a batch of such calls holds, where `light_us` of it move `light_bytes`."""
        least_us = self.batch_us * (self.long if call_us >= self.long_us else 1.0)
        return min(max(least_us, light_us), self.light * self.batch_us)

    def tolerated(self, call_us: float) -> float:
        """By how much the reference may differ from itself, where a call of it takes so long."""
        return self.tolerance_brief if call_us < self.brief_us else self.tolerance

    def controls(self, call_us: float) -> int:
        """Pairs of the A/A block, where a call of the reference takes so long."""
        return self.control_pairs if call_us < self.long_us else self.long_control_pairs

    def to_spare(self, call_us: float, taken: int) -> float:
        """How much of the limit has to be left when `taken` batches were, where a call of the reference takes so long.

        Those that were dropped are among them: it is for how often a batch may be tried.
        """
        if call_us < self.brief_us:
            return self.spare_brief
        return self.spare * 2.0 ** min(0, 2 - taken)

    def least(self, call_us: float) -> float:
        """The excess that is allowed whatever the reference shows, where a call of it takes so long."""
        return self._limit(call_us).least

    def most(self, call_us: float) -> float:
        """The largest excess that is ever allowed where a call of the reference takes so long."""
        return self._limit(call_us).most

    def _limit(self, call_us: float) -> Limit:
        """The first that fits; the last one where none does."""
        return next((limit for limit in self.limits if call_us < limit.below_us), self.limits[-1])


GPU = Rules()
HOST = Rules(batches=False, control=False, traces=False, shared_inputs=False, widest=float("inf"))
"""The sealed clock ranks by itself; interpreter times are practice, and hold nobody."""


def node_spread() -> float:
    """The node's noise, the relative spread of a golden kernel against itself; the worker measures and names it."""
    try:
        return float(os.environ.get("LADDER_NOISE_FLOOR", "0"))
    except ValueError:
        return 0.0
