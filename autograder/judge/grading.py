"""One grading, phase by phase, whole or in its two halves; a profile goes its own way (`profiling`).

    phase        all   check   measure
    preparing     x      x        x      read the assignment, draw the hidden cases
    compiling     x      x        x      load the submission in a runner of its own
    checking      x      x               public cases, then hidden ones in fresh runners
    measuring     x               x      ranked cases beside the reference, every timed call a checked call; the clocks
    profiling     x      x               look for the kernel: the record of the public cases, the device's trace, the
                                         no-op replay; compile it for targets that may not be there (a run's too)
    reporting     x      x        x

Looking for the kernel belongs to the check: it needs the record of what ran in the public cases, and no clock. So it
never takes time on a GPU that somebody waits to measure on, and staff have its findings before anything is measured.
A `measure` attempt knows the ranked cases only: the hidden ones were met in the check, and are not drawn again.
"""

from __future__ import annotations

import dataclasses
import gc
import logging
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from autograder import languages, listings, toolchain
from autograder.assignment import Assignment, Case, load_assignment
from autograder.contract import (
    MAX_LOG_CHARS,
    MAX_SOURCE_BYTES,
    CaseResult,
    Counted,
    Finding,
    GradeRequest,
    GradeResult,
    Lane,
    Measurement,
    Mode,
    Phase,
    RequirementResult,
    Verdict,
    Visibility,
    Work,
)
from autograder.errors import HarnessError, SandboxError
from autograder.findings import together
from autograder.judge.compile import cross_compile, requirements, target_rejections
from autograder.judge.correctness import summary
from autograder.judge.correctness.cases import SYSTEM_RANDOM, hidden_cases
from autograder.judge.correctness.checker import CallResult, Checker
from autograder.judge.correctness.checker import as_result as call_as_result
from autograder.judge.correctness.clues import Scene
from autograder.judge.correctness.parallel_cases import (
    MAX_RUNNERS,
    MAX_RUNNERS_PRECOMPILED,
    MIN_CASES_PER_RUNNER,
    RETRIED_ALONE,
    CaseDispatcher,
    room_for,
)
from autograder.judge.correctness.problem import load_problem
from autograder.judge.defences import ALL_ON, Defences
from autograder.judge.environment import environment
from autograder.judge.phases import Emit, Phases
from autograder.judge.probes import counting, profiling, sanitizing, work_findings
from autograder.judge.probes.post_timing_trace import KernelTrace
from autograder.judge.probes.work_probe import WorkProbe
from autograder.judge.protocol import devices
from autograder.judge.protocol.failure import Failure, clean
from autograder.judge.protocol.own_time import BACKSTOP, wait_until_machine_idle
from autograder.judge.protocol.runner_client import RunnerClient
from autograder.judge.results import Results
from autograder.judge.runners import Runners
from autograder.judge.timing import validity
from autograder.judge.timing.measurement import MeasurementSession
from autograder.judge.timing.paired_timing import CaseSamples
from autograder.judge.timing.references import References, find_reference
from autograder.misconceptions import load_misconceptions
from autograder.sandbox import Sandbox

logger = logging.getLogger(__name__)

Keep = Callable[[str, bytes], None]
"""Takes a file that a grading leaves."""


