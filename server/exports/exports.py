"""A copy of everything that the courses have of one person, for that person.

It is read in many short looks and made while it is sent: nobody's connection to the database waits for a slow network,
and no machine holds more than a few submissions of it at a time. One is made at a time for a person.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, undefer

from autograder.receipts import Receipt
from server import db
from server.accounts import accounts
from server.csv_io import write
from server.errors import ConflictError, LadderError
from server.exports import tables
from server.gradebook import queries as gradebook
from server.grading.receipts import receipt_of
from server.models import Assignment, Course, DataExport, Draft, Enrolment, Submission, User, WriteUp
from server.submissions import submissions

Look = Callable[[], AbstractContextManager[Session]]
"""Begins a short look at the database."""
Sign = Callable[[Receipt], Mapping[str, Any]]
"""Makes a student's copy of a receipt the signed document that it leaves as."""
GIVEN_UP = timedelta(minutes=15)
"""After so long one that never ended counts as given up: its reader went away."""
AT_ONCE = 20

_READ_ME = """A copy of the data that Kernel Ladder has about you.

account.json             your account, where you are logged in, your tokens' names (never a token)
courses.json             the courses that you are or were in
grades.json              your grades as you may read them
comments.json            what staff wrote on your work, as far as you may read it
requests.json            your appeals and regrade requests, and the answers
*.csv                    every table that has a row about you, one file each
submissions/             your submissions: the source, the result as you see it, the signed receipt of its grade
drafts/                  drafts that you did not submit
writeups/                your write-ups, every version
"""


@dataclass(frozen=True)
class File:
    """One file of the copy."""

    name: str
    content: bytes


def begin(session: Session, user: User, now: datetime) -> None:
    """Note that a copy is being made.

    Raises:
        ConflictError: one is being made already.
    """
    accounts.lock_user(session, user)
    row = session.get(DataExport, user.id, populate_existing=True)
    if row is not None and row.ended_at is None and now - row.started_at < GIVEN_UP:
        raise ConflictError("A copy of your data is being made already. Wait until it is done, or try again later.")
    if row is None:
        row = DataExport(user_id=user.id, started_at=now)
        session.add(row)
    row.started_at, row.ended_at = now, None
    try:
        session.flush()
    except IntegrityError:  # pragma: no cover  # their row is held
        raise ConflictError("A copy of your data is being made already.") from None


def end(session: Session, user_id: int, now: datetime) -> None:
    """Note that it is made."""
    row = session.get(DataExport, user_id)
    if row is not None:
        row.ended_at = now


def files(look: Look, user_id: int, sign: Sign) -> Iterator[File]:
    """Everything, file by file. Who reads slowly, or stops, holds no transaction meanwhile."""
    yield File("README.txt", _READ_ME.encode())
    with look() as session:
        user = session.get_one(User, user_id)
        made = {
            "account": tables.account(session, user),
            "courses": tables.enrolments(session, user),
            "grades": _grades(session, user),
            "comments": tables.comments(session, user),
            "requests": tables.requests(session, user),
        }
    yield from (File(f"{name}.json", _json(value)) for name, value in made.items())
    for table in tables.ABOUT_PEOPLE:
        with look() as session:
            rows = tables.lines(session, table, user_id)
        if rows:
            yield File(f"{table.name}.csv", _csv(rows))
    yield from _drafts(look, user_id)
    yield from _submissions(look, user_id, sign)
    yield from _write_ups(look, user_id)


def _grades(session: Session, user: User) -> list[dict[str, Any]]:
    """As they read them in each course: what staff set only once it is published."""
    query = select(Course).join(Enrolment, Enrolment.course_id == Course.id).where(Enrolment.user_id == user.id)
    return [
        {
            "course": course.slug,
            "assignment": line.detail.slug,
            "submission": line.submission.public_id if line.submission else None,
            "due_at": line.dates.due_at,
            "final": line.is_final,
            **_plain(line.outcome),
        }
        for course in session.scalars(query.order_by(Course.id))
        for line in gradebook.standing(session, course, user.id).lines
    ]


def _drafts(look: Look, user_id: int) -> Iterator[File]:
    with look() as session:
        ids = session.scalars(select(Draft.id).where(Draft.user_id == user_id).order_by(Draft.id)).all()
    for draft_id in ids:
        with look() as session:
            file = _draft(session, draft_id)
        if file is not None:
            yield file


def _draft(session: Session, draft_id: int) -> File | None:
    query = (
        select(Course.slug, Assignment.slug, Draft.language, Draft.text)
        .select_from(Draft)
        .join(Assignment, Assignment.id == Draft.assignment_id)
        .join(Course, Course.id == Assignment.course_id)
        .where(Draft.id == draft_id)
    )
    row = session.execute(query).one_or_none()
    if row is None:
        return None
    course, assignment, language, text = row
    return File(f"drafts/{course}/{assignment}.{language}.txt", text.encode("utf-8", "replace"))


def _submissions(look: Look, user_id: int, sign: Sign) -> Iterator[File]:
    after = 0
    while True:
        with look() as session:
            found = _some(session, user_id, after)
            made = [file for row, place in found for file in _of_submission(session, row, place, sign)]
            after = found[-1][0].id if found else after
        yield from made
        if len(found) < AT_ONCE:
            return


def _some(session: Session, user_id: int, after: int) -> list[tuple[Submission, str]]:
    query = (
        select(Submission, Course.slug, Assignment.slug)
        .join(Course, Course.id == Submission.course_id)
        .join(Assignment, Assignment.id == Submission.assignment_id)
        .where(Submission.user_id == user_id, Submission.id > after)
        .options(undefer(Submission.source))
        .order_by(Submission.id)
        .limit(AT_ONCE)
    )
    return [
        (row, f"submissions/{course}/{assignment}/{row.mode}-{row.number}")
        for row, course, assignment in session.execute(query)
    ]


def _of_submission(session: Session, row: Submission, place: str, sign: Sign) -> Iterator[File]:
    yield File(f"{place}/source/{row.filename}", row.source)
    yield File(f"{place}/result.json", _json(_plain(submissions.view(session, row, staff=False))))
    try:
        receipt = receipt_of(session, row, now=db.now(session))
    except LadderError:
        return  # It has no grade yet, or never gets one.
    yield File(f"{place}/receipt.json", _json(sign(receipt.for_student())))


def _write_ups(look: Look, user_id: int) -> Iterator[File]:
    with look() as session:
        ids = session.scalars(select(WriteUp.id).where(WriteUp.user_id == user_id).order_by(WriteUp.id)).all()
    for write_up_id in ids:
        with look() as session:
            query = (
                select(WriteUp, Course.slug, Assignment.slug)
                .join(Course, Course.id == WriteUp.course_id)
                .join(Assignment, Assignment.id == WriteUp.assignment_id)
                .where(WriteUp.id == write_up_id)
                .options(undefer(WriteUp.data))
            )
            row, course, assignment = session.execute(query).one()
            file = File(f"writeups/{course}/{assignment}/{row.number}-{row.filename}", row.data)
        yield file


def _plain(value: Any) -> Any:
    """Dataclasses and enums as JSON has them."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(_plain(key)): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    return value.value if isinstance(value, Enum) else value


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=False, default=_text) + "\n").encode("utf-8", "replace")


def _text(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _csv(rows: list[dict[str, Any]]) -> bytes:
    names = list(rows[0])
    return write(names, ([_flat(row[name]) for name in names] for row in rows)).encode("utf-8", "replace")


def _flat(value: Any) -> Any:
    """What is a structure stands as JSON."""
    return _json(value).decode().strip() if isinstance(value, (dict, list)) else value
