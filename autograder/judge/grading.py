"""One grading, phase by phase: prepare, compile, check public and hidden cases, measure, look for the kernel."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from typing import Self

from autograder.assignment import Assignment, Case, load_assignment
from autograder.contract import (
    MAX_LOG_CHARS,
    MAX_SOURCE_BYTES,
    CaseFinished,
    CaseResult,
    Event,
    Finding,
    GradeRequest,
    GradeResult,
    Measurement,
    Mode,
    Phase,
    Verdict,
    Visibility,
)
from autograder.errors import HarnessError
from autograder.judge import ghost, summary
from autograder.judge.cases import SYSTEM_RANDOM, hidden_cases
from autograder.judge.checking import Checked, Checker
from autograder.judge.conversation import Conversation
from autograder.judge.defences import ALL_ON, Defences
from autograder.judge.environment import environment
from autograder.judge.failure import Failure, clean
from autograder.judge.phases import Emit, Phases
from autograder.judge.problem import load_problem
from autograder.judge.references import References, find_reference
from autograder.judge.runners import Runners
from autograder.judge.stopwatch import Stopwatch
from autograder.sandbox import Sandbox


def grade(
    request: GradeRequest,
    *,
    assignment_folder: Path,
    reference_folder: Path | None,
    sandbox: Sandbox,
    emit: Emit = lambda _: None,
    defences: Defences = ALL_ON,
    references: References | None = None,
) -> GradeResult:
    """Grade one source.

    Args:
        request: what to grade.
        assignment_folder: the public part of the assignment.
        reference_folder: the staff part; `None` on a student's machine, where there are public cases only.
        sandbox: starts the runners.
        emit: gets every phase and every case as it happens; the result is only returned.
        defences: all on, except in a test.
        references: warm reference runners that outlive this grading.

    Returns:
        The result; one with the verdict `grader_error` if something of ours failed.
    """
    phases = Phases(emit)
    warm = references or References(sandbox)
    try:
        with Grading(
            request, (assignment_folder, reference_folder), sandbox, phases, references=warm, defences=defences
        ) as grading:
            return grading.run()
    except Exception:  # noqa: BLE001 - the job's boundary: what fails here is ours, and the next job must not suffer
        traceback.print_exc(file=sys.stderr)
        return GradeResult(Verdict.grader_error, summary.OURS, (), phases=phases.times())
    finally:
        if references is None:
            warm.close()


class Grading:
    """One grading's state; a context, after which nothing of it runs any more."""

    def __init__(
        self,
        request: GradeRequest,
        folders: tuple[Path, Path | None],
        sandbox: Sandbox,
        phases: Phases,
        *,
        references: References,
        defences: Defences,
    ) -> None:
        phases.enter(Phase.preparing)
        self._request = request
        self._folders = folders
        self._sandbox = sandbox
        self._phases = phases
        self._references = references
        self._defences = defences
        self._assignment = _assignment_for(request, folders[0])
        self._checker = Checker(self._assignment, load_problem(self._assignment, folders[0]), defences)
        self._runners = Runners(request, self._assignment, sandbox, defences)
        self._cases = self._assignment.cases_for(request.lane) + self._hidden_cases()
        self._results = [_result(case, None, "This case was not run.") for case in self._cases]
        self._record = ghost.Record()
        self._log = ""

    def __enter__(self) -> Self:
        """Runners are started when they are needed."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the runner that is left, and let go of memory that was kept."""
        self._runners.close()
        self._checker.close()

    def run(self) -> GradeResult:
        """Walk the phases."""
        self._phases.enter(Phase.compiling)
        runner = _refused(self._request) or self._runners.fresh()
        self._log = self._runners.log()
        if isinstance(runner, Failure):
            return self._report(failed=runner)
        self._phases.enter(Phase.checking)
        self._check_public(runner)
        self._check_hidden()
        measurements = self._measure() if self._goes_on() else ()
        findings = self._look_for_the_kernel() if self._goes_on() else ()
        return self._report(measurements=measurements, findings=findings)

    def _hidden_cases(self) -> tuple[Case, ...]:
        folder = self._folders[1]
        wanted = self._request.mode is Mode.submission and self._defences.hidden_cases
        return hidden_cases(folder, self._assignment, self._request.lane, SYSTEM_RANDOM) if folder and wanted else ()

    def _numbers(self, visibility: Visibility) -> list[int]:
        return [number for number, case in enumerate(self._cases) if case.visibility is visibility]

    def _goes_on(self) -> bool:
        """Whether a submission has passed everything so far."""
        passed = all(result.verdict is Verdict.passed for result in self._results)
        return passed and self._request.mode is Mode.submission

    def _check_public(self, runner: Conversation) -> None:
        for number in self._numbers(Visibility.public):
            checked = self._checker.case(runner, self._cases[number])
            self._record.add(checked)
            self._finish(number, checked)
            if checked.ended:
                break
        self._log = runner.log()

    def _check_hidden(self) -> None:
        """In a runner that has seen nothing; not at all if no public case passed."""
        numbers = self._numbers(Visibility.hidden)
        if not numbers or not any(result.verdict is Verdict.passed for result in self._results):
            return
        runner = self._runners.another()
        if isinstance(runner, Failure):
            self._finish(numbers[0], as_checked(runner))
            return
        found: dict[int, Checked] = {}
        for number in numbers:
            found[number] = self._checker.case(runner, self._cases[number])
            if found[number].ended:
                break
        for number, checked in found.items():  # Said together: when each one came would tell its size.
            self._finish(number, checked)

    def _finish(self, number: int, checked: Checked) -> None:
        """Keep a case's result and say it; a timed call may replace what the checked ones had shown."""
        result = _result(self._cases[number], checked.verdict, checked.message, checked)
        self._results[number] = result
        self._phases.emit(Event(case=CaseFinished(number, len(self._cases), result)))

    def _measure(self) -> tuple[Measurement, ...]:
        """Time the ranked cases beside the reference; a timed call that fails replaces its case's result."""
        policy = self._assignment.policy(self._request.lane)
        reference = find_reference(*self._folders, self._request.language)
        ranked = [number for number, case in enumerate(self._cases) if case.ranked]
        if not ranked or policy is None or not policy.ranks or reference is None:
            return ()
        self._phases.enter(Phase.measuring)
        ours = self._runners.another()
        watch = Stopwatch(self._checker, self._references, self._assignment)
        taken: list[Measurement] = []
        for number in ranked:
            if isinstance(ours, Failure):
                found: Measurement | Checked = as_checked(ours)
            else:
                found = watch.case(ours, self._cases[number], reference, self._request, policy.pairs)
            if isinstance(found, Checked):
                self._finish(number, found)
                break
            taken.append(found)
        return tuple(taken)

    def _look_for_the_kernel(self) -> tuple[Finding, ...]:
        """Replay the first public case of every group with kernels that do nothing."""
        self._phases.enter(Phase.profiling)
        runner = self._runners.fresh(ghost=True)
        replays: dict[str, Checked] = {}
        firsts = {case.group: case for case in reversed(self._cases) if case.visibility is Visibility.public}
        for case in firsts.values():
            if isinstance(runner, Failure) or any(checked.ended for checked in replays.values()):
                break
            replays[case.name] = self._checker.call(runner, case)
        complete = len(replays) == len(firsts) and not any(checked.ended for checked in replays.values())
        return ghost.findings(self._assignment, self._record, replays, complete=complete)

    def _report(
        self,
        failed: Failure | None = None,
        measurements: tuple[Measurement, ...] = (),
        findings: tuple[Finding, ...] = (),
    ) -> GradeResult:
        """Put everything together."""
        self._phases.enter(Phase.reporting)
        self._runners.close()
        mode = self._request.mode
        return GradeResult(
            verdict=failed.verdict if failed else summary.verdict_of(self._results),
            explanation=failed.message if failed else summary.explanation(self._results, mode),
            cases=tuple(self._results),
            error=failed.error if failed else summary.error_of(self._results),
            measurements=measurements,
            findings=findings,
            launches=self._record.as_launches(),
            log=clean(self._log, MAX_LOG_CHARS),
            phases=self._phases.times(),
            environment=environment(self._sandbox, self._runners.versions),
            promises=tuple(sorted(self._sandbox.promises)),
        )


def as_checked(failure: Failure) -> Checked:
    """A failure to load again, as what the next case showed."""
    return Checked(failure.verdict, failure.message, error=failure.error, ended=True)


def _assignment_for(request: GradeRequest, folder: Path) -> Assignment:
    assignment = load_assignment(folder)
    if request.language not in assignment.languages:
        raise HarnessError(f"{assignment.slug} is not graded in {request.language}")
    if assignment.policy(request.lane) is None:
        raise HarnessError(f"{assignment.slug} is not graded on the lane {request.lane}")
    return assignment


def _refused(request: GradeRequest) -> Failure | None:
    """A source that no runner has to see."""
    try:
        size = len(request.source.encode())
    except UnicodeEncodeError:
        return Failure(Verdict.compile_error, "The file is not text in UTF-8. Save it as UTF-8.")
    if size > MAX_SOURCE_BYTES:
        return Failure(Verdict.compile_error, f"The file has {size} bytes; at most {MAX_SOURCE_BYTES} are accepted.")
    return None


def _result(case: Case, verdict: Verdict | None, message: str, checked: Checked | None = None) -> CaseResult:
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
