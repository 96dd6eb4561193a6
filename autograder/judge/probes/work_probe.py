"""Look for the student's kernel: have the replay and the trace made, beside the cases or after them (`work_findings`).

Only staff learn what is found, so that it does not matter what else is on the device meanwhile.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from autograder.assignment import Assignment, Case
from autograder.contract import DeviceKernel, Finding, GradeRequest, Lane, Mode, Visibility
from autograder.errors import SandboxError
from autograder.judge.correctness.checker import NO_MEMORY, CallResult, Checker
from autograder.judge.correctness.parallel_cases import RETRIED_ALONE, CaseDispatcher
from autograder.judge.probes import work_findings
from autograder.judge.protocol.failure import Failure
from autograder.judge.protocol.loading import Begin
from autograder.judge.protocol.runner_client import CallReply
from autograder.judge.runners import Runners

logger = logging.getLogger(__name__)

_LACKED = (*NO_MEMORY, SandboxError)
"""What somebody who had taken the device's memory does to whoever begins beside him."""

Value = TypeVar("Value")
Replays = dict[str, CallResult]
"""What the cases that are replayed without kernels showed, by name."""


class WorkProbe:
    """At one submission.

    Attributes:
        record: of what its runners said that they launched.
        kernels: what ran on the device, once there are findings.
    """

    def __init__(
        self,
        request: GradeRequest,
        assignment: Assignment,
        cases: Sequence[Case],
        *,
        runners: Runners,
        checker: Checker,
        dispatcher: CaseDispatcher,
    ) -> None:
        public = [case for case in cases if case.visibility is Visibility.public]
        self._assignment = assignment
        without = {function.name for function in assignment.functions if not function.by_kernels}
        by_kernels = [case for case in public if case.function not in without]
        self._replayed_cases = [*{case.group: case for case in reversed(by_kernels)}.values()]
        self._wanted = request.mode is Mode.submission
        on_a_gpu = request.lane is not Lane.cpu and self._wanted
        self._traced_cases = [case for case in public if case.ranked and on_a_gpu]
        self._runners = runners
        self._checker = checker
        self._dispatcher = dispatcher
        self._replayed: Future[Replays] | None = None
        self._traced: Future[list[CallReply]] | None = None
        self.record = work_findings.WorkRecord()
        self.kernels: tuple[DeviceKernel, ...] = ()

    def begin(self) -> None:
        """Begin, beside the cases, where it is wanted and has not begun; what cannot start now comes later."""
        if not self._wanted:
            return
        try:
            if self._traced is None and self._traced_cases:
                self._traced = self._dispatcher.aside(partial(self._aside, self._trace, self._runners.tracing()))
            if self._replayed is None:
                self._replayed = self._dispatcher.aside(partial(self._aside, self._replay, self._runners.noop_replay()))
        except SandboxError as error:
            logger.warning("a runner that traces or replays did not start beside the cases: %s", error)

    def wait(self) -> None:
        """Until nobody looks any more who has begun beside the cases."""
        begun: list[Future[Any]] = [one for one in (self._traced, self._replayed) if one is not None]
        wait(begun)

    def _aside(self, look: Callable[[Begin], Value], begin: Begin) -> Value:
        """Have a look; it is none if its runner was ended in it, however that showed."""
        try:
            return look(begin)
        finally:
            if self._runners.cut_short:
                raise SandboxError("a runner was ended so that another could be alone")

    def findings(self) -> tuple[Finding, ...]:
        """What staff should look at."""
        traced, replays = _result(self._traced), _result(self._replayed)
        if replays is None or any(checked.verdict in RETRIED_ALONE for checked in replays.values()):
            self._runners.close()
            replays = self._replay(self._runners.noop_replay())
        if traced is None and self._traced_cases:
            self._runners.close()
            traced = self._trace(self._runners.tracing())
        self.kernels = work_findings.device_kernels(self.record, traced or [])
        complete = len(replays) == len(self._replayed_cases) and not _ended(replays)
        return work_findings.findings(self._assignment, self.record, replays, complete=complete, kernels=self.kernels)

    def _replay(self, begin: Begin) -> Replays:
        """Replay the first public case of every group with kernels that do nothing."""
        runner = begin()
        replays: Replays = {}
        for case in self._replayed_cases:
            if isinstance(runner, Failure) or _ended(replays):
                break
            with self._dispatcher.turn(case):
                try:
                    replays[case.name] = self._checker.replay(runner, case)
                except NO_MEMORY as error:
                    replays[case.name] = self._checker.no_memory(runner, 0, error)
        return replays

    def _trace(self, begin: Begin) -> list[CallReply]:
        """A call of every ranked case, timed by nobody, with a list of what ran on the device."""
        runner = begin()
        traced: list[CallReply] = []
        for case in self._traced_cases:
            if isinstance(runner, Failure):
                break
            with self._dispatcher.turn(case):
                try:
                    taken = self._checker.call_unverified(
                        runner, case, self._checker.draw(case), trace=True, cold=False
                    )
                except NO_MEMORY as error:
                    taken = self._checker.no_memory(runner, 0, error)
            if isinstance(taken, CallResult):
                break
            traced.append(taken.finished)
        return traced


def _result(work: Future[Value] | None) -> Value | None:
    """What was found beside the cases, if it was looked for and nobody took what looking needs."""
    if work is not None:
        with suppress(*_LACKED):
            return work.result()
    return None


def _ended(replays: Replays) -> bool:
    return any(checked.ended for checked in replays.values())
