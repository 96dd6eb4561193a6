"""Time one ranked case of a submission beside its reference."""

from __future__ import annotations

import dataclasses

from autograder.assignment import Assignment, Case
from autograder.contract import GradeRequest, Measurement
from autograder.errors import HarnessError
from autograder.judge.checking import Checked, Checker
from autograder.judge.conversation import Conversation
from autograder.judge.measure import measurement, timed_pairs
from autograder.judge.references import Reference, References


class Stopwatch:
    """Holds the reference's runner while ranked cases are timed; whoever is not called is frozen."""

    def __init__(self, checker: Checker, references: References, assignment: Assignment) -> None:
        self._checker = checker
        self._references = references
        self._assignment = assignment

    def case(
        self, ours: Conversation, case: Case, reference: Reference, request: GradeRequest, pairs: int
    ) -> Measurement | Checked:
        """The case's speed; or the submission's call that did not pass.

        Raises:
            HarnessError: the reference failed, which is never the student's fault.
        """
        theirs = self._references.get(self._assignment, request.bundle, request.language, reference)
        taken = timed_pairs(
            lambda: self._checker.call(ours, case), lambda: self._reference_call(theirs, case, reference), pairs
        )
        if isinstance(taken, Checked):
            return dataclasses.replace(taken, message=f"In a timed call: {taken.message}")
        return measurement(self._assignment, case, taken)

    def _reference_call(self, theirs: Conversation, case: Case, reference: Reference) -> Checked:
        checked = self._checker.call(theirs, case)
        if checked.finished is None or (reference.right and not checked.passed):
            self._references.drop(theirs)
            raise HarnessError(f"the reference {reference.name} failed in case {case.name}: {checked.message}")
        return checked
