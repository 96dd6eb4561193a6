"""Several runners of one submission at work at the same time, each by a thread of the judge's; nothing here is timed.

Checking a case is mostly waiting for kernels that are compiled for it, on one core, and a machine with a GPU has many.
So cases of one kind are dealt to several runners, and what each showed is told in the order of the cases, up to the
one that ended its runner: as one runner alone would have told it.

Public and hidden cases are never checked at the same time. What a runner of public cases prints is shown, and how much
memory the device has left tells it how large the cases of others are.
"""

from __future__ import annotations

import logging
import math
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

from autograder.assignment import Assignment, Case
from autograder.contract import Verdict
from autograder.errors import HarnessError, SandboxError
from autograder.judge.correctness.checker import NO_MEMORY, CallResult, Checker
from autograder.judge.protocol.devices import Device
from autograder.judge.protocol.failure import Failure
from autograder.judge.protocol.loading import Begin
from autograder.judge.protocol.runner_client import RunnerClient

logger = logging.getLogger(__name__)

MAX_RUNNERS = 4
"""Runners that are dealt cases. Two halve the time; a fifth saves little, and every one costs the node an import."""

MAX_RUNNERS_PRECOMPILED = 2
"""The same where kernels are compiled ahead: then a case takes milliseconds, and one is called while another's outputs
are compared."""

MIN_CASES_PER_RUNNER = 3
"""For fewer it does not pay to begin, which takes as long as compiling some kernels does."""

RETRIED_ALONE = frozenset({Verdict.time_limit, Verdict.out_of_memory})
"""What a runner may owe to those beside it: who ran out of either is asked again, alone."""

LARGE_CASE_SHARE = 1 / 16
"""Of the device's memory: cases that need more of it take turns."""

_PER_ELEMENT = 32
"""Bytes: the oracle works with several tensors of eight bytes an element."""

Numbered = tuple[int, Case]
Value = TypeVar("Value")


class CaseDispatcher:
    """Deals cases to runners, and has single things done beside them.

    Nobody waits for a thread whose work is not wanted any more: whoever ends the runners ends what the threads do with
    them.

    Attributes:
        starved: whether it stopped before a case that only the backstop ended.
    """

    def __init__(self, checker: Checker, device: Device) -> None:
        self._checker = checker
        self._device = device
        self.starved = False
        self._large = threading.Lock()
        self._asides: list[Future[Any]] = []
        self._shares: list[Future[None]] = []
        self._threads = ThreadPoolExecutor(2 * MAX_RUNNERS + 2, thread_name_prefix="cases")

    def checked(
        self,
        first: RunnerClient,
        others: Sequence[Begin],
        cases: Sequence[Numbered],
        at_last: Callable[[], None] = lambda: None,
        *,
        shared: bool = False,
        is_retry: bool = False,
    ) -> Iterator[CallResult]:
        """What each case showed, in order.

        It ends with the case that ended its runner; or before one that might have shown something else alone, where
        anybody else is there, or on a machine that is quiet.

        Args:
            others: those beside the first. Whoever does not begin is not missed.
            at_last: called once, when the last case has been dealt.
            shared: somebody else is there, or will be, without being dealt cases, and may have what they lack.
            is_retry: the first case was asked before: what it shows alone now is what it shows.
        """
        self.starved = False
        check = self._parallel if others or shared or self.is_busy() else self._alone
        for checked in check(first, others, cases, at_last):
            if checked.starved and not is_retry:
                self.starved = True
                return
            is_retry = False
            yield checked
            if checked.ended:
                return

    def _alone(
        self, runner: RunnerClient, _: Sequence[Begin], cases: Sequence[Numbered], at_last: Callable[[], None]
    ) -> Iterator[CallResult]:
        for number, case in cases:
            if number == cases[-1][0]:
                at_last()
            yield self._checker.case(runner, case)

    def _parallel(
        self, first: RunnerClient, others: Sequence[Begin], cases: Sequence[Numbered], at_last: Callable[[], None]
    ) -> Iterator[CallResult]:
        begins: list[Begin] = [lambda: first, *others]
        queue = _CaseQueue(cases, len(begins))
        told = False
        try:
            for begin in begins:
                self._shares.append(self._threads.submit(self._work, begin, queue))
            for number, _ in cases:
                checked = queue.wait(number)
                if checked.verdict in RETRIED_ALONE:
                    self.starved = checked.starved
                    return
                if not told and queue.is_over():
                    told = True
                    at_last()
                yield checked
        finally:
            queue.end()

    def aside(self, work: Callable[[], Value]) -> Future[Value]:
        """Have something done beside the cases."""
        future = self._threads.submit(self._attached, work)
        self._asides.append(future)
        return future

    def is_busy(self) -> bool:
        """Whether something is done aside, or was: its runner has what it took until it is ended."""
        return bool(self._asides)

    def join(self) -> None:
        """Wait for the threads: one whose runner has been ended may still have memory of the judge's, or spend time."""
        wait([*self._asides, *self._shares])
        self._asides, self._shares = [], []

    def turn(self, case: Case) -> AbstractContextManager[object]:
        """Held while a case is called: a large one waits for the other large ones."""
        limit = LARGE_CASE_SHARE * self._device.memory_bytes
        is_large = limit and room_for(self._checker.assignment, [case]) > limit
        return self._large if is_large else nullcontext()

    def close(self) -> None:
        """Wait for the threads; the runners have been ended."""
        self._threads.shutdown(cancel_futures=True)

    def _attached(self, work: Callable[[], Value]) -> Value:
        self._device.attach()
        return work()

    def _work(self, begin: Begin, queue: _CaseQueue) -> None:
        """One runner's share."""
        problem: Exception | None = None
        try:
            self._device.attach()
            runner = _begun(begin)
            while runner is not None and (one := queue.next()) is not None:
                number, case = one
                checked = self._case(runner, case)
                queue.tell(number, checked)
                if checked.ended:
                    queue.end()
                    return
        except Exception as error:  # noqa: BLE001 - not lost: raised where the case is waited for.
            problem = error
        finally:
            queue.leave(problem)

    def _case(self, runner: RunnerClient, case: Case) -> CallResult:
        """Check it. That no memory was left for it may be the others' doing."""
        try:
            with self.turn(case):
                return self._checker.case(runner, case)
        except NO_MEMORY as error:
            return CallResult(Verdict.out_of_memory, str(error), ended=True)


