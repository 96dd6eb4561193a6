"""The measuring of one attempt, in the order that trust demands.

before the submission is loaded    the reference is called, batches are sized, null and reference alone are measured
while it lives                     pairs in two stages, batches
when its runner is killed          the A/A block; the reference's own batches, if the bound was missed
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Sequence

from autograder.assignment import Case
from autograder.contract import Bound, Lane, Measurement
from autograder.judge.correctness.checker import Checker
from autograder.judge.defences import Defences
from autograder.judge.probes.post_timing_trace import KernelTrace, trace_calls
from autograder.judge.protocol.devices import Device
from autograder.judge.protocol.runner_client import RunnerClient
from autograder.judge.rules import Rules, noise_floor
from autograder.judge.timing import validity
from autograder.judge.timing.aa_check import ReferenceRecheck
from autograder.judge.timing.calibration import Calibrator, CaseCalibration
from autograder.judge.timing.estimators import measurement, ratio_exceeds
from autograder.judge.timing.floor import floor_us
from autograder.judge.timing.overhead_baseline import NullExchanges
from autograder.judge.timing.paired_timing import CaseSamples, PairedTimer
from autograder.judge.timing.references import Reference


class MeasurementSession:
    """Measures a submission's ranked cases beside one reference.

    Args:
        reference_runner: the reference's runner.
        calibrations: what was prepared for it in earlier attempts, by case.

    Attributes:
        exclusive_s: how long the device was needed so far.
    """

    def __init__(
        self, checker: Checker, reference_runner: RunnerClient, reference: Reference, device: Device, *,
        defences: Defences, calibrations: dict[str, CaseCalibration], exchanges: NullExchanges,
    ) -> None:  # fmt: skip
        self._checker = checker
        self._reference_runner = reference_runner
        self._reference = reference
        self._device = device
        self._rules: Rules = device.rules
        self._defences = defences
        self._calibrations = calibrations
        self._exchanges = exchanges
        self.exclusive_s = 0.0

    def prepare(self, cases: Sequence[Case]) -> None:
        """Find out what is not known yet of the ranked cases; no untrusted process may live.

        What others disturbed is found out again for the next submission.
        """
        if not (self._rules.batches and self._defences.batches):
            return
        start = time.monotonic()
        preparing = Calibrator(self._checker, self._reference_runner, self._device, self._rules, self._exchanges)
        for case in cases:
            known = self._calibrations.get(case.name)
            if known is None or not known.undisturbed:
                self._calibrations[case.name] = preparing.case(case)
        self.exclusive_s += time.monotonic() - start

    def time(self, submission_runner: RunnerClient, case: Case, pairs: int) -> CaseSamples:
        """Time one case while the submission lives."""
        start = time.monotonic()
        calibration = self._calibrations.get(case.name) if self._defences.batches else None
        if calibration and not self._defences.copies:
            calibration = dataclasses.replace(calibration, copy_us=math.inf)
        timer = PairedTimer(
            self._checker,
            submission_runner,
            self._reference_runner,
            reference=self._reference,
            device=self._device,
            rules=self._rules,
        )
        timed = timer.case(case, pairs, calibration)
        self.exclusive_s += time.monotonic() - start
        return timed

    def trace_after_timing(self, submission_runner: RunnerClient, timed: Sequence[CaseSamples]) -> KernelTrace | None:
        """See whose work was timed; not in cases in which it is too slow to be a library's."""
        clock, max_ratio = self._device.clock, self._rules.max_ratio_for_full_sampling
        wanted = [one for one in timed if not ratio_exceeds(one.pairs, clock, max_ratio)]
        if not (wanted and self._rules.post_timing_trace and self._defences.post_timing_trace):
            return None
        start = time.monotonic()
        seen = trace_calls(self._checker, submission_runner, wanted, traces=self._rules.traces)
        self.exclusive_s += time.monotonic() - start
        return seen

    def conclude(self, timed: CaseSamples, lane: Lane, asked: validity.PriorAttempts) -> Measurement:
        """What the samples of one case say, when the submission's runner is gone."""
        start = time.monotonic()
        found = measurement(self._checker.assignment, timed.case, timed.pairs, self._device.clock)
        recheck = ReferenceRecheck(self._checker, self._reference_runner, self._device, self._rules)
        is_rechecked = self._rules.aa_check and self._defences.aa_check
        found = dataclasses.replace(
            found,
            stages=timed.stages,
            control=recheck.aa_check(timed, noise_floor()) if is_rechecked else None,
            floor_us=floor_us(self._checker.assignment, timed.case, lane) if self._defences.floor else 0.0,
        )
        if timed.batches and timed.calibration:
            made = self._bound(found, timed, timed.calibration, recheck)
            found = dataclasses.replace(found, bound=dataclasses.replace(made, dropped=timed.dropped))
        self.exclusive_s += time.monotonic() - start
        found = validity.judge_measurement(found, asked, self._rules)
        disturbed = timed.calibration is not None and not timed.calibration.undisturbed
        return validity.disturbed(found, asked) if disturbed else found

    def _bound(
        self, found: Measurement, timed: CaseSamples, calibration: CaseCalibration, recheck: ReferenceRecheck
    ) -> Bound:
        """The bound; where it was missed, by what the reference shows now, when nobody is left who could slow it.

        Not for a slow submission's fewer calls: in as few of the reference's the exchange would be what is seen.
        """
        taken = validity.Batches(calibration.calls, calibration.null_us, timed.batches, calibration.reference_batches)
        made = validity.bound(validity.scored_us(found), taken, calibration.tolerated_excess)
        if made.bounded or not calibration.reference_batches:
            return made
        taken = dataclasses.replace(taken, reference=recheck.batches(timed, calibration))
        alone_us = found.control.reference_us if found.control else found.reference_us
        return validity.bound(validity.scored_us(found), taken, validity.widened(alone_us, taken, self._rules))
