"""Filling a node's free slots from what one look at the queues found.

A look locks nothing and may be old for all that depends on it: whoever is claimed is locked first, and is passed over
if another transaction holds it or if it is not as the look saw it. What there may not be too much of, suspects and the
low lines, is counted again under a lock of its own. So any number of dispatchers may claim at once.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import func, select
from sqlalchemy.orm import Session, undefer

from autograder import codec
from autograder.contract import GradeRequest, GradeTask, Lane
from autograder.errors import ContractError
from server import alerts
from server.config import Config
from server.grading.after_result import keeps_its_result
from server.grading.best_times import best_times
from server.grading.policy import LINES, LOW, Queue, Slot, Waiting
from server.grading.queue_snapshot import look_at
from server.grading.regrade_attempts import give_up, open_item
from server.grading.states import LIVE, WAITING, after_an_end_without_result, submission_moves
from server.grading.supersede import give_back
from server.ids import public_id
from server.models import (
    AlertKind,
    Assignment,
    AssignmentVersion,
    Attempt,
    AttemptState,
    Mode,
    Node,
    RegradeItem,
    State,
    Submission,
    Trial,
    Verdict,
    Work,
)
from server.nodes import nodes

logger = logging.getLogger(__name__)

MOST_AT_ONCE = 16
"""At most so many claims in one transaction: each is a locked row and a source in memory."""


def claim_next(session: Session, *, node_id: int, now: datetime, config: Config) -> GradeTask | None:
    """Look at the node's lanes and claim one submission; `None` if nothing waits for it or it takes nothing."""
    node = session.get(Node, node_id)
    working = nodes.working_nodes(session, now=now)
    queues = {
        Lane(lane): Queue(look_at(session, Lane(lane), working, now=now)) for lane in (node.lanes if node else [])
    }
    return next(_claims(session, node_id, queues, now, config), None)


def fill_slots(
    session: Session, *, node_id: int, queues: Mapping[Lane, Queue], now: datetime, config: Config
) -> list[GradeTask]:
    """Claim for the free slots of the node what is next; one transaction, in which nothing else is locked before.

    Args:
        queues: of one look; what is claimed is taken out, so that the next node gets what comes then. If the
            transaction fails they are of no use any more.
    """
    return list(_claims(session, node_id, queues, now, config))


@dataclass(frozen=True)
class _Round:
    """The node that claims, its row locked, and what it claims from."""

    session: Session
    node: Node
    slot: Slot
    queues: Mapping[Lane, Queue]
    now: datetime
    config: Config


def _claims(
    session: Session, node_id: int, queues: Mapping[Lane, Queue], now: datetime, config: Config
) -> Iterator[GradeTask]:
    query = select(Node).where(Node.id == node_id).with_for_update().execution_options(populate_existing=True)
    node = session.scalar(query)
    if node is None or not nodes.takes_work(session, node, now):
        return
    works, courses = frozenset(Work(work) for work in node.works), nodes.grant_of(node).courses
    slot = Slot(works, node.quarantine, node.id, courses, nodes.lacks(node))
    claims = _Round(
        session, node, slot, {Lane(lane): queues[lane] for lane in node.lanes if lane in queues}, now, config
    )
    for _ in range(min(nodes.free_slots(session, node), MOST_AT_ONCE)):
        task = _claim_one(claims)
        if task is None:
            return
        yield task


def _claim_one(claims: _Round) -> GradeTask | None:
    """The next that can be claimed: it is locked, still waits, may run and becomes a task."""
    while (found := _next(claims)) is not None:
        queue, item = found
        if not _may_start(claims, queue, item):
            queue.hold_back(item)
            continue
        submission = _lock(claims, item)
        if submission is None:
            queue.drop(item)
            if item.line not in LOW:
                # It may be held for a moment only, by whoever writes to it, and still wait: the slot is not for those
                # in whose lines nobody waits for a first answer. The next look is a fresh one.
                for each in claims.queues.values():
                    each.hold_low_lines_back()
            continue
        queue.take(item)
        if (task := _task_of(claims, submission)) is not None:
            return task
        queue.ended(item)
    return None


def _next(claims: _Round) -> tuple[Queue, Waiting] | None:
    """Who is next in any of the node's lanes, by line and place."""
    found = [(queue, item) for queue in claims.queues.values() if (item := queue.next(claims.slot)) is not None]
    return min(found, key=lambda each: (LINES.index(each[1].line), each[1].place_at, each[1].id), default=None)


def _lock(claims: _Round, item: Waiting) -> Submission | None:
    """The submission, its row locked; `None` if somebody else holds it or it is not as the look saw it."""
    return claims.session.scalar(
        select(Submission)
        .where(
            Submission.id == item.id,
            Submission.state.in_(WAITING),
            Submission.line == item.line,
            Submission.work == item.work,
            Submission.suspect == item.suspect,
        )
        .with_for_update(skip_locked=True)
        .options(undefer(Submission.source))
        .execution_options(populate_existing=True)
    )


