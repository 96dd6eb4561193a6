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
from autograder.judge.correctness.checker import Checked, Checker, Taken, TakenBatch
from autograder.judge.protocol.batch_buffer import part_of
from autograder.judge.protocol.batch_inputs import Fresh, Kept, draw_key, kept
from autograder.judge.protocol.devices import Device
from autograder.judge.protocol.oom_attribution import MESSAGE, took_the_memory
from autograder.judge.protocol.runner_client import Conversation, FinishedBatch
from autograder.judge.protocol.tensors import Tensors


class FailedError(Exception):
    """The submission failed in a timed call; `checked` says how."""

    def __init__(self, checked: Checked) -> None:
        super().__init__(checked.message)
        self.checked = checked


class Turns:
    """The two runners and what was asked of them.

    Args:
        ours: the submission's runner; `None` where there is none any more, or none yet.
        known: inputs, and what the reference has made of them already.

    Attributes:
        inputs: what the reference was called with last.
        expected: what it made of it.
    """

    def __init__(
        self,
        checker: Checker,
        case: Case,
        ours: Conversation | None,
        theirs: Conversation,
        device: Device,
        *,
        known: tuple[Tensors | None, Tensors | None] = (None, None),
    ) -> None:
        self._checker = checker
        self._case = case
        self._ours = ours
        self._theirs = theirs
        self._device = device
        self._pending: list[Taken] = []
        self.inputs, self.expected = known
        self._trusted = self.expected is not None

    def submission(self) -> Checked:
        """One call of the submission, in which nothing went wrong but perhaps the outputs' values."""
        if self._ours is None:
            raise HarnessError("there is no submission to call")
        taken = self._checker.take(self._ours, self._case, self._checker.draw(self._case))
        if isinstance(taken, Checked):
            return taken
        self._pending.append(taken)
        return Checked(Verdict.passed, "Passed.", finished=taken.finished)

    def reference(self, *, cold: bool = True) -> Checked:
        """One call of the reference, and the comparison of the submission's call with the same inputs.

        Args:
            cold: it is timed.

        Raises:
            FailedError: the submission's output was wrong, or it had taken the memory.
            HarnessError: the reference itself failed.
        """
        answered = self._pending.pop(0) if self._pending else None
        inputs = answered.inputs if answered else self.inputs or self._checker.draw(self._case)
        own = self._checker.take(self._theirs, self._case, inputs, cold=cold, suspect=self._ours or self._theirs)
        if isinstance(own, Checked):
            raise self._failed(own)
        values = own.values()
        if not self._trusted or (answered is None and self.expected is not None):
            self._trust(own, self.expected if self._trusted else None)
        if answered:
            self._settle(answered, values)
        self.inputs, self.expected = inputs, values
        return Checked(Verdict.passed, "Passed.", finished=own.finished)

    def finish(self) -> None:
        """Have the reference answer what it has not come to, and compare: the oracle takes six times as long.

        Raises:
            FailedError: an output was wrong, or the memory was taken.
            HarnessError: the reference failed.
        """
        while self._pending:
            self.reference(cold=False)

    def batch(
        self, calls: int, together: int, turn: int, most_copy_us: float, worth: Callable[[Batch], bool] | None = None
    ) -> tuple[Batch, bool]:
        """A batch of the submission, and whether its outputs were compared with the reference's: or it must not count.

        Args:
            together: so many calls share a slab.
            turn: for further ones its runner is kept on one core after the other: a neighbour may make one of them slow
                for seconds, and a process stays where it is.
            most_copy_us: no more is taken off for its outputs' copies by themselves, or whoever slows those gains.
            worth: whether to look at one that took so long; at any where this is not given.

        Raises:
            FailedError: the submission failed.
            HarnessError: the reference did.
        """
        if self._ours is None:
            raise HarnessError("there is no submission to call")
        draw, key = partial(self._checker.draw, self._case), draw_key(self._device.where)
        inputs = [Fresh(self._checker.assignment, self._case, draw, key) for _ in range(calls)]
        self._ours.move(turn)
        ours = self._checker.batch(
            self._ours, self._case, inputs, together=together,
            worth=worth and (lambda finished: worth(_batch(finished, most_copy_us))),
        )  # fmt: skip
        if isinstance(ours, Checked):
            raise FailedError(ours)
        part = part_of(calls, together)
        for first in range(0, len(ours.calls), part):
            some = slice(first, first + part)
            self._agreed(ours.calls[some], ours.inputs[some], together)
        return _batch(ours, most_copy_us), bool(ours.calls)

    def _agreed(self, ours: Sequence[Taken], inputs: Sequence[Kept], together: int) -> None:
        """Compare some calls of a batch with the reference's, of which nobody asks how long they take."""
        theirs = self._checker.batch(
            self._theirs, self._case, inputs, together=together, cold=False, suspect=self._ours
        )
        if isinstance(theirs, Checked):
            raise self._failed(theirs)
        for one, other in zip(ours, theirs.calls, strict=True):
            self._settle(one, other.values())

    def on_all_cores(self) -> None:
        """Let both runners have all of their cores."""
        for runner in filter(None, (self._ours, self._theirs)):
            runner.move(0)

    def reference_batches(
        self, calls: int, together: int, times: int, *, moved: bool, most_copy_us: float
    ) -> tuple[Batch, ...]:
        """A few batches of the reference by itself, to see what the node can show at all.

        Args:
            moved: on core after core, as a submission's further ones were: both may rank by their shortest. Not where
                they say how much a submission is allowed: a slow core would allow more.
            most_copy_us: as in `batch`.
        """
        taken = []
        for turn in range(times):
            self._theirs.move(turn if moved else 0)
            taken.append(self._reference_batch(calls, together, most_copy_us))
        self.on_all_cores()
        return tuple(taken)

    def _reference_batch(self, calls: int, together: int, most_copy_us: float) -> Batch:
        """On the inputs of its last call, in memory as fresh as a submission's."""
        tensors = self.inputs or self._checker.draw(self._case)
        inputs = [kept(self._checker.assignment, self._case, tensors)] * calls
        theirs = self._checker.batch(self._theirs, self._case, inputs, together=together)
        if isinstance(theirs, Checked):
            raise self._failed(theirs)
        return _batch(theirs, most_copy_us)

    def _settle(self, taken: Taken, expected: Tensors | None) -> None:
        checked = self._checker.verify(taken, expected, suspect=self._ours)
        if not checked.passed:
            raise FailedError(checked)

    def _trust(self, own: Taken, expected: Tensors | None) -> None:
        """Hold the reference against the oracle, or against itself on the same inputs."""
        checked = self._checker.verify(own, expected, suspect=self._ours)
        if not checked.passed:
            raise self._failed(checked)
        self._trusted = True

    def _failed(self, checked: Checked) -> Exception:
        """The reference failed: because the submission had taken the memory, or else it is ours."""
        suspect = self._ours if checked.verdict is Verdict.out_of_memory else None
        if suspect and (checked.message == MESSAGE or took_the_memory(self._device, suspect, 0)):
            return FailedError(Checked(Verdict.out_of_memory, MESSAGE, ended=True))
        return HarnessError(f"the reference failed in case {self._case.name}: {checked.message}")


def _batch(taken: TakenBatch | FinishedBatch, most_copy_us: float) -> Batch:
    """A batch's times, the sealed one without what copying the outputs takes, as far as it is known what that is."""
    copy_us = min(taken.copy_us, most_copy_us)
    return Batch(taken.sealed_us - copy_us, taken.event_us, copy_us)
