"""Time one ranked case of a submission beside its reference."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from autograder.assignment import Case
from autograder.contract import Batch, Pair
from autograder.errors import HarnessError
from autograder.judge.correctness.checker import NO_MEMORY, CallResult, Checker
from autograder.judge.protocol.devices import Device
from autograder.judge.protocol.runner_client import RunnerClient
from autograder.judge.protocol.tensors import Tensors
from autograder.judge.rules import Rules
from autograder.judge.timing.calibration import CaseCalibration
from autograder.judge.timing.estimators import call_us, ratio_exceeds, too_wide
from autograder.judge.timing.paired_calls import PairedCalls, SubmissionFailedError
from autograder.judge.timing.references import Reference

Call = Callable[[], CallResult]


@dataclass(frozen=True)
class CaseSamples:
    """What the calls of one ranked case showed while the submission lived.

    Attributes:
        last: its last call, which passed or ended the measuring.
        stages: pairs by stage of sampling.
        dropped: batches that were too long to bound anything, and not looked at.
        calibration: what the batches were taken with.
        inputs, expected: what the reference was called with last, and what it made of it.
    """

    case: Case
    last: CallResult
    pairs: tuple[Pair, ...] = ()
    stages: tuple[int, ...] = ()
    batches: tuple[Batch, ...] = ()
    dropped: tuple[Batch, ...] = ()
    calibration: CaseCalibration | None = None
    inputs: Tensors | None = None
    expected: Tensors | None = None


def timed_pairs(
    submission: Call, reference: Call, count: int, *, warm: bool = False
) -> tuple[CallResult, tuple[Pair, ...]]:
    """Take `count` pairs in the order A B, B A, A B …, after one call of each that is not kept, unless both are warm.

    Returns:
        The submission's last call, which ends the measuring if it did not pass; and the pairs until then.
    """
    taken: list[Pair] = []
    for number in range(0 if warm else -1, count):
        if number % 2:
            reference_result, submission_result = reference(), submission()
        else:
            submission_result = submission()
            reference_result = reference() if submission_result.passed else submission_result
        if not submission_result.passed:
            break
        if number >= 0:
            taken.append(_pair(submission_result, reference_result))
    return submission_result, tuple(taken)


class PairedTimer:
    """Has two runners take turns; whoever is not called is frozen."""

    def __init__(
        self,
        checker: Checker,
        submission_runner: RunnerClient,
        reference_runner: RunnerClient,
        *,
        reference: Reference,
        device: Device,
        rules: Rules,
    ) -> None:
        self._checker = checker
        self._submission_runner = submission_runner
        self._reference_runner = reference_runner
        self._reference = reference
        self._device = device
        self._rules = rules

    def case(self, case: Case, pairs: int, calibration: CaseCalibration | None) -> CaseSamples:
        """Take the pairs of a case and, if it was prepared for, its batches.

        Raises:
            HarnessError: the reference failed, which is never the student's fault.
        """
        try:
            timed = self._shared(case, pairs, calibration) if self._rules.shared_inputs else self._apart(case, pairs)
        except SubmissionFailedError as failed:
            timed = CaseSamples(case, failed.checked)
        except NO_MEMORY as error:
            # For what the judge makes for itself beside the submission: inputs, images, values to compare.
            timed = CaseSamples(case, self._checker.no_memory(self._submission_runner, 0, error))
        if timed.last.passed:
            return timed
        last = dataclasses.replace(timed.last, message=f"In a timed call: {timed.last.message}")
        return dataclasses.replace(timed, last=last)

    def _shared(self, case: Case, pairs: int, calibration: CaseCalibration | None) -> CaseSamples:
        """Each side's calls on the same inputs, in two stages at most; then the batches."""
        paired = PairedCalls(self._checker, case, self._submission_runner, self._reference_runner, self._device)
        last, taken = self._first_stage(paired, pairs, calibration)
        stages = [len(taken)]
        if (
            last.passed
            and not self._is_far(taken)
            and too_wide(taken, self._device.clock, self._rules.max_interval_width)
        ):
            more = (self._rules.second_stage_factor - 1) * len(taken)
            last, added = timed_pairs(paired.submission, paired.reference, more, warm=True)
            taken += added
            stages.append(len(added))
        if not last.passed:
            return CaseSamples(case, last, taken)
        paired.finish()
        fitting = calibration and calibration.fitting(call_us(taken, self._device.clock), self._rules)
        batches, dropped = self._batches(paired, taken, fitting) if fitting else ((), ())
        return CaseSamples(case, last, taken, tuple(stages), batches, dropped, fitting, paired.inputs, paired.expected)

    def _first_stage(
        self, paired: PairedCalls, pairs: int, calibration: CaseCalibration | None
    ) -> tuple[CallResult, tuple[Pair, ...]]:
        """What the lane asks for; and the rest for brief calls, but of a submission that is far slower."""
        call_us = calibration.reference_us if calibration else math.inf
        wanted = self._rules.first_stage_pairs(pairs, call_us)
        some = min(self._rules.first_stage_pairs(pairs, math.inf), wanted)
        last, taken = timed_pairs(paired.submission, paired.reference, some)
        if not last.passed or some == wanted or self._is_far(taken):
            return last, taken
        last, added = timed_pairs(paired.submission, paired.reference, wanted - some, warm=True)
        return last, taken + added

    def _is_far(self, pairs: tuple[Pair, ...]) -> bool:
        """Whether the submission is so much slower that no more pairs are worth its time."""
        return ratio_exceeds(pairs, self._device.clock, self._rules.max_ratio_for_full_sampling)

    def _batches(
        self, paired: PairedCalls, pairs: tuple[Pair, ...], calibration: CaseCalibration
    ) -> tuple[tuple[Batch, ...], tuple[Batch, ...]]:
        """One batch, and more as long as the bound is not reached with something to spare: none can make it looser.

        Returns:
            Those that count; and of the first ones those above the most that is ever allowed. They bound nothing,
            whatever the reference shows afterwards, and are not looked at, which is most of what a batch takes. The
            last ones are, whatever they show: the shortest of those that count is the bound.
        """
        event_us, rules = call_us(pairs, self._device.clock), self._rules
        max_us = event_us * (1 + max(calibration.tolerated_excess, rules.max_excess(calibration.reference_us)))
        taken: list[Batch] = []
        dropped: list[Batch] = []
        for number in range(rules.max_batches):
            counts = number >= min(rules.max_dropped, rules.max_batches - 1)
            should_verify = None if counts else partial(_within, calibration, max_us)
            batch, looked_at = paired.batch(
                calibration.calls, calibration.calls_per_buffer, number, calibration.copy_us, should_verify
            )
            (taken if looked_at else dropped).append(batch)
            margin = rules.bound_margin_for(calibration.reference_us, number + 1)
            if taken and calibration.bound_us(taken) <= event_us * (1 + calibration.tolerated_excess - margin):
                break
        paired.on_all_cores()
        return tuple(taken), tuple(dropped)

    def _apart(self, case: Case, pairs: int) -> CaseSamples:
        """Each call on inputs of its own."""
        last, taken = timed_pairs(
            lambda: self._checker.call(self._submission_runner, case), lambda: self._reference_call(case), pairs
        )
        return CaseSamples(case, last, taken, (len(taken),))

    def _reference_call(self, case: Case) -> CallResult:
        checked = self._checker.call(self._reference_runner, case)
        if checked.finished is None or (self._reference.right and not checked.passed):
            raise HarnessError(f"the reference {self._reference.name} failed in case {case.name}: {checked.message}")
        return checked


def _within(calibration: CaseCalibration, max_us: float, batch: Batch) -> bool:
    """Whether the batch shows that a call takes no longer."""
    return calibration.bound_us([batch]) <= max_us


def _pair(submission: CallResult, reference: CallResult) -> Pair:
    """The four times; both calls passed, so both came back."""
    if submission.finished is None or reference.finished is None:
        raise ValueError("a call that did not come back has no time")
    return Pair(
        submission.finished.event_us,
        submission.finished.sealed_us,
        reference.finished.event_us,
        reference.finished.sealed_us,
    )
