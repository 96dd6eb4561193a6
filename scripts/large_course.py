"""A course as large as they come, straight into the tables: people, rungs, and what was done beside kernels.

Everything follows from a seed and a date: the same two make the same rows. What was handed in is `large_grading`'s.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Table, func, insert, select
from sqlalchemy.orm import Session

from autograder.assignment import content_hash
from server.config import Config
from server.courses import courses, sync
from server.models import (
    Announcement,
    AnnouncementRead,
    Assignment,
    AssignmentVersion,
    AuditEntry,
    Base,
    Bundle,
    Course,
    Enrolment,
    Extension,
    LateDayGrant,
    Notification,
    NotificationKind,
    Quiz,
    QuizAnswer,
    Role,
    User,
)

SLUG = "large"
_CHUNK = 5_000
_TRIES = 2
"""Every question has as many at least."""
_FIRST = (
    "Ada", "Alan", "Barbara", "Claude", "Donald", "Edsger", "Frances", "Grace", "Hedy", "Ingrid", "John", "Katherine",
    "Leslie", "Margaret", "Niklaus", "Ole", "Peter", "Radia", "Sophie", "Tony", "Ursula", "Vint", "Wen", "Yukihiro",
)  # fmt: skip
_LAST = (
    "Allen", "Berners", "Chen", "Dahl", "Engelbart", "Floyd", "Garcia", "Hopper", "Ito", "Jones", "Kay", "Lamport",
    "Müller", "Naur", "Okafor", "Perlman", "Quist", "Ritchie", "Shannon", "Tanaka", "Ullman", "Varga", "Wirth", "Young",
)  # fmt: skip


@dataclass(frozen=True)
class Size:
    """How large it becomes."""

    students: int = 300
    rungs: int = 30
    submissions: int = 100_000


@dataclass(frozen=True)
class Rung:
    """One assignment of it with what its rows are made from."""

    row: Assignment
    version: AssignmentVersion
    questions: Sequence[dict[str, Any]]
    open_at: datetime
    due_at: datetime
    late_until: datetime


@dataclass
class Bulk:
    """Rows on their way into the tables, with ids that are known before they are there."""

    session: Session
    _ids: dict[Table, int] = field(default_factory=dict)
    _rows: dict[Table, list[dict[str, Any]]] = field(default_factory=dict)

    def add(self, model: type[Base], **values: Any) -> int:
        """Keep a row for later; its id."""
        table: Table = model.__table__  # type: ignore[assignment]
        if "id" in table.c:
            if table not in self._ids:
                self._ids[table] = self.session.scalar(select(func.max(table.c.id))) or 0
            self._ids[table] += 1
            values["id"] = self._ids[table]
        self._rows.setdefault(table, []).append(values)
        return int(values.get("id", 0))

    def last(self, model: type[Base]) -> dict[str, Any]:
        """The row that was added last, to be completed before it is written."""
        return self._rows[model.__table__][-1]  # type: ignore[index]

    def flush(self, *, all_of_it: bool = False) -> None:
        """Write what has gathered, parents first; tables with few rows wait unless it is the end."""
        if not all_of_it and max((len(rows) for rows in self._rows.values()), default=0) < _CHUNK:
            return
        for table in Base.metadata.sorted_tables:
            rows = self._rows.pop(table, [])
            for start in range(0, len(rows), _CHUNK):
                self.session.execute(insert(table), _alike(rows[start : start + _CHUNK]))

    def renumber(self) -> None:
        """Let PostgreSQL's own numbers go on after ours."""
        if self.session.get_bind().dialect.name == "postgresql":
            for table in self._ids:
                sequence = func.pg_get_serial_sequence(table.name, "id")
                self.session.execute(select(func.setval(sequence, self._ids[table])))


