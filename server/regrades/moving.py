"""Letting what a proposal found count, and giving back what counted before.

The submission's row is locked. What is not any more as the proposal saw it is told as a conflict and left alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from server import alerts, dirty_grades
from server.grading.grades import set_points
from server.grading.pool_names import pool_by, pool_for
from server.grading.regrade_attempts import facts_of, target_of
from server.grading.sample_sets import keep_floor, read_pool, update_one, update_others
from server.grading.states import FINAL, submission_moves
from server.models import (
    AlertKind,
    AssignmentVersion,
    Attempt,
    ChangeReason,
    GradeChange,
    Line,
    RegradeItem,
    RegradeItemState,
    RegradeKind,
    Result,
    Review,
    Sampling,
    State,
    Submission,
    Trial,
    Verdict,
)

_CHANGED = (
    ("version_id", "It has been regraded with another version since."),
    ("result_id", "It has been graded again since, and another result counts now."),
    ("review", "Staff have decided its review since."),
    ("points", "Its points have changed since: it was measured or scored again."),
    ("result", "The points of its result have been computed again since."),
)


def apply_item(
    session: Session, item: RegradeItem, submission: Submission, kind: RegradeKind, *, now: datetime
) -> None:
    """Let it count, keep what counts, or say what is in the way."""
    if (reason := _in_the_way(session, item, submission)) is not None:
        item.state, item.note = RegradeItemState.conflict, reason
    elif not item.moves:
        item.state = RegradeItemState.kept
    elif kind is RegradeKind.rerun:
        _move_to_result(session, item, submission, now)
        _done(session, item, submission, now)
    else:
        _move_to_scores(session, item, submission, now)
        _done(session, item, submission, now)


def _in_the_way(session: Session, item: RegradeItem, submission: Submission) -> str | None:
    if submission.state not in FINAL:
        return "It is being graded again now."
    now = facts_of(submission, _counting(session, submission))
    for name, reason in _CHANGED:
        if now[name] != item.before[name]:
            return reason
    return None


def _counting(session: Session, submission: Submission) -> Result | None:
    return session.get(Result, submission.result_id) if submission.result_id is not None else None


def _done(session: Session, item: RegradeItem, submission: Submission, now: datetime) -> None:
    item.state, item.applied_at = RegradeItemState.applied, now
    item.new_points = submission.points
    submission.revision += 1
    item.after = {**facts_of(submission, _counting(session, submission)), "revision": submission.revision}


def _move_to_result(session: Session, item: RegradeItem, submission: Submission, now: datetime) -> None:
    row = session.get_one(Result, item.result_id)
    version = target_of(session, item)
    graded_otherwise = session.get_one(AssignmentVersion, submission.version_id).grading_hash != version.grading_hash
    # First its pool: that it is graded as before is seen by the version that it still has.
    submission.pool = pool_by(session, submission, version)
    submission.version_id = version.id
    _move_samples(session, item, pool_for(submission, submission.pool))
    submission.result_id, submission.verdict = row.id, row.verdict
    if graded_otherwise:
        submission.confirmations = 0
    row.speed_floor = item.speed_floor
    keep_floor(row)
    _is_graded(session, submission, row, now)
    set_points(session, submission, row, ChangeReason.regraded, now=now)
    _follow_pool(session, submission, row, now)


def _is_graded(session: Session, submission: Submission, row: Result, now: datetime) -> None:
    """One that had failed has its result; what is held waits for a person."""
    subject = f"submission:{submission.public_id}"
    if submission.state is State.failed:
        submission.state = submission_moves(submission_moves(submission.state, State.queued), State.done)
        submission.finished_at = now
        alerts.resolve(session, AlertKind.submission_failed, subject, now)
    if row.held and submission.review is Review.none:
        submission.review = Review.held
        message = (
            f"The speed of {submission.public_id} is held for your review: an applied regrade has a held measurement."
        )
        alerts.raise_alert(session, AlertKind.result_held, subject, message, now)


def _move_samples(session: Session, item: RegradeItem, pool: str) -> None:
    """Let its samples be those of this pool."""
    own = select(Trial.attempt_id).where(Trial.item_id == item.id)
    session.execute(update(Sampling).where(Sampling.attempt_id.in_(own)).values(pool=pool))


def _follow_pool(session: Session, submission: Submission, row: Result, now: datetime) -> None:
    """Its pool may hold more than the proposal saw, and others follow it too."""
    pool = read_pool(session, submission)
    if pool.attempts and pool.attempts != row.pooled_attempts:
        update_one(session, submission, pool, now)
    update_others(session, submission, pool, now=now)


def _move_to_scores(session: Session, item: RegradeItem, submission: Submission, now: datetime) -> None:
    row = session.get_one(Result, submission.result_id)
    _write(row, item.scores)
    set_points(session, submission, row, ChangeReason.rescored, now=now)


def _write(row: Result, fields: Mapping[str, Any]) -> None:
    for name, value in fields.items():
        setattr(row, name, value)


def roll_back_item(session: Session, item: RegradeItem, submission: Submission, *, now: datetime) -> str | None:
    """Give back what counted before, or say what is in the way.

    Returns:
        the pool that it left, which has fewer samples now; whoever is still in it has to follow.
    """
    if (reason := _not_as_left(session, item, submission)) is not None:
        item.note = reason
        item.state = RegradeItemState.conflict
        return None
    before, left = item.before, submission.pool
    submission.version_id, submission.pool = before["version_id"], before["pool"]
    submission.result_id = before["result_id"]
    submission.verdict = Verdict(before["verdict"]) if before["verdict"] else None
    submission.confirmations = before["confirmations"]
    if submission.review.value == item.after["review"]:
        submission.review = Review(before["review"])
    _samples_back(session, item, submission)
    _points_back(session, item, submission, now)
    item.state, item.note = RegradeItemState.rolled_back, ""
    submission.revision += 1
    return left if left != submission.pool else None


def _not_as_left(session: Session, item: RegradeItem, submission: Submission) -> str | None:
    """A confirmation since then is no hindrance: what it measured was added."""
    if submission.state not in FINAL:
        return "It is being graded again now; roll it back when that is over."
    if (newer := _applied_since(session, item)) is not None:
        return f"Regrade {newer.regrade_id} was applied to it since."
    if submission.version_id != item.after["version_id"]:
        return "It has been regraded with another version since."
    if submission.result_id in {item.after["result_id"], None}:
        return None
    query = select(Attempt.line).join(Result, Result.attempt_id == Attempt.id)
    if session.scalar(query.where(Result.id == submission.result_id)) is Line.confirm:
        return None
    return "It has been graded again since, and another result counts now."


def _applied_since(session: Session, item: RegradeItem) -> RegradeItem | None:
    """The last that another proposal moved it by, later than this one, and that still stands; its row is locked."""
    query = select(RegradeItem).where(
        RegradeItem.submission_id == item.submission_id,
        RegradeItem.id != item.id,
        RegradeItem.applied_at.is_not(None),
        # One in conflict was passed over by a roll-back.
        RegradeItem.state.in_((RegradeItemState.applied, RegradeItemState.conflict)),
    )
    newest = max(session.scalars(query.execution_options(populate_existing=True)), key=_turn, default=None)
    return newest if newest is not None and _turn(newest) > _turn(item) else None


def _turn(item: RegradeItem) -> tuple[Any, ...]:
    """Items of a submission sort as they were applied: its revision only grows, while times may be equal."""
    # What was applied before its revision was noted came first.
    return item.after.get("revision", 0), item.applied_at, item.id


def _samples_back(session: Session, item: RegradeItem, submission: Submission) -> None:
    if item.pool is not None:
        _move_samples(session, item, pool_for(submission, item.pool))


def _points_back(session: Session, item: RegradeItem, submission: Submission, now: datetime) -> None:
    row = _counting(session, submission)
    if row is None:
        _without_result(session, item, submission, now)
        return
    _write(row, item.before["result"])
    set_points(session, submission, row, ChangeReason.rolled_back, now=now)
    _follow_pool(session, submission, row, now)


def _without_result(session: Session, item: RegradeItem, submission: Submission, now: datetime) -> None:
    """It had none, which was ours."""
    session.add(
        GradeChange(submission_id=submission.id, at=now, reason=ChangeReason.rolled_back, before=submission.points,
                    after=None, formula_version=session.get_one(Result, item.result_id).formula_version)
    )  # fmt: skip
    submission.points = None
    if submission.state is not State.failed:
        submission.state = submission_moves(submission_moves(submission.state, State.queued), State.failed)
    dirty_grades.grades(session, submission.course_id, submission.user_id)
