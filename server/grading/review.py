"""What staff decide about a submission's speed: it counts, or it does not."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy.orm import Session

from server.alerts import service as alerts
from server.audit import service as audit
from server.errors import ConflictError
from server.grading.grades import set_points
from server.grading.lock import lock_submission
from server.models import AlertKind, ChangeReason, Result, Review, Submission, User

_ALERTS = (AlertKind.result_held, AlertKind.confirmation_failed, AlertKind.suspect_held)


def decide(
    session: Session, submission: Submission, review: Review, *, actor: User | None, reason: str, now: datetime
) -> Submission:
    """Hold a submission, clear it or reject its speed, with an entry in the trail and one in its grade's.

    Raises:
        ConflictError: it is so already, or has no result.
    """
    row = lock_submission(session, submission.id)
    if row is None or row.result_id is None:
        raise ConflictError(f"Submission {submission.public_id} has no result that anybody could decide about.")
    if row.review is review:
        raise ConflictError(f"Submission {submission.public_id} is {review} already.")
    before, row.review = row.review, review
    row.revision += 1
    set_points(session, row, session.get_one(Result, row.result_id), ChangeReason.reviewed, now=now)
    detail = {"before": before.value, "after": review.value, "points": row.points}
    subject = f"submission:{row.public_id}"
    audit.record(session, action="submission.reviewed", subject=subject, actor=actor, detail=detail, reason=reason)
    if review is not Review.held:
        for kind in _ALERTS:
            alerts.resolve(session, kind, subject, now, by=actor)
    return row
