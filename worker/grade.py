"""One attempt, from the task to its result."""

from __future__ import annotations

import json
import logging
import time
from itertools import count
from pathlib import Path

from autograder import codec
from autograder.contract import (
    CONTRACT_VERSION,
    AttemptEvent,
    AttemptFailure,
    AttemptResult,
    Claim,
    GradeResult,
    GradeTask,
    Kind,
)
from autograder.errors import ContractError
from worker.attempts import Attempts
from worker.bundles import Bundles
from worker.errors import JudgeBrokenError, WorkerError
from worker.judge import JudgeProcess
from worker.results import Outbox

logger = logging.getLogger(__name__)


class Grader:
    """Runs the attempts of this node, one after the other."""

    def __init__(self, *, attempts: Attempts, bundles: Bundles, judge: JudgeProcess, outbox: Outbox) -> None:
        self._attempts = attempts
        self._bundles = bundles
        self._judge = judge
        self._outbox = outbox

    def run(self, text: str) -> None:
        """Grade what `text` asks for, and say what came of it; nothing is raised."""
        try:
            task = codec.loads(GradeTask, text)
            if task.version != CONTRACT_VERSION:
                raise ContractError(f"contract version {task.version}, this node speaks {CONTRACT_VERSION}")  # noqa: TRY301  (one way to refuse)
            fresh = self._attempts.claim(task.attempt, task.fence)
        except (ContractError, WorkerError) as error:
            self._refuse(text, str(error))
            return
        if not fresh:
            logger.warning("trace %s: dropped attempt %s, which was claimed before", task.trace, task.attempt)
            return
        self._run(task)

    def fail_unfinished(self) -> None:
        """Say of attempts that a killed worker left unfinished that they are, so that nobody waits for their leases."""
        for attempt, fence in self._attempts.unfinished():
            if self._outbox.tell(Kind.failure, AttemptFailure(attempt, fence, "the worker was killed while it graded")):
                self._attempts.finished(attempt)

    def _refuse(self, text: str, why: str) -> None:
        logger.error("refused a task: %s", why)
        if (whose := _whose(text)) is not None:
            self._outbox.tell(Kind.failure, AttemptFailure(*whose, f"the node cannot take this task: {why}"))

    def _run(self, task: GradeTask) -> None:
        started = time.monotonic()
        logger.info("trace %s: attempt %s (fence %d) begins", task.trace, task.attempt, task.fence)
        self._outbox.tell(Kind.claimed, Claim(task.attempt, task.fence, time.time()))
        # Heartbeats go on until the result is said: a broker that is away must not cost the attempt its lease.
        with self._outbox.heartbeat(task.attempt, task.fence, lease_s=task.lease_s):
            self._deliver(task, self._attempt(task))
        self._attempts.finished(task.attempt)
        logger.info("trace %s: attempt %s ended after %.2f s", task.trace, task.attempt, time.monotonic() - started)

    def _deliver(self, task: GradeTask, outcome: GradeResult | str) -> None:
        if isinstance(outcome, GradeResult):
            message = AttemptResult(task.attempt, task.fence, outcome)
            try:
                self._outbox.deliver(Kind.result, message, lease_s=task.lease_s)
            except ContractError as error:
                outcome = f"the result cannot travel: {error}"
        if isinstance(outcome, str):
            logger.error("trace %s: attempt %s has no result: %s", task.trace, task.attempt, outcome)
            failure = AttemptFailure(task.attempt, task.fence, outcome)
            self._outbox.deliver(Kind.failure, failure, lease_s=task.lease_s)

    def _attempt(self, task: GradeTask) -> GradeResult | str:
        """The result, or why there is none."""
        try:
            bundle = self._bundles.get(task.request.bundle, patience_s=task.lease_s)
            with self._attempts.staged(task.attempt, task.request, bundle) as folder:
                return self._judged(task, folder)
        except WorkerError as error:
            return str(error)
        except Exception as error:
            # Around the job: whatever it was, the node goes on with the next one.
            logger.exception("trace %s: attempt %s", task.trace, task.attempt)
            return f"the worker failed: {error!r}"

    def _judged(self, task: GradeTask, folder: Path) -> GradeResult:
        numbers = count()
        finished = False
        try:
            for event in self._judge.grade(folder, deadline_s=task.deadline_s):
                if event.result is not None:
                    finished = True
                    return event.result
                self._outbox.tell(Kind.event, AttemptEvent(task.attempt, task.fence, next(numbers), event))
        finally:
            if not finished:
                # It may be in the middle of anything. A new one imports while the next attempt is on its way.
                self._judge.kill()
                self._judge.start()
        raise JudgeBrokenError("the judge ended without a result")


def _whose(text: str) -> tuple[str, int] | None:
    """Attempt and fence of a task that cannot be read otherwise, such as one of another contract version."""
    if len(text) > codec.MAX_TEXT:
        return None
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    attempt, fence = (data.get("attempt"), data.get("fence")) if isinstance(data, dict) else (None, None)
    return (attempt, fence) if isinstance(attempt, str) and isinstance(fence, int) else None