def _alike(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """All with the same keys: one statement is prepared for all of them."""
    keys = {key for row in rows for key in row}
    return [{key: row.get(key) for key in keys} for row in rows]


def make_course(session: Session, config: Config, size: Size, now: datetime) -> Course:
    """The course with its rungs; the real ones, as often as it takes."""
    course = courses.create_course(session, slug=SLUG, title="GPU kernels at scale", timezone="Europe/Berlin")
    course.created_at = now - timedelta(days=120)
    course.public_leaderboards = True
    course.late_days, course.late_penalty = 5, 0.2
    sync.sync_assignments(session, config, course)
    rows = list(session.scalars(select(Assignment).order_by(Assignment.rung, Assignment.slug)))
    templates = [row for row in rows if row.course_id == course.id]
    for number in range(len(templates), size.rungs):
        _copy(session, templates[number % len(templates)], number // len(templates) + 1)
    for row in templates[size.rungs :]:
        row.published = False
    session.flush()
    return course


def _copy(session: Session, like: Assignment, times: int) -> None:
    version = session.get_one(AssignmentVersion, like.version_id)
    bundle = session.get_one(Bundle, version.bundle_hash)
    # A tar may end in any number of empty blocks: other bytes, the same files.
    data = bundle.data + b"\0" * 512 * times
    slug, title = f"{like.slug}_{times}", f"{like.title}, part {times}"
    session.add(Bundle(hash=content_hash(data), data=data, size=len(data), created_at=like.created_at))
    row = Assignment(course_id=like.course_id, slug=slug, rung=like.rung, title=title, created_at=like.created_at)
    session.add(row)
    session.flush()
    made = AssignmentVersion(
        assignment_id=row.id, number=1, bundle_hash=content_hash(data), grading_hash=version.grading_hash,
        manifest={**version.manifest, "slug": slug, "title": title}, handout=version.handout,
        starters=version.starters, milestones=version.milestones, created_at=version.created_at,
    )  # fmt: skip
    session.add(made)
    session.flush()
    row.version_id = made.id
    if like.quiz_id is not None:
        row.quiz_id = _copy_quiz(session, session.get_one(Quiz, like.quiz_id), row.id)


def _copy_quiz(session: Session, like: Quiz, assignment_id: int) -> int:
    quiz = Quiz(
        assignment_id=assignment_id, number=1, digest=like.digest, questions=like.questions,
        keys=session.scalar(select(Quiz.keys).where(Quiz.id == like.id)), created_at=like.created_at,
    )  # fmt: skip
    session.add(quiz)
    session.flush()
    return quiz.id


def plan_rungs(session: Session, course: Course, size: Size, now: datetime) -> list[Rung]:
    """Their dates: one opens every three and a half days, the last three are due after `now`."""
    query = select(Assignment).where(Assignment.course_id == course.id, Assignment.published).order_by(Assignment.id)
    rows = list(session.scalars(query))[: size.rungs]
    rungs = []
    for place, row in enumerate(rows):
        begins = now - timedelta(days=3.5 * (len(rows) - 1 - place) + 4)
        row.rung, row.open_at, row.due_at = place + 1, begins, begins + timedelta(days=12)
        row.late_until = row.due_at + timedelta(days=4)
        if row.late_until < now - timedelta(days=3):
            row.grades_published_at = row.late_until + timedelta(days=2)
        version = session.get_one(AssignmentVersion, row.version_id)
        quiz = session.get_one(Quiz, row.quiz_id) if row.quiz_id else None
        rungs.append(Rung(row, version, quiz.questions if quiz else [], begins, row.due_at, row.late_until))
    session.flush()
    return rungs


@dataclass
class Cast:
    """Everybody and everything that the rows are made about; chance is the dice's alone."""

    bulk: Bulk
    course: Course
    dice: random.Random
    now: datetime
    rungs: Sequence[Rung] = ()
    students: Sequence[int] = ()
    staff: Sequence[int] = ()

    def happens(self, chance: float) -> bool:
        """Whether something of this probability does."""
        return self.dice.random() < chance

    def between(self, begin: datetime, end: datetime) -> datetime:
        """Some time."""
        return begin + (end - begin) * self.dice.random()

    def make_people(self, size: Size) -> None:
        """Students and staff; some who dropped the course are neither."""
        many = 2 + max(1, size.students // 50)
        roles = [Role.instructor, Role.instructor, *[Role.ta] * (many - 2)]
        self.staff = [self._person(number, role) for number, role in enumerate(roles)]
        self.students = [self._person(number, Role.student) for number in range(size.students)]
        for number in range(size.students, size.students + size.students // 33):
            self._person(number, Role.student, dropped_at=self.now - timedelta(days=98))
        self.bulk.flush(all_of_it=True)

    def _person(self, number: int, role: Role, **more: Any) -> int:
        word, begin = "s" if role is Role.student else "t", self.now - timedelta(days=118)
        user = self.bulk.add(
            User,
            email=f"{word}{number}@large.example",
            name=f"{self.dice.choice(_FIRST)} {self.dice.choice(_LAST)}",
            handle=f"{word}-{self.dice.randrange(10**8):08}-{number}",
            is_admin=False,
            created_at=begin,
        )
        self.bulk.add(
            Enrolment,
            course_id=self.course.id,
            user_id=user,
            role=role,
            section=f"Section {number % 6 + 1}" if role is Role.student else "",
            student_number=f"{7_000_000 + user}",
            show_name=self.happens(0.3),
            created_at=begin,
            **more,
        )
        return user

    def make_the_rest(self) -> None:
        """Answers, extensions, late days, announcements, notifications, and the audit log."""
        for rung in self.rungs:
            for user in self.students:
                if self.happens(0.85):
                    self._answer(rung, user)
                if self.happens(0.02):
                    self._extend(rung, user)
            self._announce(rung)
            self.bulk.flush()
        for user in self.students[::20]:
            self.bulk.add(
                LateDayGrant, course_id=self.course.id, user_id=user, days=2, reason="Moved house.",
                actor_id=self.staff[0], at=self.now - timedelta(days=60),
            )  # fmt: skip
        for number in range(len(self.rungs) * 60):
            self.bulk.add(
                AuditEntry, at=self.now - timedelta(hours=number), actor_id=self.dice.choice(self.staff),
                action="assignment.dates_set", subject=f"assignment:{self.dice.choice(self.rungs).row.id}", detail={},
                reason="Asked for in the lecture.",
            )  # fmt: skip
        self.bulk.flush(all_of_it=True)

    def _answer(self, rung: Rung, user: int) -> None:
        for question in rung.questions:
            right, number = False, 0
            while not right and number < _TRIES:
                number, right = number + 1, self.happens(0.65)
                self.bulk.add(
                    QuizAnswer, course_id=self.course.id, assignment_id=rung.row.id, quiz_id=rung.row.quiz_id,
                    user_id=user, question=question["name"], number=number, response=self._response(question),
                    right=right, trace=f"{self.dice.getrandbits(128):032x}",
                    uploaded_at=self.between(rung.open_at, min(rung.due_at, self.now)),
                )  # fmt: skip

    def _response(self, question: dict[str, Any]) -> dict[str, Any]:
        options = list(question.get("options") or {})
        if options:
            return {"value": None, "options": [self.dice.choice(options)]}
        return {"value": float(self.dice.randrange(1, 100)), "options": []}

    def _extend(self, rung: Rung, user: int) -> None:
        longer = timedelta(days=3)
        self.bulk.add(
            Extension, course_id=self.course.id, assignment_id=rung.row.id, user_id=user, due_at=rung.due_at + longer,
            late_until=rung.late_until + longer, reason="Ill.", actor_id=self.dice.choice(self.staff),
            at=rung.due_at - timedelta(days=1),
        )  # fmt: skip

    def _announce(self, rung: Rung) -> None:
        title = f"{rung.row.title} is open"
        number = self.bulk.add(
            Announcement, course_id=self.course.id, author_id=self.staff[0], title=title,
            text="Read the handout **first**.", pinned=False, tell=True, publish_at=rung.open_at,
            told_at=rung.open_at, revision=1, created_at=rung.open_at,
        )  # fmt: skip
        for user in self.students:
            read_at = rung.open_at + timedelta(days=1) if self.happens(0.7) else None
            if read_at is not None:
                self.bulk.add(AnnouncementRead, announcement_id=number, user_id=user, read_at=read_at)
            self.bulk.add(
                Notification, user_id=user, course_id=self.course.id, kind=NotificationKind.announcement, title=title,
                url=f"/courses/{self.course.slug}/announcements", key=f"announcement:{number}", shown=True,
                created_at=rung.open_at, read_at=read_at,
            )  # fmt: skip