def grade(
    request: GradeRequest,
    *,
    assignment_folder: Path,
    reference_folder: Path | None,
    sandbox: Sandbox,
    emit: Emit = lambda _: None,
    defences: Defences = ALL_ON,
    references: References | None = None,
    keep: Keep = lambda _name, _data: None,
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
        keep: gets the name and the bytes of every file that this grading leaves beside its result.

    Returns:
        The result; one with the verdict `grader_error` if something of ours failed.
    """
    phases = Phases(emit)
    warm = references or References(sandbox)
    try:
        if request.work is Work.profile:
            return profiling.profile(request, assignment_folder, sandbox, phases, keep)
        if request.work is Work.sanitize:
            return sanitizing.sanitize(request, assignment_folder, sandbox, phases)
        with Grading(
            request, (assignment_folder, reference_folder), sandbox, phases,
            references=warm, defences=defences, keep=keep,
        ) as grading:  # fmt: skip
            result = grading.run()
        return sanitizing.of_fault(result, request, assignment_folder, sandbox, phases)
    except Exception as error:  # noqa: BLE001 - the job's boundary: what fails here is ours; the next must not suffer
        traceback.print_exc(file=sys.stderr)
        _forget(error, request.lane)
        return GradeResult(Verdict.grader_error, summary.GRADER_FAILED, (), phases=phases.times())
    finally:
        if references is None:
            warm.close()


def _forget(error: Exception, lane: Lane) -> None:
    """Let go of what a failed grading held: tensors in the frames of its errors, which hold each other."""
    one: BaseException | None = error
    while one is not None:
        traceback.clear_frames(one.__traceback__)
        one = one.__cause__ or one.__context__
    gc.collect()
    with suppress(Exception):
        devices.of(lane).free_bytes()


def refuse_shown(reference_folder: Path | None) -> None:
    """Grade nothing where submissions could read the staff's part of an assignment.

    Raises:
        HarnessError: it lies in a folder of the toolchain.
    """
    if reference_folder is not None and (said := toolchain.shown_sentence("The staff's folder", reference_folder)):
        raise HarnessError(said)


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
        keep: Keep,
    ) -> None:
        phases.enter(Phase.preparing)
        refuse_shown(folders[1])
        self._keep = keep
        self._request = request
        self._folders = folders
        self._sandbox = sandbox
        self._phases = phases
        self._references = references
        self._defences = defences
        self._assignment = _assignment_for(request, folders[0])
        self._device = devices.of(request.lane)
        self._misconceptions = load_misconceptions(folders[0], self._assignment)
        problem = load_problem(self._assignment, folders[0])
        self._checker = Checker(self._assignment, problem, defences, self._device, self._misconceptions)
        self._runners = Runners(request, self._assignment, sandbox, defences, self._device, shelf=references.shelf)
        self._results = Results(self._cases(), phases.emit)
        self._dispatcher = CaseDispatcher(self._checker, self._device)
        self._work_probe = WorkProbe(
            request, self._assignment, self._results.cases,
            runners=self._runners, checker=self._checker, dispatcher=self._dispatcher,
        )  # fmt: skip
        self._compilation: cross_compile.Compilation | None = None
        self._compiled: dict[str, cross_compile.TargetReport] = {}
        self._requirements: tuple[RequirementResult, ...] | None = None
        self._counted: list[tuple[Counted, CallResult]] = []
        self._log = ""
        self._lent = ExitStack()
        self._measuring: MeasurementSession | None = None
        self._kernel_trace: KernelTrace | None = None

    def __enter__(self) -> Self:
        """Runners are started when they are needed."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        """End the runners that are left, give the reference back, and let go of memory that was kept."""
        with ExitStack() as last:  # From the last line to the first, whatever fails.
            last.callback(self._device.free_bytes)
            last.callback(self._checker.close)
            last.callback(self._lent.__exit__, kind, error, where)
            last.callback(self._dispatcher.close)
            last.callback(self._runners.close)

    def run(self) -> GradeResult:
        """Check, measure, or both; then look for what did the work, and report."""
        checks, measures = self._work is not Work.measure, self._work is not Work.check
        runner = self._begin()
        if isinstance(runner, Failure):
            if self._is_elsewhere():
                self._begin_compiling()
                self._finish_compiling()
            return self._report(failed=runner)
        if checks:
            self._check(runner)
        measurements = self._measure() if measures and self._goes_on() else ()
        findings = self._findings_of(measurements)
        if checks:
            findings = self._probe(findings)
        self._finish_compiling()
        return self._report(measurements=measurements, findings=findings)

    def _begin(self) -> RunnerClient | Failure:
        """Load the submission. Where nothing but measuring is to be done, the reference is prepared before."""
        self._phases.enter(Phase.compiling)
        refused = _refused(self._request)
        self._device.begin()
        self._device.reserve(room_for(self._assignment, self._results.cases))
        if self._work is Work.measure and not refused:
            self._prepare()
        runner = refused or self._first_runner()
        self._log = self._runners.log()
        return runner

    @property
    def _work(self) -> Work:
        return self._request.work

    def _cases(self) -> tuple[Case, ...]:
        public = self._assignment.cases_for(self._request.lane)
        if self._work is Work.measure:
            return tuple(case for case in public if case.ranked)
        return public + self._hidden_cases()

    def _hidden_cases(self) -> tuple[Case, ...]:
        folder = self._folders[1]
        wanted = self._request.mode is Mode.submission and self._defences.hidden_cases
        return hidden_cases(folder, self._assignment, self._request.lane, SYSTEM_RANDOM) if folder and wanted else ()

    def _goes_on(self) -> bool:
        """Whether nothing was wrong with a submission so far."""
        return self._results.none_failed() and self._request.mode is Mode.submission

    # --- check --------------------------------------------------------------------------------------------------------

    def _check(self, runner: RunnerClient) -> None:
        self._phases.enter(Phase.checking)
        ahead = self._can_overlap()
        if ahead and self._runners.warm_count():
            self._start_hidden(1)
        self._check_public(runner)
        self._check_hidden()

    def _check_public(self, runner: RunnerClient) -> None:
        def at_last() -> None:
            # Not before: whoever takes a context keeps those who work from the driver.
            if self._can_overlap():
                if not self._runners.precompiles:
                    self._work_probe.begin()
                # Of those that wait still: nobody waits for a container to be made.
                self._start_hidden(1 + self._others(Visibility.hidden))

        ahead, numbers = self._can_overlap(), self._results.of(Visibility.public)
        for number, checked in self._shown(runner, numbers, at_last, shared=ahead):
            self._work_probe.record.add(checked)
            self._results.finish(number, checked)
        self._log = self._runners.log()
        self._count()

    def _count(self) -> None:
        """By the runner that has called the public cases, so that nothing is tuned or made ready any more."""
        wanted = counting.requirements_of(self._assignment, self._request)
        if wanted and self._results.none_failed():
            runner = self._runners.present()
            if isinstance(runner, Failure):
                return
            self._counted = list(counting.count(self._assignment, self._checker, runner, wanted))

    def _check_hidden(self) -> None:
        """In runners that have seen nothing; not at all if no public case passed."""
        numbers = self._results.of(Visibility.hidden)
        if not numbers or not self._results.any_passed():
            return
        if self._compilation is not None:
            self._compilation.hear()
        # What was printed, passed or failed by now is known: nothing that is felt of this is told to anybody.
        self._runners.precompile(Visibility.hidden, self._results.cases_of(Visibility.hidden))
        if self._can_overlap():
            self._work_probe.begin()  # Its runners take their contexts while that is compiled.
        is_beside = self._dispatcher.is_busy()
        self._runners.export_caches()
        runner = self._loaded(self._runners.another(Visibility.hidden), shared=is_beside)
        if isinstance(runner, Failure):
            self._results.finish(numbers[0], as_result(runner))
            return
        found = dict(self._shown(runner, numbers))
        for number, checked in found.items():  # Said together: when each one came would tell its size.
            self._results.finish(number, checked)

    def _shown(
        self,
        runner: RunnerClient,
        numbers: Sequence[int],
        at_last: Callable[[], None] = lambda: None,
        *,
        shared: bool = False,
    ) -> Iterator[tuple[int, CallResult]]:
        """What each case showed, up to the one that ended its runner."""
        cases = [(number, self._results.cases[number]) for number in numbers]
        left, beside = list(cases), self._runners.beside(cases[0][1].visibility)
        for checked in self._dispatcher.checked(runner, beside, cases, at_last, shared=shared):
            yield left.pop(0)[0], checked
            if checked.ended:
                return
        while left:
            ended = False
            for number, checked in self._shown_alone(list(left)):
                left.pop(0)
                ended = checked.ended
                yield number, checked
            if ended:
                return

    def _shown_alone(self, cases: Sequence[tuple[int, Case]]) -> Iterator[tuple[int, CallResult]]:
        """The same of cases that might have shown something else beside others; of the first one at least."""
        runner = self._alone(when_idle=self._dispatcher.starved)
        if isinstance(runner, Failure):
            yield cases[0][0], as_result(runner)
            return
        shown = self._dispatcher.checked(runner, (), cases, is_retry=True)
        yield from zip([number for number, _ in cases], shown, strict=False)

    # --- the runners of a check ---------------------------------------------------------------------------------------

    def _first_runner(self) -> RunnerClient | Failure:
        """Where kernels are compiled ahead, all that are dealt cases take their context while the first one waits."""
        if self._measuring is not None:
            return self._first_timed_runner()
        if self._can_overlap() and languages.of(self._request.language).compiled_at_load:
            self._begin_compiling()
        if self._can_overlap():
            self._runners.precompile(Visibility.public, self._results.cases_of(Visibility.public))
        if not self._runners.precompiles:
            return self._loaded(self._runners.fresh(others=self._others(Visibility.public)))
        runner = self._runners.fresh(others=self._others(Visibility.public), meanwhile=self._begin_those_that_wait)
        # It was not the only one that loads and has memory of the device.
        return self._loaded(runner, shared=True)

    def _loaded(self, runner: RunnerClient | Failure, *, shared: bool = False) -> RunnerClient | Failure:
        """The runner; or another, alone, if it was not loaded for what others may have taken.

        Args:
            shared: others are there, and may have what it lacks.
        """
        if isinstance(runner, Failure) and (runner.starved or (shared and runner.verdict in RETRIED_ALONE)):
            return self._alone(when_idle=runner.starved)
        return runner

    def _first_timed_runner(self) -> RunnerClient | Failure:
        """The only one that loads. Late in that, it is not loaded again: each process has a pace of its own to draw.

        Only by the backstop it may have been late for the machine's sake.
        """
        self._runners.precompile(Visibility.public, self._results.cases_of(Visibility.public))
        runner = self._runners.fresh()
        self._runners.end_precompiling()
        return self._loaded(runner)

    def _begin_those_that_wait(self) -> None:
        """Begin those of the hidden cases, so far as they wait; what cannot start now comes later.

        Not the look: the driver makes one context after the other, and whoever works meanwhile waits for it.
        """
        try:
            self._start_hidden(min(1 + self._others(Visibility.hidden), self._runners.warm_count()))
        except SandboxError as error:
            logger.warning("a runner beside the first did not start: %s", error)

    def _can_overlap(self) -> bool:
        """Whether what comes next is begun while cases are checked: a GPU's machine has the cores, nothing is timed."""
        return self._work is Work.check and self._request.lane is not Lane.cpu

    def _others(self, visibility: Visibility) -> int:
        """How many runners are to be dealt cases beside the first: of those that wait, half while more is to come."""
        if not self._can_overlap():
            return 0
        numbers, ready = self._results.of(visibility), self._runners.warm_count()
        if visibility is Visibility.public:
            ready //= 2
        max_runners = MAX_RUNNERS_PRECOMPILED if self._runners.precompiles else MAX_RUNNERS
        return max(0, min(ready, max_runners - 1, len(numbers) // MIN_CASES_PER_RUNNER - 1))

    def _start_hidden(self, count: int) -> None:
        """Start runners of the hidden cases, of which they see nothing yet."""
        if self._results.of(Visibility.hidden) and self._defences.fresh_runner:
            self._runners.start_next(count)

    def _alone(self, *, when_idle: bool = False) -> RunnerClient | Failure:
        """A runner when all others have been ended, and nothing is done with them any more.

        Args:
            when_idle: once the machine is quiet, or has not been for so long as the backstop of a call.
        """
        self._runners.close()
        self._dispatcher.join()
        if when_idle and not wait_until_machine_idle(BACKSTOP * self._assignment.limits.call_s):
            logger.warning("a submission is asked again on a machine that is not quiet")
        return self._runners.alone()

    # --- measure ------------------------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        """Borrow the reference and prepare its ranked cases, if the lane ranks and there is one."""
        policy = self._assignment.policy(self._request.lane)
        ranked = [case for case in self._results.cases if case.ranked]
        if not ranked or policy is None or not policy.ranks:
            return
        reference = find_reference(*self._folders, self._request.language)
        if reference is None:
            return
        self._lent.enter_context(self._sandbox.pause_background_work())
        if self._device.rules.batches:
            self._runners.end()
        reference_runner = self._lent.enter_context(self._references.lent(self._assignment, self._request, reference))
        self._measuring = MeasurementSession(
            self._checker,
            reference_runner,
            reference,
            self._device,
            defences=self._defences,
            calibrations=self._references.calibrations(reference_runner),
            exchanges=self._references.exchanges(self._device),
        )
        self._measuring.prepare(ranked)

    def _measure(self) -> tuple[Measurement, ...]:
        """Time the ranked cases beside the reference, if the lane ranks and there is one."""
        if self._work is not Work.measure:
            self._prepare()
        if self._measuring is None:
            return ()
        self._phases.enter(Phase.measuring)
        # A `measure` attempt's runner has made no call yet.
        submission_runner = (
            self._runners.present() if self._work is Work.measure else self._loaded(self._runners.another())
        )
        ranked = self._results.numbers(lambda case: case.ranked)
        if isinstance(submission_runner, Failure):
            self._results.finish(ranked[0], as_result(submission_runner))
            return ()
        return self._timed(self._measuring, submission_runner, ranked)

    def _timed(
        self, measuring: MeasurementSession, submission_runner: RunnerClient, ranked: list[int]
    ) -> tuple[Measurement, ...]:
        """The speed of each ranked case; a timed call that fails is its case's result, and the end of measuring."""
        policy = self._assignment.policy(self._request.lane)
        taken: list[CaseSamples] = []
        for number in ranked:
            submission_runner, timed = self._timed_case(
                measuring, submission_runner, self._results.cases[number], policy.pairs if policy else 1
            )
            if not timed.last.passed or self._work is Work.measure:
                self._results.finish(number, timed.last)
            if not timed.last.passed:
                # Samples that no batch bounds are not kept: forged ones would count with what is handed in next.
                return ()
            taken.append(timed)
        self._kernel_trace = measuring.trace_after_timing(submission_runner, taken)
        self._runners.close()
        asked = validity.PriorAttempts(self._request.best_us, self._request.remeasured)
        return tuple(self._traced(measuring.conclude(timed, self._request.lane, asked)) for timed in taken)

    def _timed_case(
        self, measuring: MeasurementSession, submission_runner: RunnerClient, case: Case, pairs: int
    ) -> tuple[RunnerClient, CaseSamples]:
        """One case, and whose it is: what only the backstop ended is timed again from the start, by another runner."""
        timed = measuring.time(submission_runner, case, pairs)
        if not timed.last.starved:
            return submission_runner, timed
        other = self._alone(when_idle=True)
        if isinstance(other, Failure):
            return submission_runner, dataclasses.replace(timed, last=as_result(other))
        return other, measuring.time(other, case, pairs)

    def _traced(self, found: Measurement) -> Measurement:
        """With what was seen in a call that was traced, if one was."""
        traced = self._kernel_trace.traced.get(found.case) if self._kernel_trace else None
        note = validity.note(found, traced)
        return dataclasses.replace(found, traced_us=traced.busy_us if traced else 0.0, note=note)

    # --- what did the work --------------------------------------------------------------------------------------------

    def _findings_of(self, measurements: Sequence[Measurement]) -> tuple[Finding, ...]:
        """What the clocks say, and what was seen of the work that was timed."""
        found = validity.findings(measurements)
        if not (measurements and self._kernel_trace):
            return found
        seen = self._kernel_trace
        found += work_findings.of_timed_calls(self._assignment, seen.record, seen.kernels, seen.failed)
        return found + tuple(filter(None, map(work_findings.timed_work_differs, measurements)))

    def _probe(self, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
        """Replay and trace the public cases, and have the kernels compiled; the findings, with what that shows."""
        if self._results.none_failed():
            if self._goes_on() or self._is_compiled():
                # Nothing is to be said of the cases any more: a student need not wait for whoever looks at the kernel.
                self._phases.enter(Phase.profiling)
            # What compiles speaks to the student, by its kernels' names: it must not feel what hidden cases leave, nor
            # be told by one that was beside them and looked.
            self._work_probe.wait()
            self._runners.store_cache()
            self._runners.close()
            self._begin_compiling()
        return together(self._work_probe.findings(), findings) if self._goes_on() else findings

    def _begin_compiling(self) -> None:
        """Have what is launched compiled for devices that may not be there, while something else is done."""
        if self._is_compiled() and self._compilation is None:
            compilation = cross_compile.Compilation(self._assignment, self._request, self._sandbox)
            self._compilation = self._lent.enter_context(compilation)

    def _is_compiled(self) -> bool:
        """Whether the rung wants to see what the source becomes elsewhere."""
        return bool(self._assignment.compile_for) and cross_compile.is_compiled(self._request.language)

    def _is_elsewhere(self) -> bool:
        """Whether it is refused for its lane only: what it becomes on a device is shown all the same."""
        return bool(languages.of(self._request.language).refused(self._request.lane)) and self._is_compiled()

    def _finish_compiling(self) -> None:
        """Hold what came of it against the rung's requirements."""
        if self._compilation is not None and self._results.none_failed():
            self._compiled = self._compilation.finish()
            for target, checked in self._compiled.items():
                if checked.listings.kernels:
                    self._keep(f"{listings.PREFIX}{target}", listings.pack(checked.listings))
            self._requirements = requirements.evaluate(self._assignment, self._compiled)

    # --- report -------------------------------------------------------------------------------------------------------

    def _all_cases(self) -> tuple[CaseResult, ...]:
        """The cases that were called, the requirements that count as cases, and cases that no device would pass."""
        found = self._results.all()
        if self._work is not Work.measure and cross_compile.is_compiled(self._request.language):
            found += requirements.as_cases(self._assignment, self._requirements)
        if self._request.lane is Lane.cpu:
            refused = {case.name: case for case in target_rejections.as_cases(self._assignment, self._compiled)}
            found = tuple(refused.pop(case.name, case) for case in found) + tuple(refused.values())
        return found

    def _headline(self, cases: Sequence[CaseResult]) -> summary.Headline:
        # What cases of different functions have in common says nothing.
        seen = self._results.seen()
        first = next((one.case.function for one in seen if one.failed), "")
        seen = tuple(one for one in seen if one.case.function == first)
        scene = Scene(self._assignment, seen, self._request.source, self._misconceptions)
        return summary.headline(cases, self._request, scene)

    def _report(
        self,
        failed: Failure | None = None,
        measurements: tuple[Measurement, ...] = (),
        findings: tuple[Finding, ...] = (),
    ) -> GradeResult:
        """Put everything together."""
        self._phases.enter(Phase.reporting)
        self._runners.close()
        cases = self._all_cases()
        told = summary.Headline(failed.message) if failed else self._headline(cases)
        counted = counting.doubted(self._request, self._counted)
        asked = counting.requirements_of(self._assignment, self._request) if counted else ()
        return GradeResult(
            verdict=failed.verdict if failed else summary.verdict_of(cases),
            explanation=told.text,
            told_case=told.case,
            section=told.section,
            cases=cases,
            error=failed.error if failed else summary.error_of(cases),
            measurements=measurements,
            findings=together(findings, summary.faulty_formulas(self._results.seen())),
            held=any(one.held for one in measurements),
            held_reason=next((one.held for one in measurements if one.held), ""),
            remeasure=next((one.remeasure for one in measurements if one.remeasure), ""),
            exclusive_s=self._measuring.exclusive_s if self._measuring else 0.0,
            launches=self._work_probe.record.as_launches(),
            device_kernels=self._work_probe.kernels or (self._kernel_trace.kernels if self._kernel_trace else ()),
            compiled=tuple(checked.shown for checked in self._compiled.values()),
            counted=counted,
            requirements=(self._requirements or ()) + counting.evaluate(asked, counted),
            log=clean(self._log, MAX_LOG_CHARS),
            phases=self._phases.times(),
            environment=environment(self._sandbox, self._runners.versions) | self._device.facts(),
            promises=tuple(sorted(self._sandbox.promises)),
        )


def as_result(failure: Failure) -> CallResult:
    """A failure to load again, as what the next case showed."""
    return dataclasses.replace(call_as_result(failure), ended=True)


def _assignment_for(request: GradeRequest, folder: Path) -> Assignment:
    assignment = load_assignment(folder)
    if request.language not in assignment.languages:
        raise HarnessError(f"{assignment.slug} is not graded in {request.language}")
    if assignment.policy(request.lane) is None:
        raise HarnessError(f"{assignment.slug} is not graded on the lane {request.lane}")
    if request.work is Work.measure and request.mode is Mode.run:
        raise HarnessError("a run is not measured")
    return assignment


def _refused(request: GradeRequest) -> Failure | None:
    """A source that no runner has to see."""
    try:
        size = len(request.source.encode())
    except UnicodeEncodeError:
        return Failure(Verdict.compile_error, "The file is not text in UTF-8. Save it as UTF-8.")
    if size > MAX_SOURCE_BYTES:
        return Failure(Verdict.compile_error, f"The file has {size} bytes; at most {MAX_SOURCE_BYTES} are accepted.")
    refused = languages.of(request.language).refused(request.lane)
    return Failure(Verdict.compile_error, refused) if refused else None
