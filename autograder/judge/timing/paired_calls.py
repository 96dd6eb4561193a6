"""The calls of one ranked case: the submission on inputs that were never seen, the reference on those it has answered.

The reference's turn comes with inputs that the submission has given its answer for, so that nothing of the answer can
be left anywhere when the submission gets them; and its output is what the submission's is held against. The reference
is held against the oracle in its first call of a case, and whenever the two do not agree, the oracle decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from autograder.assignment import Case
from autograder.contract import Batch, Verdict
from autograder.errors import HarnessError
from autograder.judge.correctness.checker import BatchOutputs, CallOutputs, CallResult, Checker
from autograder.judge.protocol.batch_buffer import part_of
from autograder.judge.protocol.batch_inputs import DrawnInputs, StoredInputs, draw_key, stored_inputs
from autograder.judge.protocol.devices import Device
from autograder.judge.protocol.oom_attribution import MESSAGE, took_the_memory
from autograder.judge.protocol.runner_client import BatchReply, RunnerClient
from autograder.judge.protocol.tensors import Tensors


class SubmissionFailedError(Exception):
    """The submission failed in a timed call; `checked` says how."""

    def __init__(self, checked: CallResult) -> None:
        super().__init__(checked.message)
        self.checked = checked


class PairedCalls:
    """The two runners and what was asked of them.

    Args:
        submission_runner: the submission's runner; `None` where there is none any more, or none yet.
        known: inputs, and what the reference has made of them already.

    Attributes:
        inputs: what the reference was called with last.
        expected: what it made of it.
    """

    def __init__(
        self,
        checker: Checker,
        case: Case,
        submission_runner: RunnerClient | None,
        reference_runner: RunnerClient,
        device: Device,
        *,
        known: tuple[Tensors | None, Tensors | None] = (None, None),
    ) -> None:
        self._checker = checker
        self._case = case
        self._submission_runner = submission_runner
        self._reference_runner = reference_runner
        self._device = device
        self._pending: list[CallOutputs] = []
        self.inputs, self.expected = known
        self._reference_verified = self.expected is not None

    def submission(self) -> CallResult:
        """One call of the submission, in which nothing went wrong but perhaps the outputs' values."""
        if self._submission_runner is None:
            raise HarnessError("there is no submission to call")
        taken = self._checker.call_unverified(self._submission_runner, self._case, self._checker.draw(self._case))
        if isinstance(taken, CallResult):
            return taken
        self._pending.append(taken)
        return CallResult(Verdict.passed, "Passed.", finished=taken.finished)

    def reference(self, *, cold: bool = True) -> CallResult:
        """One call of the reference, and the comparison of the submission's call with the same inputs.

        Args:
            cold: it is timed.

        Raises:
            SubmissionFailedError: the submission's output was wrong, or it had taken the memory.
            HarnessError: the reference itself failed.
        """
        answered = self._pending.pop(0) if self._pending else None
        inputs = answered.inputs if answered else self.inputs or self._checker.draw(self._case)
        own = self._checker.call_unverified(
            self._reference_runner,
            self._case,
            inputs,
            cold=cold,
            suspect=self._submission_runner or self._reference_runner,
        )
        if isinstance(own, CallResult):
            raise self._failed(own)
        values = own.values()
        if not self._reference_verified or (answered is None and self.expected is not None):
            self._verify_reference(own, self.expected if self._reference_verified else None)
        if answered:
            self._compare(answered, values)
        self.inputs, self.expected = inputs, values
        return CallResult(Verdict.passed, "Passed.", finished=own.finished)

    def finish(self) -> None:
        """Have the reference answer what it has not come to, and compare: the oracle takes six times as long.

        Raises:
            SubmissionFailedError: an output was wrong, or the memory was taken.
            HarnessError: the reference failed.
        """
        while self._pending:
            self.reference(cold=False)

    def batch(
        self,
        calls: int,
        calls_per_buffer: int,
        turn: int,
        max_copy_us: float,
        should_verify: Callable[[Batch], bool] | None = None,
    ) -> tuple[Batch, bool]:
        """A batch of the submission, and whether its outputs were compared with the reference's: or it must not count.

        Args:
            calls_per_buffer: so many calls share a buffer.
            turn: for further ones its runner is kept on one core after the other: a neighbour may make one of them slow
                for seconds, and a process stays where it is.
            max_copy_us: no more is taken off for its outputs' copies by themselves, or whoever slows those gains.
            should_verify: whether to look at one that took so long; at any where this is not given.

        Raises:
            SubmissionFailedError: the submission failed.
            HarnessError: the reference did.
        """
        if self._submission_runner is None:
            raise HarnessError("there is no submission to call")
        draw, key = partial(self._checker.draw, self._case), draw_key(self._device.where)
        inputs = [DrawnInputs(self._checker.assignment, self._case, draw, key) for _ in range(calls)]
        self._submission_runner.pin_core(turn)
        outputs = self._checker.batch(
            self._submission_runner, self._case, inputs, calls_per_buffer=calls_per_buffer,
            should_verify=should_verify and (lambda finished: should_verify(_batch(finished, max_copy_us))),
        )  # fmt: skip
        if isinstance(outputs, CallResult):
            raise SubmissionFailedError(outputs)
        part = part_of(calls, calls_per_buffer)
        for first in range(0, len(outputs.calls), part):
            some = slice(first, first + part)
            self._compare_batch(outputs.calls[some], outputs.inputs[some], calls_per_buffer)
        return _batch(outputs, max_copy_us), bool(outputs.calls)

    def _compare_batch(
        self, submission_calls: Sequence[CallOutputs], inputs: Sequence[StoredInputs], calls_per_buffer: int
    ) -> None:
        """Compare some calls of a batch with the reference's, of which nobody asks how long they take."""
        reference_outputs = self._checker.batch(
            self._reference_runner,
            self._case,
            inputs,
            calls_per_buffer=calls_per_buffer,
            cold=False,
            suspect=self._submission_runner,
        )
        if isinstance(reference_outputs, CallResult):
            raise self._failed(reference_outputs)
        for one, other in zip(submission_calls, reference_outputs.calls, strict=True):
            self._compare(one, other.values())

    def on_all_cores(self) -> None:
        """Let both runners have all of their cores."""
        for runner in filter(None, (self._submission_runner, self._reference_runner)):
            runner.pin_core(0)

    def reference_batches(
        self, calls: int, calls_per_buffer: int, times: int, *, moved: bool, max_copy_us: float
    ) -> tuple[Batch, ...]:
        """A few batches of the reference by itself, to see what the node can show at all.

        Args:
            moved: on core after core, as a submission's further ones were: both may rank by their shortest. Not where
                they say how much a submission is allowed: a slow core would allow more.
            max_copy_us: as in `batch`.
        """
        taken = []
        for turn in range(times):
            self._reference_runner.pin_core(turn if moved else 0)
            taken.append(self._reference_batch(calls, calls_per_buffer, max_copy_us))
        self.on_all_cores()
        return tuple(taken)

    def _reference_batch(self, calls: int, calls_per_buffer: int, max_copy_us: float) -> Batch:
        """On the inputs of its last call, in memory as fresh as a submission's."""
        tensors = self.inputs or self._checker.draw(self._case)
        inputs = [stored_inputs(self._checker.assignment, self._case, tensors)] * calls
        outputs = self._checker.batch(self._reference_runner, self._case, inputs, calls_per_buffer=calls_per_buffer)
        if isinstance(outputs, CallResult):
            raise self._failed(outputs)
        return _batch(outputs, max_copy_us)

    def _compare(self, taken: CallOutputs, expected: Tensors | None) -> None:
        checked = self._checker.verify(taken, expected, suspect=self._submission_runner)
        if not checked.passed:
            raise SubmissionFailedError(checked)

    def _verify_reference(self, own: CallOutputs, expected: Tensors | None) -> None:
        """Hold the reference against the oracle, or against itself on the same inputs."""
        checked = self._checker.verify(own, expected, suspect=self._submission_runner)
        if not checked.passed:
            raise self._failed(checked)
        self._reference_verified = True

    def _failed(self, checked: CallResult) -> Exception:
        """The reference failed: because the submission had taken the memory, or else it is ours."""
        suspect = self._submission_runner if checked.verdict is Verdict.out_of_memory else None
        if suspect and (checked.message == MESSAGE or took_the_memory(self._device, suspect, 0)):
            return SubmissionFailedError(CallResult(Verdict.out_of_memory, MESSAGE, ended=True))
        return HarnessError(f"the reference failed in case {self._case.name}: {checked.message}")


def _batch(taken: BatchOutputs | BatchReply, max_copy_us: float) -> Batch:
    """A batch's times, the sealed one without what copying the outputs takes, as far as it is known what that is."""
    copy_us = min(taken.copy_us, max_copy_us)
    return Batch(taken.sealed_us - copy_us, taken.event_us, copy_us)
