"""The accounts of submissions: what was received, what is final, what is in flight, and whether it adds up.

The dispatcher examines every course once a minute and keeps what it found, one row per course: a page that many read
at a deadline shows that row and counts nothing.
"""

from __future__ import annotations

import dataclasses
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import case, func, select
from sqlalchemy.orm import Session

from autograder.assignment import content_hash
from server import alerts
from server.db import Database, now
from server.grading.states import FINAL, LIVE
from server.models import AlertKind, Attempt, Course, Node, Phase, ReconciliationRun, State, Submission
from server.reconciliation.checks import EXAMPLES, Courses, Problem, broken_rules

CHECK_EVERY = timedelta(minutes=1)
STALE_AFTER = timedelta(minutes=5)
"""A check that is older says nothing about now: no dispatcher makes new ones."""
LEASES_SHOWN = 200

Checks = Sequence[tuple[Course, ReconciliationRun | None]]
"""Courses, each with its newest check, `None` where there was none yet."""
_CHUNK = 500


@dataclass(frozen=True)
class Standing:
    """How many submissions stand at one place, and since when the one that was uploaded first waits there.

    Attributes:
        oldest, oldest_at: its receipt number and upload; nothing is said of those that are over.
    """

    state: State
    phase: Phase | None
    count: int
    oldest: str = ""
    oldest_at: datetime | None = None


@dataclass(frozen=True)
class Lease:
    """A live attempt."""

    submission: str
    attempt: str
    fence: int
    node: str
    dispatched_at: datetime
    expires_at: datetime
    state: str


@dataclass(frozen=True)
class Accounts:
    """What was found in some courses.

    Attributes:
        received: how many receipts were given: the sum of each student's highest numbers.
        final, in_flight: how many rows there are.
    """

    at: datetime
    received: int
    final: int
    in_flight: int
    problems: tuple[Problem, ...]
    took_s: float

    @property
    def balanced(self) -> bool:
        """Everything received is there, and nothing about it is wrong."""
        return self.received == self.final + self.in_flight and not self.problems


def examine(session: Session, courses: Courses = None, *, deep: bool = False) -> Accounts:
    """Count and check; `deep` also reads every source and compares it with its hash."""
    began, at = time.monotonic(), now(session)
    received, final, in_flight = _totals(session, courses)
    problems = broken_rules(session, courses)
    if deep and (changed := _changed_sources(session, courses)) is not None:
        problems.append(changed)
    return Accounts(at, received, final, in_flight, tuple(problems), time.monotonic() - began)


def standings(session: Session, courses: Courses = None) -> list[Standing]:
    """Where submissions stand, the longest wait first; final ones last."""
    where = () if courses is None else (Submission.course_id.in_(courses),)
    waits = select(Submission.state, Submission.phase, Submission.uploaded_at, Submission.public_id)
    waits = waits.where(Submission.state.in_([state for state in State if state not in FINAL]), *where)
    places: dict[tuple[State, Phase | None], list[tuple[datetime, str]]] = defaultdict(list)
    for state, phase, uploaded_at, public_id in session.execute(waits):
        places[state, phase].append((uploaded_at, public_id))
    oldest = sorted((min(rows), place) for place, rows in places.items())
    found = [Standing(*place, len(places[place]), public_id, at) for (at, public_id), place in oldest]
    over = select(Submission.state, func.count()).where(Submission.state.in_(FINAL), *where)
    final = session.execute(over.group_by(Submission.state).order_by(Submission.state))
    return [*found, *(Standing(state, None, count) for state, count in final)]


def live_leases(session: Session, courses: Courses = None) -> list[Lease]:
    """The attempts that nodes work on, the first to expire first; at most `LEASES_SHOWN`."""
    query = (
        select(
            Submission.public_id, Attempt.public_id, Attempt.fence, Node.name, Attempt.dispatched_at,
            Attempt.lease_expires_at, Attempt.state,
        )
        .join(Submission, Submission.id == Attempt.submission_id)
        .join(Node, Node.id == Attempt.node_id)
        .where(Attempt.state.in_(LIVE))
        .order_by(Attempt.lease_expires_at)
        .limit(LEASES_SHOWN)
    )  # fmt: skip
    if courses is not None:
        query = query.where(Submission.course_id.in_(courses))
    return [Lease(*row) for row in session.execute(query)]


