"""Points that staff set instead of what a grade would come to, and took back."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session, joinedload

from server import audit, dirty_grades
from server.courses.courses import Membership
from server.errors import ConflictError, InvalidInputError
from server.gradebook.people import checked_reason, students_of
from server.gradebook.recompute import lock_people
from server.messages.messages import notify
from server.models import Assignment, Grade, GradeOverride, NotificationKind

MOST_POINTS = 10_000.0


def set_override(
    session: Session,
    member: Membership,
    assignment: Assignment,
    user_id: int,
    *,
    points: float,
    reason: str,
    revision: int,
    now: datetime,
    above: bool = False,
) -> GradeOverride:
    """Set a student's points in an assignment; what was set before is replaced.

    Args:
        revision: of the grade that the decision was made by.
        above: it was confirmed that they may be more than the assignment gives.

    Raises:
        NotFoundError: they are no student of this course.
        InvalidInputError: these are no points that can be given, they are too many without `above`, or there is no
            reason.
        ConflictError: the grade has changed since.
    """
    member.require_staff()
    reason = checked_reason(reason)
    check_points(points)
    before = _locked(session, assignment, user_id, revision)
    if points > before.possible and not above:
        said = f"{points:g} is more than the {before.possible:g} points of {assignment.title}."
        raise InvalidInputError(f"{said} Confirm that you mean it.", field="above")
    _end(session, member, assignment.id, user_id, now)
    row = GradeOverride(
        course_id=assignment.course_id,
        assignment_id=assignment.id,
        user_id=user_id,
        points=points,
        reason=reason,
        actor_id=member.user.id,
        at=now,
    )
    session.add(row)
    session.flush()
    decision = _Decision("grade.overridden", user_id, before.points, points, reason, f"override:{row.id}")
    _note(session, member, assignment, decision)
    return row


def undo_override(
    session: Session,
    member: Membership,
    assignment: Assignment,
    user_id: int,
    *,
    reason: str,
    revision: int,
    now: datetime,
) -> None:
    """Let the grade be what it comes to again.

    Raises:
        NotFoundError: they are no student of this course.
        ConflictError: the grade has changed since, or nothing is set.
    """
    member.require_staff()
    reason = checked_reason(reason)
    before = _locked(session, assignment, user_id, revision)
    row = _end(session, member, assignment.id, user_id, now)
    if row is None:
        raise ConflictError("These points are not an override; there is nothing to undo.")
    decision = _Decision("grade.override_undone", user_id, before.points, None, reason, f"override-undone:{row.id}")
    _note(session, member, assignment, decision)


def history(session: Session, assignment_id: int, user_id: int) -> list[GradeOverride]:
    """What was set for this student, also what was taken back, the newest first, with who did."""
    query = (
        select(GradeOverride)
        .where(GradeOverride.assignment_id == assignment_id, GradeOverride.user_id == user_id)
        .options(joinedload(GradeOverride.actor))
        .order_by(GradeOverride.id.desc())
    )
    return list(session.scalars(query))


def check_points(points: float) -> None:
    """Refuse points that nobody can have.

    Raises:
        InvalidInputError: they are below 0, too many, or no number.
    """
    if not 0 <= points <= MOST_POINTS:
        raise InvalidInputError(f"Points are a number from 0 to {MOST_POINTS:,.0f}.", field="points")


def _locked(session: Session, assignment: Assignment, user_id: int, revision: int) -> Grade:
    """The grade as it is now, which nobody else changes until the transaction ends."""
    students_of(session, assignment.course_id, [user_id])
    lock_people(session, assignment.course_id, [user_id])
    query = select(Grade).where(Grade.user_id == user_id, Grade.assignment_id == assignment.id)
    grade = session.scalar(query.execution_options(populate_existing=True))
    if grade is None or grade.revision != revision:
        is_now = f" It is {grade.points:.2f} of {grade.possible:g} now." if grade else ""
        raise ConflictError(f"This grade has changed since you opened it.{is_now} Check it again, then decide.")
    return grade


def _end(session: Session, member: Membership, assignment_id: int, user_id: int, now: datetime) -> GradeOverride | None:
    query = select(GradeOverride).where(
        GradeOverride.assignment_id == assignment_id,
        GradeOverride.user_id == user_id,
        GradeOverride.undone_at.is_(None),
    )
    row = session.scalar(query.execution_options(populate_existing=True))
    if row is not None:
        row.undone_at, row.undone_by_id = now, member.user.id
        session.flush()
    return row


@dataclass(frozen=True)
class _Decision:
    """A decision about one grade; `key` names it to the student."""

    action: str
    user_id: int
    before: float
    after: float | None
    reason: str
    key: str


def _note(session: Session, member: Membership, assignment: Assignment, made: _Decision) -> None:
    """Everything that a decision about one grade brings with it."""
    dirty_grades.grades(session, assignment.course_id, made.user_id)
    audit.record(
        session,
        action=made.action,
        subject=f"assignment:{assignment.id}",
        actor=member.user,
        detail={"user": made.user_id, "before": made.before, "after": made.after},
        reason=made.reason,
    )
    if assignment.grades_published_at is None:
        return
    notify(
        session,
        [made.user_id],
        NotificationKind.grade_changed,
        course_id=assignment.course_id,
        title=f"Your grade for {assignment.title} has changed",
        url=f"/courses/{member.course.slug}/grades",
        key=made.key,
    )