def _may_start(claims: _Round, queue: Queue, item: Waiting) -> bool:
    """Count again, alone, what there may not be too much of: other dispatchers looked at the same time."""
    if item.line not in LOW and not (item.suspect and not claims.slot.quarantine):
        return True
    lane = next(lane for lane, each in claims.queues.items() if each is queue)
    if not _alone(claims.session, lane):
        return False
    running = (
        select(Attempt.line, Submission.suspect)
        .join(Submission, Submission.id == Attempt.submission_id)
        .where(Attempt.lane == lane, Attempt.state.in_(LIVE))
    )
    rows = claims.session.execute(running).all()
    if item.suspect and not claims.slot.quarantine and any(row.suspect for row in rows):
        return False
    return item.line not in LOW or sum(row.line in LOW for row in rows) < queue.low_most


def _alone(session: Session, lane: Lane) -> bool:
    """Take the lane's lock until the transaction ends, without waiting for it; on SQLite the transaction is one."""
    if session.get_bind().dialect.name != "postgresql":
        return True
    key = int.from_bytes(hashlib.sha256(f"lane {lane}".encode()).digest()[:8], "big", signed=True)
    return bool(session.scalar(select(func.pg_try_advisory_xact_lock(key))))


def _task_of(claims: _Round, submission: Submission) -> GradeTask | None:
    """Claim it; where it cannot become a task it never will, and has failed: nobody behind it waits for that."""
    item = open_item(claims.session, submission)
    try:
        request = _request(claims.session, submission, item.version_id if item else submission.version_id)
        task = _task(submission, request, public_id(), _next_fence(claims.session, submission), claims.config)
        codec.dumps(task)
    except (ContractError, ValueError) as error:
        _fail(claims, submission, item, f"it cannot be sent to a node: {error}"[:500])
        return None
    _claim(claims, submission, item, task)
    return task


def _next_fence(session: Session, submission: Submission) -> int:
    last = session.scalar(select(func.max(Attempt.fence)).where(Attempt.submission_id == submission.id))
    return (last or 0) + 1


def _request(session: Session, submission: Submission, version_id: int) -> GradeRequest:
    version = session.execute(
        select(AssignmentVersion.bundle_hash, AssignmentVersion.grading_hash, Assignment.slug)
        .join(Assignment, Assignment.id == AssignmentVersion.assignment_id)
        .where(AssignmentVersion.id == version_id)
    ).one_or_none()
    if version is None:
        raise ContractError("its version of the assignment no longer exists")
    timed = submission.mode is Mode.submission and submission.work is not Work.check
    return GradeRequest(
        slug=version.slug,
        bundle=version.bundle_hash,
        language=submission.language,
        lane=submission.lane,
        mode=submission.mode,
        source=submission.source.decode(),
        filename=submission.filename,
        work=submission.work,
        best_us=best_times(session, version.grading_hash, submission.lane) if timed else {},
        remeasured=submission.remeasured,
        case=submission.case,
    )


def _task(submission: Submission, request: GradeRequest, attempt: str, fence: int, config: Config) -> GradeTask:
    return GradeTask(
        attempt=attempt,
        fence=fence,
        trace=submission.trace,
        lease_s=config.lease_s,
        deadline_s=config.attempt_deadline_s,
        request=request,
    )


def _claim(claims: _Round, submission: Submission, item: RegradeItem | None, task: GradeTask) -> None:
    attempt = Attempt(
        public_id=task.attempt,
        submission_id=submission.id,
        node_id=claims.node.id,
        fence=task.fence,
        lane=submission.lane,
        line=submission.line,
        work=submission.work,
        state=AttemptState.dispatched,
        dispatched_at=claims.now,
        lease_expires_at=claims.now + timedelta(seconds=claims.config.lease_s),
    )
    claims.session.add(attempt)
    submission.state = submission_moves(submission.state, State.running)
    submission.phase = None
    submission.attempts_made += 1
    submission.revision += 1
    claims.session.flush()
    if item is not None:
        claims.session.add(Trial(attempt_id=attempt.id, item_id=item.id))


def _fail(claims: _Round, submission: Submission, item: RegradeItem | None, reason: str) -> None:
    """It has failed, which is ours; without an attempt, which would count against the node that was asked."""
    if item is not None:
        give_up(item, submission, reason, now=claims.now)
        return
    most = claims.config.max_attempts
    graded_before = keeps_its_result(claims.session, submission)
    after = after_an_end_without_result(most, most, superseded=False, graded_before=graded_before)
    submission.state = submission_moves(submission_moves(submission.state, State.running), after)
    submission.revision += 1
    if after is State.failed:
        submission.verdict = submission.verdict or Verdict.grader_error
        submission.finished_at = claims.now
        give_back(claims.session, submission, skip_locked=True)
    logger.error("trace %s: submission %s has failed: %s", submission.trace, submission.public_id, reason)
    message = f"Submission {submission.public_id} has failed, which is our fault: {reason}."
    subject = f"submission:{submission.public_id}"
    alerts.raise_alert(claims.session, AlertKind.submission_failed, subject, message, claims.now)
