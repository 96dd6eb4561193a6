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
class BoundTolerance:
    """What the sealed bound of a case may show above the event clock, as a part of that.

    Attributes:
        below_us: where a call of the reference takes less.
        minimum: whatever the reference shows.
        maximum: where it shows nearly as much or more; delays of the same length are a larger part of a short call.
    """

    below_us: float
    minimum: float
    maximum: float


@dataclass(frozen=True)
class Rules:
    """Thresholds of measuring. A short or long call is one of the reference's; reasons are in docs/decisions/0040.

    Attributes:
        batches: the judge's clock bounds the event clock by batches of calls.
        aa_check: after the submission's runner is killed, the reference is timed against itself.
        post_timing_trace: after the timed calls, before the runner is killed, calls are made to see what does the work.
        traces: one of those is traced; there has to be a device that something runs on.
        shared_inputs: the reference gets the inputs that the submission has answered already, and its output, once one
            of the case was checked against the oracle, may serve as the expected value.
        bound_tolerances: by how much the bound may lie above the event clock; the first that fits the reference's time.
        reference_excess_margin: where the reference alone shows nearly as much excess or more, a submission may show so
            much more than it, but never more than the tolerance's `maximum`.
        aa_tolerance, aa_tolerance_short_call: by how much the reference may be slower beside the submission than after
            it, or the node's noise floor. A short call is up to 1.8 % faster or slower by where its memory lies.
        max_interval_width: of the ratio's interval, relative to the ratio; a wider one gets the second stage, and after
            it the node is at fault.
        short_call_pair_factors: below so many microseconds, so many times the pairs in the first stage; the first line
            that fits. What differs from call to call is a larger part of a short one.
        max_ratio_for_full_sampling: a submission that is slower has no more pairs than the lane asks for and no second
            stage: it gets no points for speed, and calls of a second would use up its time.
        second_stage_factor: the second stage brings the pairs to so many times the first.
        batch_work_us: how much work a batch holds, so that an exchange is small beside it.
        long_call_work_factor, long_call_us: of calls that take so long, a batch holds so many times that work: they are
            few, and the host's 0.4 to 0.7 ms before the first of them are a part of all.
        light_batch_bytes, max_light_work_factor: calls that move little memory cost little to fill and to compare. So
            their batch holds more work, up to so many times, while inputs and outputs take no more than so many bytes.
        min_calls, max_calls: of one batch.
        max_batch_us: of one batch, by the submission's own clock: a slower one is given fewer calls.
        max_buffers: of one batch; one descriptor each.
        max_buffer_work_us: short calls share a buffer, as many as take no longer: receiving, mapping and launching take
            the host 0.2 ms for a gigabyte, twice as long on a core whose sibling works, and must be shorter.
        max_batches: the first is enough if it shows the bound with a margin. A shared host stops batches for
            milliseconds: with three of them honest kernels missed the bound in 1 and 4 of 60 gradings.
        max_dropped: of the first so many, those above the largest tolerance are not compared and do not count: that is
            most of what a batch takes. Later ones are compared, as the shortest of them may rank.
        bound_margin, bound_margin_short_call: how much of the tolerance has to be left: the time that will count is
            known when the reference has been timed alone, and may be that much shorter than the event clock's. Of long
            calls half of it with the third batch, and so on.
        short_call_us: what a short call takes less than, for tolerance and margin.
        reference_batches: of the reference alone, before a submission lives; after it no fewer than these, nor than the
            submission's.
        aa_pairs, aa_pairs_long_call: of the A/A check. Eight say of long calls what twelve do: in 1 852 recorded blocks
            the drift differs by 0.3 % at most, and by 0.8 % below `short_call_us`, where more is tolerated.
        memory_share: of the device's memory, for one batch.
        null_exchanges: of which the shortest counts.
        max_null_us: what the shortest takes at most on an undisturbed node. 0.26 to 1 ms were seen; beside a neighbour
            on all cores and PCIe 13 ms, which made a batch seem a quarter shorter than its calls (red team 24b).
        soft_floor: a time below this part of the best verified one is measured again.
    """

    batches: bool = True
    aa_check: bool = True
    post_timing_trace: bool = True
    traces: bool = True
    shared_inputs: bool = True
    bound_tolerances: tuple[BoundTolerance, ...] = (
        BoundTolerance(100.0, 0.05, 0.08),
        BoundTolerance(200.0, 0.07, 0.07),
        BoundTolerance(math.inf, 0.06, 0.06),
    )
    reference_excess_margin: float = 0.015
    aa_tolerance: float = 0.02
    aa_tolerance_short_call: float = 0.03
    max_interval_width: float = 0.02
    short_call_pair_factors: tuple[tuple[float, float], ...] = ((40.0, 12.0), (60.0, 6.0), (150.0, 3.0), (1000.0, 1.3))
    max_ratio_for_full_sampling: float = 100.0
    second_stage_factor: int = 2
    batch_work_us: float = 10000.0
    long_call_work_factor: float = 1.5
    long_call_us: float = 100.0
    light_batch_bytes: float = 12e9
    max_light_work_factor: float = 2.0
    min_calls: int = 8
    max_calls: int = 256
    max_batch_us: float = 1e6
    max_buffers: int = 56
    max_buffer_work_us: float = 1000.0
    max_batches: int = 6
    max_dropped: int = 3
    reference_batches: int = 3
    bound_margin: float = 0.004
    bound_margin_short_call: float = 0.016
    short_call_us: float = 150.0
    aa_pairs: int = 12
    aa_pairs_long_call: int = 8
    memory_share: float = 0.62
    null_exchanges: int = 8
    max_null_us: float = 2000.0
    soft_floor: float = 0.9

    def first_stage_pairs(self, pairs: int, call_us: float) -> int:
        """How many pairs are taken first, where the lane asks for `pairs` and a call of the reference takes so long.

        An even number, as pairs go A B, B A: of an odd one more begin with the submission, and the median of pairs that
        are of two kinds would be of that kind (docs/decisions/0040).
        """
        factor = next((factor for below_us, factor in self.short_call_pair_factors if call_us < below_us), 1.0)
        return 2 * max(1, round(pairs * factor / 2))

    def work_us(self, call_us: float, light_us: float) -> float:
        """How much work a batch of such calls holds, where `light_us` of it move `light_batch_bytes`."""
        min_us = self.batch_work_us * (self.long_call_work_factor if call_us >= self.long_call_us else 1.0)
        return min(max(min_us, light_us), self.max_light_work_factor * self.batch_work_us)

    def aa_tolerance_for(self, call_us: float) -> float:
        """By how much the reference may differ from itself, where a call of it takes so long."""
        return self.aa_tolerance_short_call if call_us < self.short_call_us else self.aa_tolerance

    def aa_pairs_for(self, call_us: float) -> int:
        """Pairs of the A/A block, where a call of the reference takes so long."""
        return self.aa_pairs if call_us < self.long_call_us else self.aa_pairs_long_call

    def bound_margin_for(self, call_us: float, taken: int) -> float:
        """How much of the limit has to be left when `taken` batches were, where a call of the reference takes so long.

        Those that were dropped are among them: it is for how often a batch may be tried.
        """
        if call_us < self.short_call_us:
            return self.bound_margin_short_call
        return self.bound_margin * 2.0 ** min(0, 2 - taken)

    def min_excess(self, call_us: float) -> float:
        """The excess that is allowed whatever the reference shows, where a call of it takes so long."""
        return self._bound_tolerance(call_us).minimum

    def max_excess(self, call_us: float) -> float:
        """The largest excess that is ever allowed where a call of the reference takes so long."""
        return self._bound_tolerance(call_us).maximum

    def _bound_tolerance(self, call_us: float) -> BoundTolerance:
        """The first that fits; the last one where none does."""
        return next((limit for limit in self.bound_tolerances if call_us < limit.below_us), self.bound_tolerances[-1])


GPU = Rules()
HOST = Rules(batches=False, aa_check=False, traces=False, shared_inputs=False, max_interval_width=float("inf"))
"""The sealed clock ranks by itself; interpreter times are practice, and hold nobody."""


def noise_floor() -> float:
    """The node's noise, the relative spread of a golden kernel against itself; the worker measures and names it."""
    try:
        return float(os.environ.get("LADDER_NOISE_FLOOR", "0"))
    except ValueError:
        return 0.0
