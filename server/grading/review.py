"""What staff decide about a submission's speed: it counts, or it does not."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from server import alerts, audit
from server.errors import ConflictError
from server.grading.grades import set_points
from server.grading.lock import lock_submission
from server.grading.rejected import follow_review
from server.groups import groups
from server.messages import messages
from server.models import (
    AlertKind,
    Assignment,
    ChangeReason,
    FindingLook,
    NotificationKind,
    Result,
    Review,
    Submission,
    User,
)

_ALERTS = (AlertKind.result_held, AlertKind.confirmation_failed, AlertKind.suspect_held)
_SAID = {
    Review.held: "is held until staff have reviewed it",
    Review.cleared: "counts: staff have reviewed it",
    Review.rejected: "does not count: staff have reviewed it",
}


def decide(
    session: Session,
    submission: Submission,
    review: Review,
    *,
    actor: User | None,
    reason: str,
    now: datetime,
    seen: Review | None = None,
    told: bool = False,
    tell: bool = True,
) -> Submission:
    """Hold a submission, clear it or reject its speed, with an entry in the trail and one in its grade's.

    What there was to look at counts as looked at. While it is rejected its samples count for nobody else.

    Args:
        seen: what it was when `actor` looked; somebody else may have decided since.
        told: the student reads the reason.
        tell: its student and their group get a message.

    Raises:
        ConflictError: it is so already, has no result, or is not what was `seen`.
    """
    row = lock_submission(session, submission.id)
    if row is None or row.result_id is None:
        raise ConflictError(f"Submission {submission.public_id} has no result to decide about.")
    if row.review is review:
        raise ConflictError(f"Submission {submission.public_id} is {review} already.")
    if seen is not None and row.review is not seen:
        raise ConflictError(f"Somebody else decided meanwhile: submission {submission.public_id} is {row.review} now.")
    before, row.review = row.review, review
    row.revision += 1
    set_points(session, row, session.get_one(Result, row.result_id), ChangeReason.reviewed, now=now)
    if Review.rejected in {before, review}:
        follow_review(session, row, now=now)
    detail = {"before": before.value, "after": review.value, "points": row.points, "told": reason if told else ""}
    subject = f"submission:{row.public_id}"
    entry = audit.record(
        session, action="submission.reviewed", subject=subject, actor=actor, detail=detail, reason=reason
    )
    if review is not Review.held:
        for kind in _ALERTS:
            alerts.resolve(session, kind, subject, now, by=actor)
        looked_at(session, row, actor=actor, reason=reason, now=now)
    session.flush()
    if tell:
        _tell(session, row, entry.id)
    return row


def looked_at(session: Session, submission: Submission, *, actor: User | None, reason: str, now: datetime) -> int:
    """Whatever was found in it, somebody has looked at it now; how many results that were still to be looked at."""
    query = (
        update(FindingLook)
        .where(FindingLook.submission_id == submission.id, FindingLook.looked_at.is_(None))
        .values(looked_at=now, looked_by_id=actor.id if actor else None, reason=reason)
        .returning(FindingLook.id)
    )
    return len(session.scalars(query).all())


def _tell(session: Session, submission: Submission, entry: int) -> None:
    title = session.scalars(select(Assignment.title).where(Assignment.id == submission.assignment_id)).one()
    messages.notify(
        session,
        groups.together(session, submission.assignment_id, submission.user_id),
        NotificationKind.held_decided,
        course_id=submission.course_id,
        title=f"The speed of submission {submission.number} in {title} {_SAID[submission.review]}",
        url=f"/submissions/{submission.public_id}/appeal",
        key=f"reviewed:{entry}",
    )
