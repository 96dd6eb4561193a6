"""What is measured when the submission's runner is gone: the reference against itself, in the same loop."""

from __future__ import annotations

import math
import statistics

from autograder.contract import AACheck, Batch, Pair
from autograder.judge.correctness.checker import Checker
from autograder.judge.protocol.devices import Device
from autograder.judge.protocol.runner_client import RunnerClient
from autograder.judge.rules import Rules
from autograder.judge.timing.calibration import CaseCalibration
from autograder.judge.timing.estimators import by_clock
from autograder.judge.timing.paired_calls import PairedCalls
from autograder.judge.timing.paired_timing import CaseSamples, timed_pairs


class ReferenceRecheck:
    """The reference alone."""

    def __init__(self, checker: Checker, reference_runner: RunnerClient, device: Device, rules: Rules) -> None:
        self._checker = checker
        self._reference_runner = reference_runner
        self._device = device
        self._rules = rules

    def aa_check(self, timed: CaseSamples, spread: float) -> AACheck:
        """The A/A block of a case.

        Args:
            spread: the node's noise; where it is larger than the lane's tolerance, it is what is allowed.
        """
        call = self._turns(timed).reference
        call_us = timed.calibration.reference_us if timed.calibration else math.inf
        _, pairs = timed_pairs(call, call, self._rules.aa_pairs_for(call_us))
        return aa_check_of(timed.pairs, pairs, self._device.clock, max(self._rules.aa_tolerance_for(call_us), spread))

    def batches(self, timed: CaseSamples, calibration: CaseCalibration) -> tuple[Batch, ...]:
        """What the node can show at all, when the submission is gone.

        No fewer than the submission's, those that were dropped among them: what the shortest of fewer shows is longer,
        and would allow more. Nor fewer than before it was loaded: a single one that was stopped would make any claim
        seem likely.
        """
        times = max(len(timed.batches) + len(timed.dropped), self._rules.reference_batches)
        return self._turns(timed).reference_batches(
            calibration.calls, calibration.calls_per_buffer, times, moved=True, max_copy_us=calibration.copy_us
        )

    def _turns(self, timed: CaseSamples) -> PairedCalls:
        """On the inputs of the reference's last call, whose answer is known."""
        known = (timed.inputs, timed.expected)
        return PairedCalls(self._checker, timed.case, None, self._reference_runner, self._device, known=known)


def aa_check_of(paired: tuple[Pair, ...], pairs: tuple[Pair, ...], clock: str, tolerance: float) -> AACheck:
    """Put the block together: has the reference been as fast beside the submission as it is by itself?"""
    both = [by_clock(pair, clock) for pair in pairs]
    reference_us = statistics.median([time for pair in both for time in pair])
    ratio = statistics.median([one / other for one, other in both])
    beside_us = statistics.median([by_clock(pair, clock)[1] for pair in paired])
    drift = beside_us / reference_us - 1
    return AACheck(pairs, reference_us, ratio, drift, tolerance, abs(drift) <= tolerance)
