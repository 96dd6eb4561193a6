"""Two courses in the run's database: assignments, students with their tokens, and nodes."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from server.accounts import accounts
from server.config import Config
from server.courses import courses, sync
from server.models import Assignment, Role, User
from tests.chaos.plan import APART, COURSES, DOUBLE_LANES, DUE, OPEN, REAL, courses_of
from tests.chaos.supervisor import REPOSITORY

FIXTURES = REPOSITORY / "tests" / "fixtures"
_LANE = "[lane.{}]\nspeed_points = true\nr_full = 1.05\nr_zero = 3.0\napart = {}\n"


def write_assignments(config: Config) -> None:
    """Copy the double's assignment under two names, and the real one, to where this run's server reads them."""
    lanes = "".join(_LANE.format(lane, "true" if lane is APART else "false") for lane in DOUBLE_LANES)
    for slug in (OPEN, DUE):
        public = config.assignments / slug
        shutil.copytree(FIXTURES / "assignments" / "double", public)
        shutil.copytree(FIXTURES / "reference" / "double", config.reference / slug)
        manifest = public / "assignment.toml"
        text = manifest.read_text(encoding="utf-8").replace('slug = "double"', f'slug = "{slug}"')
        manifest.write_text(text.replace("[lane.cpu]", f"{lanes}[lane.cpu]"), encoding="utf-8")
        (public / "README.md").write_text(f"# {slug}\n", encoding="utf-8")
    for kind in ("assignments", "reference"):
        shutil.copytree(REPOSITORY / kind / REAL, getattr(config, kind) / REAL)


def make_courses(session: Session, config: Config) -> None:
    """Both courses, with every assignment."""
    for slug in COURSES:
        course = courses.create_course(session, slug=slug, title=slug, timezone="UTC")
        sync.sync_assignments(session, config, course)
    session.flush()


def enrol(session: Session, number: int) -> str:
    """Make a student; their token."""
    # Without a password: a hash of one takes longer than a submission.
    handle, now = f"s{number}", datetime.now(UTC)
    user = User(email=f"{handle}@example.org", name=f"Student {number}", handle=handle, created_at=now)
    session.add(user)
    session.flush()
    for slug in courses_of(number):
        courses.enrol(session, course=courses.course_by_slug(session, slug), user=user, role=Role.student)
    return accounts.create_token(session, user, name="chaos")[1]


def set_due(session: Session, due_at: datetime) -> None:
    """Make `DUE` due; what comes later is late and taken all the same."""
    for row in session.scalars(select(Assignment).where(Assignment.slug == DUE)):
        courses.set_dates(session, row, open_at=None, due_at=due_at, late_until=None)