def room_for(assignment: Assignment, cases: Iterable[Case]) -> int:
    """Bytes that the judge's own tensors of the largest case may need."""
    return _PER_ELEMENT * max((_elements(assignment.part(case), case) for case in cases), default=0)


def _elements(part: Assignment, case: Case) -> int:
    return sum(math.prod(part.shape_of(one, case)) for one in (*part.inputs, *part.outputs))


def _begun(begin: Begin) -> RunnerClient | None:
    try:
        runner = begin()
    except SandboxError as error:
        logger.warning("a runner beside others did not begin: %s", error)
        return None
    return None if isinstance(runner, Failure) else runner


class _CaseQueue:
    """Cases that are still to be dealt, and what has come of the others."""

    def __init__(self, cases: Sequence[Numbered], workers: int) -> None:
        self._left = deque(cases)
        self._workers = workers
        self._found: dict[int, CallResult] = {}
        self._problem: Exception | None = None
        self._news = threading.Condition()

    def next(self) -> Numbered | None:
        """The next case, if there is one. All before one that is dealt have been dealt."""
        with self._news:
            return self._left.popleft() if self._left else None

    def is_over(self) -> bool:
        """Whether all have been dealt."""
        with self._news:
            return not self._left

    def end(self) -> None:
        """Deal no more."""
        with self._news:
            self._left.clear()

    def tell(self, number: int, checked: CallResult) -> None:
        """Say what a case showed."""
        with self._news:
            self._found[number] = checked
            self._news.notify_all()

    def leave(self, problem: Exception | None) -> None:
        """Somebody works no more; perhaps because of a problem of ours, which ends it for all."""
        with self._news:
            self._workers -= 1
            self._problem = self._problem or problem
            if problem:
                self._left.clear()
            self._news.notify_all()

    def wait(self, number: int) -> CallResult:
        """What a case showed.

        Raises:
            Exception: whatever kept those who were to find out from it.
        """
        with self._news:
            self._news.wait_for(lambda: number in self._found or not self._workers)
            if number in self._found:
                return self._found.pop(number)
        raise self._problem or HarnessError(f"nobody has checked case {number}")
