"""The best times that were verified so far: who is far below them is measured again."""

from __future__ import annotations

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from server.models import (
    AssignmentVersion,
    CaseRow,
    Lane,
    Mode,
    Result,
    Review,
    Submission,
    Verdict,
    Visibility,
)


def best_times(session: Session, grading_hash: str, lane: Lane) -> dict[str, float]:
    """Microseconds by ranked case, over everything that counts on this lane and was graded the same way.

    The CPU lane has none: interpreter times are practice, and nobody is held for them.
    """
    if lane is Lane.cpu:
        return {}
    query = (
        select(CaseRow.name, func.min(CaseRow.time_us))
        .join(Result, Result.id == CaseRow.result_id)
        .join(Submission, Submission.result_id == Result.id)
        .join(AssignmentVersion, AssignmentVersion.id == Submission.version_id)
        .where(
            AssignmentVersion.grading_hash == grading_hash,
            Submission.lane == lane,
            Submission.mode == Mode.submission,
            Submission.review.in_((Review.none, Review.cleared)),
            Result.verdict == Verdict.passed,
            Result.settled,
            CaseRow.time_us.is_not(None),
            CaseRow.visibility == Visibility.public,
        )
        .group_by(CaseRow.name)
    )
    return {name: best_us for name, best_us in session.execute(query) if best_us is not None}
