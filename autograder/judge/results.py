"""What each case of a grading has shown so far, said as it happens."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from autograder.assignment import Case
from autograder.contract import CaseFinished, CaseResult, Event, Verdict, Visibility
from autograder.judge.correctness import facts
from autograder.judge.correctness.checker import CallResult
from autograder.judge.correctness.clues import CaseRun
from autograder.judge.phases import Emit


class Results:
    """The cases of one grading in their order, each with its result once there is one.

    Attributes:
        cases: what is graded.
    """

    def __init__(self, cases: Sequence[Case], emit: Emit) -> None:
        self.cases = tuple(cases)
        self._results = [_result(case, None, "This case was not run.") for case in self.cases]
        self._facts = [facts.NONE for _ in self.cases]
        self._emit = emit

    def numbers(self, wanted: Callable[[Case], bool]) -> list[int]:
        """The numbers of the cases that are wanted, in order."""
        return [number for number, case in enumerate(self.cases) if wanted(case)]

    def of(self, visibility: Visibility) -> list[int]:
        """The numbers of the public or of the hidden cases."""
        return self.numbers(lambda case: case.visibility is visibility)

    def cases_of(self, visibility: Visibility) -> list[Case]:
        """The public or the hidden cases."""
        return [self.cases[number] for number in self.of(visibility)]

    def finish(self, number: int, checked: CallResult) -> None:
        """Keep a case's result and say it; a timed call may replace what the checked ones had shown."""
        self._results[number] = _result(self.cases[number], checked.verdict, checked.message, checked)
        self._facts[number] = checked.facts
        self._emit(Event(case=CaseFinished(number, len(self.cases), self._results[number])))

    def any_passed(self) -> bool:
        """Whether at least one case has passed."""
        return any(result.verdict is Verdict.passed for result in self._results)

    def none_failed(self) -> bool:
        """Whether nothing was found wrong so far."""
        return all(result.verdict in {Verdict.passed, None} for result in self._results)

    def seen(self) -> tuple[CaseRun, ...]:
        """The public cases that were run, and what is known of them."""
        run = (number for number in self.of(Visibility.public) if self._results[number].verdict is not None)
        return tuple(CaseRun(self.cases[number], self._results[number], self._facts[number]) for number in run)

    def all(self) -> tuple[CaseResult, ...]:
        """Every case, run or not."""
        return tuple(self._results)


def _result(case: Case, verdict: Verdict | None, message: str, checked: CallResult | None = None) -> CaseResult:
    return CaseResult(
        name=case.name,
        category=case.category or case.name,
        group=case.group,
        visibility=case.visibility,
        ranked=case.ranked,
        verdict=verdict,
        message=message,
        mismatch=checked.mismatch if checked else None,
        error=checked.error if checked else None,
        seconds=checked.seconds if checked else None,
    )
