"""The course that `make demo` shows: three students, a TA, an instructor, and every rung there is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from server.accounts import accounts
from server.config import Config
from server.courses import courses, sync
from server.models import Assignment, Course, Role, User

SLUG = "gpu-demo"
TITLE = "GPU kernel programming (demo)"
PEOPLE = (
    ("alice@example.org", "Alice Adams", Role.student),
    ("bob@example.org", "Bob Brown", Role.student),
    ("carol@example.org", "Carol Clark", Role.student),
    ("tom@example.org", "Tom Turner", Role.ta),
    ("ines@example.org", "Ines Iglesias", Role.instructor),
)
_DUE_EVERY = timedelta(days=7)
_LATE_FOR = timedelta(days=3)


@dataclass(frozen=True)
class Seeded:
    """What seeding did: new accounts, accounts that got the password anew, and new assignment versions."""

    created: tuple[str, ...]
    renewed: tuple[str, ...]
    changes: tuple[sync.Change, ...]


def seed(session: Session, config: Config, *, password: str, renew: bool) -> Seeded:
    """Make the demo course, or bring it up to date; dates that are set stay.

    Args:
        password: for new accounts.
        renew: give it to accounts that are there already, too.

    Raises:
        InvalidInputError: the password is too short, or an assignment's files are wrong.
    """
    course = session.scalar(select(Course).where(Course.slug == SLUG))
    course = course or _course(session)
    created, renewed = [], []
    for email, name, role in PEOPLE:
        user = session.scalar(select(User).where(User.email == email))
        if user is None:
            user = accounts.create_user(session, email=email, name=name, password=password)
            created.append(email)
        elif renew:
            accounts.set_password(session, user, password)
            renewed.append(email)
        if email in created:
            courses.enrol(session, course=course, user=user, role=role)
    changes = sync.sync_assignments(session, config, course)
    _set_due_dates(session, course)
    return Seeded(tuple(created), tuple(renewed), tuple(changes))


def _course(session: Session) -> Course:
    course = courses.create_course(session, slug=SLUG, title=TITLE)
    # Who tries it goes where they like.
    course.locks_rungs = False
    return course


def _set_due_dates(session: Session, course: Course) -> None:
    rows = session.scalars(select(Assignment).where(Assignment.course_id == course.id).order_by(Assignment.rung))
    due_at = datetime.now(UTC).replace(hour=22, minute=0, second=0, microsecond=0)
    for row in rows:
        due_at += _DUE_EVERY
        if row.due_at is None:
            courses.set_dates(session, row, open_at=None, due_at=due_at, late_until=due_at + _LATE_FOR)
