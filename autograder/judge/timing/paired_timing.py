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
from autograder.judge.correctness.checker import NO_MEMORY, Checked, Checker
from autograder.judge.protocol.devices import Device
from autograder.judge.protocol.runner_client import Conversation
from autograder.judge.protocol.tensors import Tensors
from autograder.judge.rules import Rules
from autograder.judge.timing.calibration import Prepared
from autograder.judge.timing.estimators import call_us, far_slower, too_wide
from autograder.judge.timing.paired_calls import FailedError, Turns
from autograder.judge.timing.references import Reference

Call = Callable[[], Checked]


@dataclass(frozen=True)
class Timed:
    """What the calls of one ranked case showed while the submission lived.

    Attributes:
        last: its last call, which passed or ended the measuring.
        stages: pairs by stage of sampling.
        dropped: batches that were too long to bound anything, and not looked at.
        prepared: what the batches were taken with.
        inputs, expected: what the reference was called with last, and what it made of it.
    """

    case: Case
    last: Checked
    pairs: tuple[Pair, ...] = ()
    stages: tuple[int, ...] = ()
    batches: tuple[Batch, ...] = ()
    dropped: tuple[Batch, ...] = ()
    prepared: Prepared | None = None
    inputs: Tensors | None = None
    expected: Tensors | None = None


def timed_pairs(
    submission: Call, reference: Call, count: int, *, warm: bool = False
) -> tuple[Checked, tuple[Pair, ...]]:
    """Take `count` pairs in the order A B, B A, A B …, after one call of each that is not kept, unless both are warm.

    Returns:
        The submission's last call, which ends the measuring if it did not pass; and the pairs until then.
    """
    taken: list[Pair] = []
    for number in range(0 if warm else -1, count):
        if number % 2:
            theirs, ours = reference(), submission()
        else:
            ours = submission()
            theirs = reference() if ours.passed else ours
        if not ours.passed:
            break
        if number >= 0:
            taken.append(_pair(ours, theirs))
    return ours, tuple(taken)


class Stopwatch:
    """Has two runners take turns; whoever is not called is frozen."""

    def __init__(
        self,
        checker: Checker,
        ours: Conversation,
        theirs: Conversation,
        *,
        reference: Reference,
        device: Device,
        rules: Rules,
    ) -> None:
        self._checker = checker
        self._ours = ours
        self._theirs = theirs
        self._reference = reference
        self._device = device
        self._rules = rules

    def case(self, case: Case, pairs: int, prepared: Prepared | None) -> Timed:
        """Take the pairs of a case and, if it was prepared for, its batches.

        Raises:
            HarnessError: the reference failed, which is never the student's fault.
        """
        try:
            timed = self._shared(case, pairs, prepared) if self._rules.shared_inputs else self._apart(case, pairs)
        except FailedError as failed:
            timed = Timed(case, failed.checked)
        except NO_MEMORY as error:
            # For what the judge makes for itself beside the submission: inputs, images, values to compare.
            timed = Timed(case, self._checker.no_memory(self._ours, 0, error))
        if timed.last.passed:
            return timed
        last = dataclasses.replace(timed.last, message=f"In a timed call: {timed.last.message}")
        return dataclasses.replace(timed, last=last)

    def _shared(self, case: Case, pairs: int, prepared: Prepared | None) -> Timed:
        """Each side's calls on the same inputs, in two stages at most; then the batches."""
        turns = Turns(self._checker, case, self._ours, self._theirs, self._device)
        last, taken = self._first_stage(turns, pairs, prepared)
        stages = [len(taken)]
        if last.passed and not self._is_far(taken) and too_wide(taken, self._device.clock, self._rules.widest):
            more = (self._rules.second_stage - 1) * len(taken)
            last, added = timed_pairs(turns.submission, turns.reference, more, warm=True)
            taken += added
            stages.append(len(added))
        if not last.passed:
            return Timed(case, last, taken)
        turns.finish()
        fitting = prepared and prepared.fitting(call_us(taken, self._device.clock), self._rules)
        batches, dropped = self._batches(turns, taken, fitting) if fitting else ((), ())
        return Timed(case, last, taken, tuple(stages), batches, dropped, fitting, turns.inputs, turns.expected)

    def _first_stage(self, turns: Turns, pairs: int, prepared: Prepared | None) -> tuple[Checked, tuple[Pair, ...]]:
        """What the lane asks for; and the rest for brief calls, but of a submission that is far slower."""
        call_us = prepared.reference_us if prepared else math.inf
        wanted = self._rules.first_stage(pairs, call_us)
        some = min(self._rules.first_stage(pairs, math.inf), wanted)
        last, taken = timed_pairs(turns.submission, turns.reference, some)
        if not last.passed or some == wanted or self._is_far(taken):
            return last, taken
        last, added = timed_pairs(turns.submission, turns.reference, wanted - some, warm=True)
        return last, taken + added

    def _is_far(self, pairs: tuple[Pair, ...]) -> bool:
        """Whether the submission is so much slower that no more pairs are worth its time."""
        return far_slower(pairs, self._device.clock, self._rules.far)

    def _batches(
        self, turns: Turns, pairs: tuple[Pair, ...], prepared: Prepared
    ) -> tuple[tuple[Batch, ...], tuple[Batch, ...]]:
        """One batch, and more as long as the bound is not reached with something to spare: none can make it looser.

        Returns:
            Those that count; and of the first ones those above the most that is ever allowed. They bound nothing,
            whatever the reference shows afterwards, and are not looked at, which is most of what a batch takes. The
            last ones are, whatever they show: the shortest of those that count is the bound.
        """
        event_us, rules = call_us(pairs, self._device.clock), self._rules
        most_us = event_us * (1 + max(prepared.limit, rules.most(prepared.reference_us)))
        taken: list[Batch] = []
        dropped: list[Batch] = []
        for number in range(rules.most_batches):
            counts = number >= min(rules.most_dropped, rules.most_batches - 1)
            worth = None if counts else partial(_within, prepared, most_us)
            batch, looked_at = turns.batch(prepared.calls, prepared.together, number, prepared.copy_us, worth)
            (taken if looked_at else dropped).append(batch)
            spare = rules.to_spare(prepared.reference_us, number + 1)
            if taken and prepared.bound_us(taken) <= event_us * (1 + prepared.limit - spare):
                break
        turns.on_all_cores()
        return tuple(taken), tuple(dropped)

    def _apart(self, case: Case, pairs: int) -> Timed:
        """Each call on inputs of its own."""
        last, taken = timed_pairs(
            lambda: self._checker.call(self._ours, case), lambda: self._reference_call(case), pairs
        )
        return Timed(case, last, taken, (len(taken),))

    def _reference_call(self, case: Case) -> Checked:
        checked = self._checker.call(self._theirs, case)
        if checked.finished is None or (self._reference.right and not checked.passed):
            raise HarnessError(f"the reference {self._reference.name} failed in case {case.name}: {checked.message}")
        return checked


def _within(prepared: Prepared, most_us: float, batch: Batch) -> bool:
    """Whether the batch shows that a call takes no longer."""
    return prepared.bound_us([batch]) <= most_us


def _pair(ours: Checked, theirs: Checked) -> Pair:
    """The four times; both calls passed, so both came back."""
    if ours.finished is None or theirs.finished is None:
        raise ValueError("a call that did not come back has no time")
    return Pair(ours.finished.event_us, ours.finished.sealed_us, theirs.finished.event_us, theirs.finished.sealed_us)