def check_due(database: Database) -> int:
    """Examine every course whose last check is a minute old, keep what was found, raise or end its alert; how many.

    Reading and writing are two transactions: on SQLite everybody else writes meanwhile.
    """
    with database.reading() as session:
        found = [(course, examine(session, [course.id])) for course in _due_courses(session)]
        session.expunge_all()
    for course, accounts in found:
        with database.transaction() as session:
            keep(session, course, accounts)
    return len(found)


def keep(session: Session, course: Course, accounts: Accounts) -> None:
    """Keep what was found in one course, and tell staff if it does not add up."""
    # Dispatchers that looked at once keep their first one after the other.
    session.execute(select(Course.id).where(Course.id == course.id).with_for_update(key_share=True))
    row = session.get(ReconciliationRun, course.id) or ReconciliationRun(course_id=course.id)
    row.checked_at, row.took_s = accounts.at, accounts.took_s
    row.received, row.final, row.in_flight = accounts.received, accounts.final, accounts.in_flight
    row.problems = [dataclasses.asdict(problem) for problem in accounts.problems]
    session.add(row)
    subject = f"course:{course.slug}"
    if accounts.balanced:
        alerts.resolve(session, AlertKind.reconciliation_failed, subject, accounts.at)
    else:
        alerts.raise_alert(session, AlertKind.reconciliation_failed, subject, summary(accounts), accounts.at)


def summary(accounts: Accounts) -> str:
    """What is wrong, in sentences."""
    parts = []
    if accounts.received != accounts.final + accounts.in_flight:
        parts.append(f"{accounts.received} received, {accounts.final} final and {accounts.in_flight} in flight.")
    parts.extend(
        f"Violated {problem.count} times: {problem.message} For example {', '.join(problem.examples)}."
        for problem in accounts.problems
    )
    return " ".join(parts)


def last_checks(session: Session, courses: Courses = None) -> Checks:
    """The newest check of each course, by name."""
    query = select(Course, ReconciliationRun).outerjoin(ReconciliationRun, ReconciliationRun.course_id == Course.id)
    if courses is not None:
        query = query.where(Course.id.in_(courses))
    return [(course, check) for course, check in session.execute(query.order_by(Course.title, Course.id))]


def last_check(session: Session, course_id: int) -> ReconciliationRun | None:
    """The newest check of one course."""
    return session.get(ReconciliationRun, course_id)


def is_balanced(check: ReconciliationRun) -> bool:
    """Whether a check found nothing wrong."""
    return check.received == check.final + check.in_flight and not check.problems


def is_stale(check: ReconciliationRun, at: datetime) -> bool:
    """Whether a check is too old to say anything about now."""
    return abs(at - check.checked_at) > STALE_AFTER


def _totals(session: Session, courses: Courses) -> tuple[int, int, int]:
    """Receipts given, final rows and others, of one snapshot."""
    final = func.sum(case((Submission.state.in_(FINAL), 1), else_=0))
    by_student = select(
        func.max(Submission.number).label("given"), func.count().label("rows"), final.label("final")
    ).group_by(Submission.assignment_id, Submission.user_id, Submission.mode)
    if courses is not None:
        by_student = by_student.where(Submission.course_id.in_(courses))
    groups = by_student.subquery()
    sums = (func.coalesce(func.sum(column), 0) for column in (groups.c.given, groups.c.rows, groups.c.final))
    given, rows, ended = (int(value) for value in session.execute(select(*sums)).one())
    return given, ended, rows - ended


def _due_courses(session: Session) -> list[Course]:
    before = now(session) - CHECK_EVERY
    return [course for course, check in last_checks(session) if check is None or check.checked_at <= before]


def _changed_sources(session: Session, courses: Courses) -> Problem | None:
    changed = [receipt for receipt, stored, real in source_hashes(session, courses) if stored != real]
    if not changed:
        return None
    says = "Every source matches its hash."
    return Problem("source_unchanged", says, len(changed), tuple(changed[:EXAMPLES]))


def source_hashes(session: Session, courses: Courses = None) -> Iterator[tuple[str, str, str]]:
    """Receipt number, stored hash and the hash of the stored bytes, of every submission; reads some at a time."""
    last = 0
    while True:
        query = select(Submission.id, Submission.public_id, Submission.source_hash, Submission.source)
        if courses is not None:
            query = query.where(Submission.course_id.in_(courses))
        rows = session.execute(query.where(Submission.id > last).order_by(Submission.id).limit(_CHUNK)).all()
        if not rows:
            return
        last = rows[-1].id
        yield from ((row.public_id, row.source_hash, content_hash(row.source)) for row in rows)
