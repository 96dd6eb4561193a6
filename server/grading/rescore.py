"""Working grades out anew by another formula, from stored samples, without grading; first to see, then for good."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session, joinedload, undefer

from autograder import codec
from autograder.contract import GradeResult
from autograder.scores import score
from server.grading.grades import points_of, set_points
from server.grading.pools import keep_floor, let_have_speed, note_pool, read_pool, with_pool
from server.grading.results import manifest_of
from server.models import Assignment, AssignmentVersion, ChangeReason, Mode, Result, Submission


@dataclass(frozen=True)
class Rescored:
    """A submission whose points are, or would be, other ones."""

    submission: str
    before: float | None
    after: float | None


def rescore(session: Session, assignment: Assignment, *, now: datetime) -> Sequence[Rescored]:
    """Work out every result that counts by the formula and the assignment's current points and tiers; what changed.

    To only see what would change, roll the transaction back.
    """
    if assignment.version_id is None:
        return []
    version_id = assignment.version_id
    query = (
        select(Submission)
        .where(Submission.assignment_id == assignment.id, Submission.result_id.is_not(None))
        .where(Submission.mode == Mode.submission)
        .options(joinedload(Submission.result).options(undefer(Result.payload)))
        .order_by(Submission.id)
        .with_for_update(of=Submission)
    )
    found = (_rescore_one(session, version_id, submission, now) for submission in session.scalars(query).all())
    return [item for item in found if item is not None]


def _rescore_one(session: Session, version_id: int, submission: Submission, now: datetime) -> Rescored | None:
    row = submission.result
    if row is None:
        return None
    manifest = manifest_of(session.get_one(AssignmentVersion, version_id))
    pool = read_pool(session, submission)
    scored = score(manifest, with_pool(codec.from_json(GradeResult, row.payload), pool), submission.lane)
    row.scored_version_id = version_id if version_id != submission.version_id else None
    row.correctness_points = scored.correctness_points
    row.speed_points = scored.speed_points
    keep_floor(row)
    let_have_speed(row, scored.speed)
    note_pool(row, pool)
    before, after = submission.points, points_of(submission, row)
    changed = set_points(session, submission, row, ChangeReason.rescored, now=now)
    return Rescored(submission.public_id, before, after) if changed else None
