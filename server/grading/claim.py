"""Taking the next submission for a node's free slot."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import func, select
from sqlalchemy.orm import Session, undefer

from autograder.contract import GradeRequest, GradeTask
from server.config import Config
from server.grading.states import WAITING, submission_moves
from server.ids import public_id
from server.models import AssignmentVersion, Attempt, AttemptState, Node, State, Submission
from server.nodes import service as nodes


def claim_next(session: Session, *, node_id: int, now: datetime, config: Config) -> GradeTask | None:
    """Claim the next submission that the node can grade; `None` if there is none, or no slot is free or the node rests.

    The order is priority, place, id. Any number of dispatchers may ask at once: the node's row is locked, so that its
    slots are counted once, and a submission's row that another transaction holds is passed over.
    """
    locked = session.scalar(
        select(Node).where(Node.id == node_id).with_for_update().execution_options(populate_existing=True)
    )
    if locked is None or not nodes.takes_work(session, locked, now) or nodes.free_slots(session, locked) < 1:
        return None
    submission = _next_submission(session, locked)
    if submission is None:
        return None
    return _task(session, submission, _claim(session, submission, locked, now, config), config)


def _next_submission(session: Session, node: Node) -> Submission | None:
    return session.scalar(
        select(Submission)
        .where(Submission.state.in_(WAITING), Submission.lane.in_(node.lanes))
        .order_by(Submission.priority, Submission.place_at, Submission.id)
        .limit(1)
        .with_for_update(skip_locked=True)
        .options(undefer(Submission.source))
        .execution_options(populate_existing=True)
    )


def _claim(session: Session, submission: Submission, node: Node, now: datetime, config: Config) -> Attempt:
    last_fence = session.scalar(select(func.max(Attempt.fence)).where(Attempt.submission_id == submission.id))
    attempt = Attempt(
        public_id=public_id(),
        submission_id=submission.id,
        node_id=node.id,
        fence=(last_fence or 0) + 1,
        state=AttemptState.dispatched,
        dispatched_at=now,
        lease_expires_at=now + timedelta(seconds=config.lease_s),
    )
    session.add(attempt)
    submission.state = submission_moves(submission.state, State.running)
    submission.phase = None
    submission.attempts_made += 1
    submission.revision += 1
    return attempt


def _task(session: Session, submission: Submission, attempt: Attempt, config: Config) -> GradeTask:
    version = session.get_one(AssignmentVersion, submission.version_id)
    request = GradeRequest(
        slug=version.manifest["slug"],
        bundle=version.bundle_hash,
        language=submission.language,
        lane=submission.lane,
        mode=submission.mode,
        source=submission.source.decode(),
        filename=submission.filename,
    )
    return GradeTask(
        attempt=attempt.public_id,
        fence=attempt.fence,
        trace=submission.trace,
        lease_s=config.lease_s,
        deadline_s=config.attempt_deadline_s,
        request=request,
    )
