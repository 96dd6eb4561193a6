"""Whether a student may ask for a submission to be looked at again: whose it is, until when, how often.."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from server.models import Assignment, Mode, RegradeRequest, RequestState, State, Submission, User, Verdict
from server.regrades.rules import rules_of


@dataclass(frozen=True)
class Asking:
    """Whether a student may ask about a submission now.

    Attributes:
        why_not: `""` where they may.
        opens_at: nobody may ask before; `None` where that is over, or there is no such time.
        closes_at: nobody may ask after; `None` while the grades are not published.
        left: how many more requests the quota allows here, this one too.
        free: this one would count against no quota.
    """

    why_not: str
    opens_at: datetime | None
    closes_at: datetime | None
    left: int
    free: bool


def asking(session: Session, user: User, submission: Submission, *, now: datetime) -> Asking:
    """Whether `user` may ask about it now."""
    rules = rules_of(session, submission.course_id)
    published_at = session.get_one(Assignment, submission.assignment_id).grades_published_at
    begins = max(filter(None, (published_at, submission.finished_at)), default=now)
    opens_at = begins + timedelta(hours=rules.cooling_off_h)
    closes_at = begins + timedelta(days=rules.window_days) if published_at is not None else None
    free = submission.state is State.failed or submission.verdict is Verdict.grader_error
    left = min(
        rules.per_assignment - _asked(session, user, submission.course_id, submission.assignment_id),
        rules.per_course - _asked(session, user, submission.course_id, None),
    )
    reasons = (
        ("Regrade requests are closed in this course.", not rules.enabled),
        (
            f"A {submission.mode.noun} has no grade, so no regrade is possible.",
            submission.mode is not Mode.submission,
        ),
        ("Only the person who submitted it can ask.", submission.user_id != user.id),
        ("It has no result yet.", submission.verdict is None or submission.state is State.cancelled),
        ("Regrade requests for it are not open yet.", now < opens_at),
        ("The time for regrade requests is over.", closes_at is not None and now > closes_at),
        ("You have used all your requests; a granted request is given back.", left <= 0 and not free),
    )
    why_not = next((reason for reason, holds in reasons if holds), "")
    return Asking(why_not, opens_at if now < opens_at else None, closes_at, max(left, 0), free)


def _asked(session: Session, user: User, course_id: int, assignment_id: int | None) -> int:
    """How many count against a quota: what was granted, and what our side had failed at, does not."""
    query = select(func.count()).where(
        RegradeRequest.user_id == user.id,
        RegradeRequest.course_id == course_id,
        RegradeRequest.state != RequestState.accepted,
        RegradeRequest.free.is_(False),
    )
    if assignment_id is not None:
        query = query.where(RegradeRequest.assignment_id == assignment_id)
    return session.scalars(query.select_from(RegradeRequest)).one()
