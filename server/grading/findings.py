"""Results with findings that staff have not looked at yet. A finding is something to look at, never a verdict."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from autograder.contract import GradeResult
from server import audit
from server.errors import ConflictError
from server.grading.review import looked_at
from server.models import FindingLook, Mode, Result, Submission, User


def note(session: Session, submission: Submission, result: Result, whole: GradeResult) -> None:
    """Put a result with findings on the list; the same findings that somebody looked at before are looked at already.

    A submission is graded more than once, to confirm it or because its node was sick: nobody should have to look again.
    """
    kinds = sorted({finding.kind.value for finding in whole.findings})
    if not kinds or submission.mode is not Mode.submission:
        return
    earlier = session.scalars(
        select(FindingLook)
        .where(FindingLook.submission_id == submission.id, FindingLook.looked_at.is_not(None))
        .order_by(FindingLook.id.desc())
        .limit(1)
    ).first()
    same = earlier is not None and set(kinds) <= set(earlier.kinds)
    session.add(
        FindingLook(
            course_id=submission.course_id,
            submission_id=submission.id,
            result_id=result.id,
            kinds=kinds,
            created_at=result.created_at,
            looked_at=earlier.looked_at if earlier and same else None,
            looked_by_id=earlier.looked_by_id if earlier and same else None,
            reason=earlier.reason if earlier and same else "",
        )
    )


def look(session: Session, submission: Submission, *, actor: User, reason: str, now: datetime) -> None:
    """Take it off the list without deciding anything: there was nothing to it.

    Raises:
        ConflictError: somebody looked at it already, or there is nothing to look at.
    """
    if not looked_at(session, submission, actor=actor, reason=reason, now=now):
        raise ConflictError("Somebody has looked at this already, or there is no open finding.")
    audit.record(
        session,
        action="submission.looked_at",
        subject=f"submission:{submission.public_id}",
        actor=actor,
        reason=reason,
    )
