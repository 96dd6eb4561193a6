"""Submissions with points, and rungs to have them in, without any grading."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from server import dirty_grades, ids
from server.db import Database
from server.models import (
    Assignment,
    AssignmentVersion,
    Course,
    Grade,
    Lane,
    Language,
    Line,
    Mode,
    State,
    Submission,
    User,
    Verdict,
)

DUE = datetime(2026, 11, 21, 12, tzinfo=UTC)
CLOSES = DUE + timedelta(days=5)
_numbers = itertools.count(1)


def days(count: float) -> timedelta:
    return timedelta(days=count)


class Term:
    """A course in the middle of its term: rung by rung, due at `DUE`, closed five days later."""

    def __init__(self, database: Database, course: Course, slug: str = "add_one") -> None:
        self.database, self.course_id, self.first = database, course.id, slug

    def policy(self, late_days: int = 5, each: int | None = None, penalty: float = 0.2, slack_s: int = 0) -> None:
        """Set the course's late policy, and the first rung's dates."""
        with self.database.transaction() as session:
            course = session.get_one(Course, self.course_id)
            course.late_days, course.late_days_per_assignment = late_days, each
            course.late_penalty, course.slack_s = penalty, slack_s
            dirty_grades.grades(session, course.id)

    def dates(self, due_at: datetime | None = DUE, late_until: datetime | None = CLOSES, slug: str = "") -> None:
        """Set a rung's dates."""
        with self.database.transaction() as session:
            row = self.rung(session, slug)
            row.due_at, row.late_until = due_at, late_until
            dirty_grades.grades(session, self.course_id)

    def add_rung(self, slug: str, *, weight: float = 1.0, due_at: datetime | None = DUE) -> None:
        """Another rung with the first one's files."""
        with self.database.transaction() as session:
            first = self.rung(session)
            files = session.get_one(AssignmentVersion, first.version_id)
            row = Assignment(
                course_id=self.course_id, slug=slug, rung=first.rung + next(_numbers), title=slug.title(),
                due_at=due_at, late_until=CLOSES, created_at=DUE, weight=weight,
            )  # fmt: skip
            session.add(row)
            session.flush()
            version = AssignmentVersion(
                assignment_id=row.id, number=1, bundle_hash=files.bundle_hash, grading_hash=files.grading_hash,
                manifest=files.manifest, handout="", starters={}, milestones=[], created_at=DUE,
            )  # fmt: skip
            session.add(version)
            session.flush()
            row.version_id = version.id
            dirty_grades.grades(session, self.course_id)

    def rung(self, session: Session, slug: str = "") -> Assignment:
        query = select(Assignment).where(Assignment.course_id == self.course_id)
        return session.scalars(query.where(Assignment.slug == (slug or self.first))).one()

    def hand_in(
        self, user: User, points: float | None, *, late: float = -1, slug: str = "", mode: Mode = Mode.submission
    ) -> int:
        """A submission of these points, `late` days after `DUE`; its id."""
        with self.database.transaction() as session:
            row = self.rung(session, slug)
            made = Submission(
                public_id=ids.public_id(), number=next(_numbers), course_id=self.course_id, assignment_id=row.id,
                version_id=row.version_id, user_id=user.id, mode=mode, lane=Lane.cpu, language=Language("triton"),
                filename="kernel.py", source=b"", source_hash="x", trace="0" * 32, uploaded_at=DUE + days(late),
                state=State.queued if points is None else State.done, line=Line.submission, place_at=DUE,
                verdict=None if points is None else Verdict.passed, points=points,
            )  # fmt: skip
            session.add(made)
            session.flush()
            dirty_grades.grades(session, self.course_id, user.id)
            return made.id

    def grade(self, user: User, slug: str = "") -> Grade:
        with self.database.reading() as session:
            row = self.rung(session, slug)
            grade = session.scalars(select(Grade).where(Grade.user_id == user.id, Grade.assignment_id == row.id)).one()
            session.expunge(grade)
            return grade

    def total(self, user: User) -> float:
        with self.database.reading() as session:
            query = select(Grade.points * Assignment.weight).join(Assignment, Assignment.id == Grade.assignment_id)
            return sum(session.scalars(query.where(Grade.user_id == user.id, Grade.course_id == self.course_id)))
