"""Write the trail and read it. Rows are only added."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session, aliased

from server.models import Assignment, AuditEntry, Course, Submission, User

PAGE = 100
_NAMES = ("course", "assignment", "submission", "user")
_LARGEST = 2**31


def record(
    session: Session,
    *,
    action: str,
    subject: str,
    actor: User | None = None,
    detail: Mapping[str, Any] | None = None,
    reason: str = "",
) -> AuditEntry:
    """Add an entry in the caller's transaction, so that a change and its trail stand or fall together.

    A course's log shows what belongs to the course: its subject, or `course`, `assignment`, `submission` or `user` in
    its detail, say what that is.

    Args:
        action: a noun and a verb, `user.created`.
        subject: what it was done to, `user:7`.
        actor: `None` for the system or a command on the server's own console.
        detail: plain JSON.
    """
    detail = dict(detail or {})
    where = _where(session, subject, detail)
    entry = AuditEntry(
        at=datetime.now(UTC),
        actor_id=actor.id if actor else None,
        action=action,
        subject=subject,
        course_id=where.course_id,
        assignment_id=where.assignment_id,
        about_id=where.user_id,
        detail=detail,
        reason=reason,
    )
    session.add(entry)
    return entry


def entries(session: Session, *, subject: str | None = None, limit: int = 50) -> list[AuditEntry]:
    """The newest entries first, of one subject where it is given."""
    query = select(AuditEntry).order_by(AuditEntry.id.desc()).limit(limit)
    if subject is not None:
        query = query.where(AuditEntry.subject == subject)
    return list(session.scalars(query))


@dataclass(frozen=True)
class Entry:
    """An entry of a course's log with the people and the assignment that it names, as they are now."""

    row: AuditEntry
    actor: User | None
    about: User | None
    assignment: Assignment | None


def log_of(
    session: Session,
    course_id: int,
    *,
    about_id: int | None = None,
    assignment_id: int | None = None,
    before: int | None = None,
    limit: int = PAGE,
) -> Sequence[Entry]:
    """What happened in a course, the newest first.

    Args:
        about_id: only what is about this person; `assignment_id`: about this assignment.
        before: older than the entry with this id.
    """
    actor, about = aliased(User), aliased(User)
    query = (
        select(AuditEntry, actor, about, Assignment)
        .outerjoin(actor, actor.id == AuditEntry.actor_id)
        .outerjoin(about, about.id == AuditEntry.about_id)
        .outerjoin(Assignment, Assignment.id == AuditEntry.assignment_id)
        .where(AuditEntry.course_id == course_id)
        .order_by(AuditEntry.id.desc())
        .limit(limit)
    )
    if about_id is not None:
        query = query.where(AuditEntry.about_id == about_id)
    if assignment_id is not None:
        query = query.where(AuditEntry.assignment_id == assignment_id)
    if before is not None:
        query = query.where(AuditEntry.id < before)
    return [Entry(*row) for row in session.execute(query)]


@dataclass(frozen=True)
class _Where:
    course_id: int | None = None
    assignment_id: int | None = None
    user_id: int | None = None


def _where(session: Session, subject: str, detail: Mapping[str, Any]) -> _Where:
    """What an entry belongs to, as far as its subject and its detail say it."""
    kind, _, name = subject.partition(":")
    named = {key: detail[key] for key in _NAMES if key in detail} | ({kind: name} if kind in _NAMES else {})
    course_id = _course_id(session, named.get("course"))
    user_id = _number(named.get("user"))
    submission = _submission(session, named.get("submission"))
    if submission is not None:
        return _Where(submission[0], submission[1], submission[2] if user_id is None else user_id)
    assignment = _assignment(session, named.get("assignment"), course_id)
    return _Where(*assignment, user_id) if assignment else _Where(course_id, None, user_id)


def _course_id(session: Session, name: object) -> int | None:
    if isinstance(name, int):
        return name
    return session.scalar(select(Course.id).where(Course.slug == name)) if isinstance(name, str) else None


def _assignment(session: Session, name: object, course_id: int | None) -> tuple[int, int] | None:
    number = _number(name)
    query = select(Assignment.course_id, Assignment.id)
    if number is not None:
        query = query.where(Assignment.id == number)
    elif isinstance(name, str) and course_id is not None:
        query = query.where(Assignment.course_id == course_id, Assignment.slug == name)
    else:
        return None
    found = session.execute(query).one_or_none()
    return (found[0], found[1]) if found else None


def _submission(session: Session, name: object) -> tuple[int, int, int] | None:
    if not isinstance(name, str):
        return None
    query = select(Submission.course_id, Submission.assignment_id, Submission.user_id)
    found = session.execute(query.where(Submission.public_id == name)).one_or_none()
    return (found[0], found[1], found[2]) if found else None


def _number(name: object) -> int | None:
    """An id, as a subject or a detail has it."""
    if isinstance(name, str) and name.isascii() and name.isdigit():
        name = int(name)
    return name if isinstance(name, int) and not isinstance(name, bool) and name < _LARGEST else None
