"""Giving back what was lost: the only retry there is."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, or_, select
from sqlalchemy.orm import Session

from server.config import Config
from server.grading.lock import fresh_attempt, lock_submission
from server.grading.states import LIVE, after_an_end_without_result, attempt_moves, submission_moves
from server.models import Attempt, AttemptState, State, Submission, Verdict
from server.nodes import service as nodes

logger = logging.getLogger(__name__)

SWEEP_LIMIT = 100
"""At most so many attempts in one transaction; the rest is the next sweep's."""
MAX_REASON_CHARS = 4000


def sweep(session: Session, *, now: datetime, config: Config) -> int:
    """End every attempt whose lease expired, or which outlived its deadline although it says it is alive; how many.

    Its submission goes back to the queue with its place kept, or has failed after the last attempt.
    """
    expired = session.execute(
        select(Attempt.id, Attempt.submission_id)
        .where(Attempt.state.in_(LIVE), _is_over(now, config))
        .order_by(Attempt.lease_expires_at)
        .limit(SWEEP_LIMIT)
    ).all()
    return sum(_give_up(session, attempt_id, submission_id, now, config) for attempt_id, submission_id in expired)


def _is_over(now: datetime, config: Config) -> ColumnElement[bool]:
    too_old = now - timedelta(seconds=config.attempt_deadline_s + config.lease_s)
    return or_(Attempt.lease_expires_at < now, Attempt.dispatched_at < too_old)


def _give_up(session: Session, attempt_id: int, submission_id: int, now: datetime, config: Config) -> bool:
    """End one attempt, unless somebody else works on its submission or a heartbeat came meanwhile."""
    submission = lock_submission(session, submission_id, skip_locked=True)
    if submission is None:
        return False
    still_over = select(Attempt.id).where(Attempt.id == attempt_id, Attempt.state.in_(LIVE), _is_over(now, config))
    if session.scalar(still_over) is None:
        return False
    attempt = fresh_attempt(session, attempt_id)
    if silent := attempt.lease_expires_at < now:
        nodes.fell_silent(session, attempt.node_id)
    reason = "the node fell silent" if silent else "the deadline of the attempt passed"
    end_without_result(submission, attempt, AttemptState.lost, reason, now=now, config=config)
    return True


def end_without_result(
    submission: Submission, attempt: Attempt, end: AttemptState, reason: str, *, now: datetime, config: Config
) -> None:
    """End an attempt that found nothing, and say where its submission goes; its row has to be locked."""
    attempt.state = attempt_moves(attempt.state, end)
    attempt.finished_at = now
    attempt.reason = reason[:MAX_REASON_CHARS]
    attempt.live_cases = []
    submission.phase = None
    submission.revision += 1
    after = after_an_end_without_result(
        submission.attempts_made,
        config.max_attempts,
        superseded=submission.superseded_by_id is not None,
        graded_before=submission.result_id is not None,
    )
    submission.state = submission_moves(submission.state, after)
    if after is State.failed:
        submission.verdict = Verdict.grader_error
        submission.finished_at = now
    logger.warning(
        "trace %s: attempt %d of submission %s is %s (%s); the submission is %s",
        submission.trace, attempt.fence, submission.public_id, end, reason, after,
    )  # fmt: skip
