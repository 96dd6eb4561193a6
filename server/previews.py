"""Begin to look at a course as a student does, and say what such a look may open.

It is the student's own pages that are shown, with their dates and marks as they are at the chosen time; what they have
handed in is shown as it is now. A look is bound to the login it was begun with and to one course: whatever else the
student has, here or in another course, stays closed.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Select, delete, select
from sqlalchemy.orm import Session, joinedload

from server import audit, ids
from server.courses.courses import Membership
from server.errors import InvalidInputError, NotFoundError
from server.models import Course, Enrolment, LoginSession, Preview, Role, Submission, User

LASTS = timedelta(minutes=30)
_STAFF = (Role.ta, Role.instructor)


def start(
    session: Session,
    member: Membership,
    login: LoginSession,
    *,
    student_id: int,
    shown_at: datetime | None,
    now: datetime,
) -> tuple[Preview, str]:
    """Begin: its row, and the token for the cookie, which is stored nowhere.

    Args:
        shown_at: the time that its pages show; `None`: as it is.

    Raises:
        ForbiddenError: the member is no staff.
        NotFoundError: there is no such student in the course.
        InvalidInputError: they are an admin, whom nobody can look as.
    """
    member.require_staff()
    student = session.scalar(_student(member.course.id, student_id))
    if student is None:
        raise NotFoundError("There is no such student in this course.")
    if student.is_admin:
        raise InvalidInputError(
            "This person is an admin and sees more than a student: choose somebody else.", field="student"
        )
    session.execute(delete(Preview).where((Preview.login_id == login.id) | (Preview.expires_at < now)))
    token = ids.session_token()
    row = Preview(
        token_hash=ids.token_hash(token),
        login_id=login.id,
        course_id=member.course.id,
        student_id=student.id,
        shown_at=shown_at,
        created_at=now,
        expires_at=now + LASTS,
    )
    session.add(row)
    session.flush()
    audit.record(
        session,
        action="preview.started",
        subject=f"user:{student.id}",
        actor=member.user,
        detail={"course": member.course.slug, "shown_at": shown_at.isoformat() if shown_at else None},
    )
    return row, token


def opened(session: Session, login: LoginSession, token: str, *, now: datetime) -> Preview | None:
    """The look that this cookie of this login belongs to, with course and student.

    `None` once it is over, or either of the two is not in the course any more as what they were.
    """
    row = session.scalar(
        select(Preview)
        .where(Preview.token_hash == ids.token_hash(token), Preview.login_id == login.id, Preview.expires_at > now)
        .options(joinedload(Preview.course, innerjoin=True), joinedload(Preview.student, innerjoin=True))
    )
    if row is None or session.scalar(_student(row.course_id, row.student_id)) is None:
        return None
    return row if login.user.is_admin or _is_staff(session, row.course_id, login.user_id) else None


def may_open(session: Session, row: Preview, path: str) -> bool:
    """Whether an address belongs to the course that is looked at, or is the help page."""
    parts = path.removeprefix("/api/v1").strip("/").split("/")
    match parts:
        case ["courses", slug, *_]:
            return slug == row.course.slug
        case ["submissions", public_id, *_]:
            query = select(Submission.course_id).where(Submission.public_id == public_id)
            return session.scalar(query) == row.course_id
        case ["help"]:
            return True
    return False


def end(session: Session, login: LoginSession) -> str | None:
    """End what this login looks at; the course's slug, `None` where it looked at nothing."""
    query = select(Course.slug).join(Preview, Preview.course_id == Course.id).where(Preview.login_id == login.id)
    slug = session.scalar(query)
    session.execute(delete(Preview).where(Preview.login_id == login.id))
    return slug


def _student(course_id: int, user_id: int) -> Select[User]:
    return (
        select(User)
        .join(Enrolment, Enrolment.user_id == User.id)
        .where(
            Enrolment.course_id == course_id,
            Enrolment.role == Role.student,
            Enrolment.dropped_at.is_(None),
            User.id == user_id,
        )
    )


def _is_staff(session: Session, course_id: int, user_id: int) -> bool:
    query = select(Enrolment.id).where(
        Enrolment.course_id == course_id,
        Enrolment.user_id == user_id,
        Enrolment.role.in_(_STAFF),
        Enrolment.dropped_at.is_(None),
    )
    return session.scalar(query) is not None
