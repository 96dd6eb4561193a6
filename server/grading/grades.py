"""What a submission's result is worth now, and the trail of every change of it: a grade never changes silently."""

from __future__ import annotations

import math
from datetime import datetime

from sqlalchemy.orm import Session

from server import dirty_grades
from server.models import ChangeReason, GradeChange, Mode, Result, Review, Submission


def points_of(submission: Submission, result: Result) -> float | None:
    """What counts now: a held submission's speed points wait, a rejected one's are gone; practice earns none.

    Speed that has to be measured again waits too, unless staff cleared it.
    """
    if submission.mode is not Mode.submission:
        return None
    return result.correctness_points + (result.speed_points if earns_speed(submission, result) else 0.0)


def earns_speed(submission: Submission, result: Result) -> bool:
    """Whether its speed points, and its place on the leaderboard, count."""
    return submission.review is Review.cleared or (submission.review is Review.none and result.settled)


def set_points(
    session: Session, submission: Submission, result: Result, reason: ChangeReason, *, now: datetime
) -> bool:
    """Let the points be what they are worth, and note it where that is another number; whether it is."""
    before, after = submission.points, points_of(submission, result)
    if after == before or (after is not None and before is not None and math.isclose(after, before, abs_tol=1e-9)):
        return False
    submission.points = after
    submission.revision += 1
    dirty_grades.grades(session, submission.course_id, submission.user_id)
    session.add(
        GradeChange(
            submission_id=submission.id,
            at=now,
            reason=reason,
            before=before,
            after=after,
            formula_version=result.formula_version,
        )
    )
    return True
