"""A student's choice of the submission that counts."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from server import audit, dirty_grades
from server.courses.courses import Membership
from server.courses.deadlines import deadlines_of
from server.errors import InvalidInputError, NotFoundError
from server.gradebook.recompute import lock_people
from server.groups import groups
from server.models import ActiveChoice, Assignment, Mode, Submission


def choose(
    session: Session, member: Membership, assignment: Assignment, submission: Submission | None, *, now: datetime
) -> ActiveChoice | None:
    """Let this submission count for the member; `None`: the best one again. The same choice again changes nothing.

    One that has no points yet counts as soon as it has; until then the best does.

    Raises:
        NotFoundError: it is not the member's, nor of their group.
        InvalidInputError: it is a practice run, or was uploaded after the end.
    """
    user = member.user
    if submission is not None:
        _check(session, assignment, user.id, submission)
    lock_people(session, assignment.course_id, [user.id])
    current = choice_of(session, assignment.id, user.id)
    if (current.submission_id if current else None) == (submission.id if submission else None):
        return current
    if current is not None:
        current.withdrawn_at = now
        session.flush()
    made = _add(session, assignment, user.id, submission, now) if submission is not None else None
    dirty_grades.grades(session, assignment.course_id, user.id)
    audit.record(
        session,
        action="submission.chosen" if submission else "submission.best_chosen",
        subject=f"assignment:{assignment.id}",
        actor=user,
        detail={"user": user.id, "submission": submission.public_id if submission else None},
    )
    return made


def choice_of(session: Session, assignment_id: int, user_id: int) -> ActiveChoice | None:
    """What the student chose; `None`: the best counts."""
    query = select(ActiveChoice).where(
        ActiveChoice.assignment_id == assignment_id,
        ActiveChoice.user_id == user_id,
        ActiveChoice.withdrawn_at.is_(None),
    )
    return session.scalar(query.execution_options(populate_existing=True))


def _check(session: Session, assignment: Assignment, user_id: int, submission: Submission) -> None:
    theirs = submission.user_id in groups.together(session, assignment.id, user_id)
    if submission.assignment_id != assignment.id or not theirs:
        raise NotFoundError("There is no such submission.")
    if submission.mode is not Mode.submission:
        raise InvalidInputError(f"A {submission.mode.noun} cannot count towards the grade.", field="submission")
    if deadlines_of(session, assignment, user_id).is_closed(submission.uploaded_at):
        raise InvalidInputError("It was uploaded after the last date, so it cannot count.", field="submission")


def _add(session: Session, assignment: Assignment, user_id: int, submission: Submission, now: datetime) -> ActiveChoice:
    made = ActiveChoice(
        course_id=assignment.course_id,
        assignment_id=assignment.id,
        user_id=user_id,
        submission_id=submission.id,
        at=now,
    )
    session.add(made)
    session.flush()
    return made
