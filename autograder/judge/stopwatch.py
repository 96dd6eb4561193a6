"""Time one ranked case of a submission beside its reference."""

from __future__ import annotations

import dataclasses

from autograder.assignment import Case
from autograder.contract import Pair
from autograder.errors import HarnessError
from autograder.judge.checking import Checked, Checker
from autograder.judge.conversation import Conversation
from autograder.judge.measure import timed_pairs
from autograder.judge.references import Reference


class Stopwatch:
    """Has two runners take turns; whoever is not called is frozen."""

    def __init__(self, checker: Checker, ours: Conversation, theirs: Conversation, reference: Reference) -> None:
        self._checker = checker
        self._ours = ours
        self._theirs = theirs
        self._reference = reference

    def case(self, case: Case, pairs: int) -> tuple[Checked, tuple[Pair, ...]]:
        """The submission's last call, which passed or ended the measuring; and the case's samples.

        Raises:
            HarnessError: the reference failed, which is never the student's fault.
        """
        last, taken = timed_pairs(
            lambda: self._checker.call(self._ours, case), lambda: self._reference_call(case), pairs
        )
        if not last.passed:
            last = dataclasses.replace(last, message=f"In a timed call: {last.message}")
        return last, taken

    def _reference_call(self, case: Case) -> Checked:
        checked = self._checker.call(self._theirs, case)
        if checked.finished is None or (self._reference.right and not checked.passed):
            raise HarnessError(f"the reference {self._reference.name} failed in case {case.name}: {checked.message}")
        return checked
