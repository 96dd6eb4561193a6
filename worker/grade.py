"""One attempt, from the task to its result."""

from __future__ import annotations

import json
import logging
import time
from dataclasses import dataclass
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
    Verdict,
)
from autograder.errors import ContractError
from worker import artefacts
from worker.aftermath import Aftermath, Ended
from worker.artefacts import Files
from worker.attempts import Attempts
from worker.bundles import Bundles
from worker.disk import Disk, handing_back_without_room
from worker.judge import JudgeProcess
from worker.life import Attempt, NodeLife
from worker.node_errors import HandedBackError, JudgeBrokenError, JudgeError, SuspectError, WorkerError
from worker.outbox import Outbox
from worker.server import Server
from worker.stopping import Stopping

logger = logging.getLogger(__name__)

MENTIONS_S = 2.0
_OF_DEADLINE = 0.75
"""That long a bundle is waited for: few go back untried in an hour then, and most gradings still have time."""
"""How long a result waits for the events before it, so that a page shows them in order."""


@dataclass(frozen=True)
class Around:
    """What the node's one grader works with beside the judge."""

    outbox: Outbox
    server: Server
    aftermath: Aftermath
    stopping: Stopping
    disk: Disk
    life: NodeLife


class Grader:
    """Runs the attempts of this node, one after the other."""

    def __init__(self, *, attempts: Attempts, bundles: Bundles, judge: JudgeProcess, around: Around) -> None:
        self._attempts = attempts
        self._bundles = bundles
        self._judge = judge
        self._outbox = around.outbox
        self._around = around

    def run(self, text: str) -> None:
        """Grade what `text` asks for, and say what came of it; nothing is raised."""
        try:
            task = codec.loads(GradeTask, text)
            if task.version != CONTRACT_VERSION:
                raise ContractError(f"contract version {task.version}, this node speaks {CONTRACT_VERSION}")  # noqa: TRY301  (one way to refuse)
        except ContractError as error:
            self._refuse(text, str(error))
            return
        try:
            if self._is_for_us(task):
                self._run(task)
        except HandedBackError as error:
            self._hand_back(task, str(error))
        except WorkerError as error:
            self._refuse(text, str(error))

    def say_what_was_left(self) -> None:
        """Send what could not be sent before this node was stopped, and say which attempts a kill left unfinished."""
        for kind, message in self._attempts.unsaid():
            if self._outbox.tell(kind, message):
                self._attempts.said(message.attempt)
        for attempt, fence in self._attempts.unfinished():
            if self._outbox.tell(Kind.failure, AttemptFailure(attempt, fence, "the worker was killed while it graded")):
                self._attempts.finished(attempt)

    def _is_for_us(self, task: GradeTask) -> bool:
        """Claim it; false for one that was claimed before, or that nobody waits for any more."""
        with handing_back_without_room():
            fresh = self._attempts.claim(task.attempt, task.fence)
        if not fresh:
            logger.warning("trace %s: dropped attempt %s, which was claimed before", task.trace, task.attempt)
            return False
        if self._around.stopping.draining:
            raise HandedBackError("the node is being stopped")
        if trouble := self._around.life.trouble():
            raise HandedBackError(trouble)
        # A server that does not answer is no reason to wait: the fence keeps a result out that comes too late.
        if self._around.server.lives(task.attempt, task.fence) is False:
            logger.warning("trace %s: dropped attempt %s, which is over", task.trace, task.attempt)
            self._attempts.finished(task.attempt)
            return False
        return True

    def _hand_back(self, task: GradeTask, why: str) -> None:
        logger.warning("trace %s: attempt %s is handed back: %s", task.trace, task.attempt, why)
        self._outbox.tell(Kind.failure, AttemptFailure(task.attempt, task.fence, why, handed_back=True))

    def _refuse(self, text: str, why: str) -> None:
        logger.error("refused a task: %s", why)
        if (whose := _whose(text)) is not None:
            self._outbox.tell(Kind.failure, AttemptFailure(*whose, f"the node cannot take this task: {why}"))

    def _run(self, task: GradeTask) -> None:
        started = time.monotonic()
        logger.info("trace %s: attempt %s (fence %d) begins", task.trace, task.attempt, task.fence)
        self._outbox.tell(Kind.claimed, Claim(task.attempt, task.fence, time.time()))
        # Heartbeats go on until the result is said: a broker that is away must not cost the attempt its lease.
        with self._outbox.heartbeat(task.attempt, task.fence, lease_s=task.lease_s), self._around.life.turn:
            outcome, files = self._attempt(task)
            self._outbox.wait_for_mentions(MENTIONS_S)
            if self._deliver(task, outcome, files):
                self._attempts.finished(task.attempt)
        with self._around.life.turn:
            self._around.life.after()
        logger.info("trace %s: attempt %s ended after %.2f s", task.trace, task.attempt, time.monotonic() - started)

    def _deliver(self, task: GradeTask, outcome: GradeResult | AttemptFailure, files: Files) -> bool:
        """Say what came of it; false where that is left to a later worker, because this one is stopped."""
        if isinstance(outcome, GradeResult):
            message = AttemptResult(task.attempt, task.fence, outcome)
            try:
                return self._say(task, Kind.result, message, files)
            except ContractError as error:
                outcome = AttemptFailure(task.attempt, task.fence, f"the result cannot travel: {error}")
        logger.error("trace %s: attempt %s has no result: %s", task.trace, task.attempt, outcome.reason)
        return self._say(task, Kind.failure, outcome, files)

    def _say(self, task: GradeTask, kind: Kind, message: AttemptResult | AttemptFailure, files: Files) -> bool:
        try:
            self._outbox.deliver(kind, message, patience_s=task.deadline_s, wait=self._around.stopping.sleep)
        except HandedBackError:
            self._attempts.keep_unsaid(kind, message)
            return False
        self._around.aftermath.add(Ended(kind, message, task.lease_s, files))
        return True

    def _attempt(self, task: GradeTask) -> tuple[GradeResult | AttemptFailure, Files]:
        """The result, or why there is none, and the files that are kept."""
        files: list[tuple[str, bytes]] = []
        since, suspect = self._judge.log_size(), False
        try:
            self._around.disk.check()
            with handing_back_without_room():
                result = self._staged(task, files)
        except HandedBackError as error:
            return AttemptFailure(task.attempt, task.fence, str(error), handed_back=True), ()
        except WorkerError as error:
            why, suspect = str(error), isinstance(error, SuspectError)
        except Exception as error:
            # Around the job: whatever it was, the node goes on with the next one.
            logger.exception("trace %s: attempt %s", task.trace, task.attempt)
            why = f"the worker failed: {error!r}"
        else:
            if result.verdict is not Verdict.grader_error:
                return result, tuple(files)
            return result, (*artefacts.end_of(self._judge.log, since=since), *files)[: artefacts.MAX_FILES]
        log = artefacts.end_of(self._judge.log, since=since)
        return AttemptFailure(task.attempt, task.fence, why, suspect=suspect), (*log, *files)[: artefacts.MAX_FILES]

    def _staged(self, task: GradeTask, files: list[tuple[str, bytes]]) -> GradeResult:
        bundle = self._bundles.get(task, patience_s=_OF_DEADLINE * task.deadline_s)
        with self._attempts.staged(task.attempt, task.request, bundle) as folder:
            try:
                return self._judged(task, folder)
            finally:
                files.extend(artefacts.left_in(folder))

    def _judged(self, task: GradeTask, folder: Path) -> GradeResult:
        """The judge's result with what was seen of the GPU.

        Raises:
            JudgeError: there is none, and the node is well.
            SuspectError: the node is not well, or the GPU faulted and took the judge along.
        """
        failed: JudgeError | None = None
        result: GradeResult | None = None
        with self._around.life.attempt(task.request.work, patience_s=task.deadline_s) as attempt:
            try:
                result = self._graded(task, folder, attempt)
            except JudgeError as error:
                failed = error
        judged = self._around.life.settled(result, attempt)
        if judged.suspect:
            raise SuspectError(f"{failed}; {judged.suspect}" if failed else judged.suspect)
        if judged.result is None:
            raise failed or JudgeBrokenError("the judge ended without a result")
        return attempt.with_facts(judged.result)

    def _graded(self, task: GradeTask, folder: Path, attempt: Attempt) -> GradeResult:
        numbers = count()
        finished = False
        self._judge.note(f"trace {task.trace}: attempt {task.attempt}")
        try:
            for event in self._judge.grade(folder, deadline_s=task.deadline_s):
                if event.result is not None:
                    finished = True
                    return event.result
                if event.phase is not None:
                    logger.info("trace %s: the judge is %s", task.trace, event.phase.phase)
                    attempt.enter(event.phase.phase)
                self._outbox.mention(Kind.event, AttemptEvent(task.attempt, task.fence, next(numbers), event))
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
