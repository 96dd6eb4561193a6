"""Grading once more what counts, on another node where there is one, when nobody else waits.

Who would count with a speed is confirmed once; whoever stands on top of a leaderboard more often, on other days. What a
node measured while it was sick is graded once more as well. All of it has its grade meanwhile: the new samples are
added to the pool, and if it does not pass it is held until a person has looked (`server.grading.onward`).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from sqlalchemy import Select, func, or_, select
from sqlalchemy.orm import Session, aliased

from autograder.contract import Lane, Mode, Review, State, Verdict
from server.grading.lock import lock_submission
from server.grading.onward import measuring_work
from server.grading.requeue import back_in_line, first_work
from server.grading.results import manifest_of
from server.models import Assignment, AssignmentVersion, Attempt, Line, Node, Result, Sampling, Submission

CONFIRM_LIMIT = 20
"""So many at once stand in the queue to be confirmed; the rest is the next look's."""
AGAIN_AFTER = timedelta(hours=20)
"""Between two confirmations of one submission: another day, another hour of it."""
HEARD_AFTER = timedelta(minutes=1)
"""A result counts as finished when it is recorded, a little after its node sent it."""
TOP = 3
TOP_CONFIRMATIONS = 3
"""Who stands on the first places of a leaderboard is confirmed so often."""


def confirm_due(session: Session, *, now: datetime) -> int:
    """Put into the queue what is to be confirmed; how many."""
    waiting = select(func.count()).where(Submission.line == Line.confirm, Submission.state != State.done)
    room = CONFIRM_LIMIT - session.scalars(waiting.select_from(Submission)).one()
    if room <= 0:
        return 0
    found = session.scalars(_due(now).limit(room)).all()
    return sum(_confirm(session, item, now, check_too=True) for item in found)


def measure_suspects_again(session: Session, *, now: datetime) -> int:
    """Put into the queue what nodes measured while they were sick, by what they said of themselves; how many."""
    sick = session.scalars(select(Node).where(Node.suspect_handled.is_(False)).with_for_update(skip_locked=True)).all()
    count = 0
    for node in sick:
        count += sum(_confirm(session, item, now, check_too=False) for item in _measured_by(session, node))
        node.suspect_handled = True
    return count


def _due(now: datetime) -> Select[int]:
    """Ids of submissions that count with a speed, each person's best, and were not confirmed often enough lately."""
    current = aliased(AssignmentVersion)
    best = (
        select(
            Submission.id,
            Submission.lane,
            Submission.confirmations,
            Submission.confirmed_at,
            Submission.state,
            Assignment.id.label("assignment_id"),
            Result.ratio,
            func.row_number()
            .over(
                partition_by=(Submission.user_id, Submission.assignment_id, Submission.lane),
                order_by=(Result.ratio, Submission.uploaded_at, Submission.id),
            )
            .label("own"),
        )
        .join(Result, Result.id == Submission.result_id)
        .join(Assignment, Assignment.id == Submission.assignment_id)
        .join(AssignmentVersion, AssignmentVersion.id == Submission.version_id)
        .join(current, current.id == Assignment.version_id)
        .where(
            # What an older version graded otherwise stands on no leaderboard any more.
            AssignmentVersion.grading_hash == current.grading_hash,
            Submission.mode == Mode.submission,
            Submission.lane != Lane.cpu,
            Submission.review.in_((Review.none, Review.cleared)),
            Result.verdict == Verdict.passed,
            Result.ratio.is_not(None),
            Result.settled,
        )
        .subquery()
    )
    place = func.row_number().over(partition_by=(best.c.assignment_id, best.c.lane), order_by=best.c.ratio)
    ranked = select(best, place.label("place")).where(best.c.own == 1).subquery()
    often_enough = or_(
        ranked.c.confirmations == 0, (ranked.c.place <= TOP) & (ranked.c.confirmations < TOP_CONFIRMATIONS)
    )
    rested = or_(ranked.c.confirmed_at.is_(None), ranked.c.confirmed_at < now - AGAIN_AFTER)
    return (
        select(ranked.c.id)
        .where(ranked.c.state == State.done, often_enough, rested)
        .order_by(ranked.c.confirmations, ranked.c.id)
    )


def _measured_by(session: Session, node: Node) -> Iterable[int]:
    if node.suspect_since_at is None or node.suspect_until_at is None:
        return []
    measured = (
        select(Attempt.submission_id)
        .join(Sampling, Sampling.attempt_id == Attempt.id)
        .where(
            Attempt.node_id == node.id,
            Attempt.finished_at >= node.suspect_since_at,
            Attempt.finished_at <= node.suspect_until_at + HEARD_AFTER,
        )
        .distinct()
    )
    return session.scalars(measured.order_by(Attempt.submission_id)).all()


def _confirm(session: Session, submission_id: int, now: datetime, *, check_too: bool) -> bool:
    """Queue it, if it is still over; one that waits or runs gets new samples anyway."""
    row = lock_submission(session, submission_id, skip_locked=True)
    if row is None or row.state is not State.done:
        return False
    manifest = manifest_of(session.get_one(AssignmentVersion, row.version_id))
    policy = manifest.policy(row.lane)
    if policy is None or not policy.speed_points:
        return False
    last = select(Attempt.node_id).join(Result, Result.attempt_id == Attempt.id).where(Result.id == row.result_id)
    row.avoid_node_id = session.scalar(last)
    row.work = first_work(manifest, row.lane, row.mode) if check_too else measuring_work(manifest, row)
    row.confirmed_at = now
    back_in_line(row, Line.confirm, now=now)
    return True
