"""What waits for a person: appeals, held results, findings; each the oldest first, because somebody waits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Select, func, select
from sqlalchemy.orm import Session, joinedload
from sqlalchemy.sql.base import ExecutableOption

from server.courses.courses import Membership
from server.models import Appeal, FindingLook, Mode, Result, Review, Submission

SHOWN = 100
"""Of each kind; the rest comes when these are done."""


@dataclass(frozen=True)
class Item:
    """A submission that somebody should look at.

    Attributes:
        since: since when it waits.
        kinds: of its findings, `FindingKind` values.
        why: what the judge says of a held result; `""` where its findings say it.
        appeal: what its student says.
    """

    submission: Submission
    since: datetime
    kinds: tuple[str, ...] = ()
    why: str = ""
    appeal: str = ""


@dataclass(frozen=True)
class Part:
    """One kind of what waits: the first of it, and how many there are."""

    items: tuple[Item, ...]
    count: int


@dataclass(frozen=True)
class Queue:
    """Everything that waits."""

    appeals: Part
    held: Part
    findings: Part

    @property
    def is_empty(self) -> bool:
        """Whether nobody waits."""
        return not (self.appeals.count or self.held.count or self.findings.count)


def waiting(session: Session, member: Membership) -> Queue:
    """What waits in a course.

    Raises:
        ForbiddenError: to a student.
    """
    member.require_staff()
    course_id = member.course.id
    return Queue(_appeals(session, course_id), _held(session, course_id), _findings(session, course_id))


def counts_of(course_id: int) -> tuple[Select[int], Select[int], Select[int]]:
    """Queries for how many appeals, held results and findings wait in a course, to be asked together with others."""
    return (
        select(func.count()).select_from(Appeal).where(*_is_appeal(course_id)),
        select(func.count()).select_from(Submission).where(*_is_held(course_id)),
        select(func.count())
        .select_from(Submission)
        .join(FindingLook, FindingLook.submission_id == Submission.id)
        .where(*_is_finding(course_id)),
    )


def _is_appeal(course_id: int) -> tuple[ColumnElement[bool], ...]:
    return Appeal.course_id == course_id, Appeal.decided_at.is_(None)


def _is_held(course_id: int) -> tuple[ColumnElement[bool], ...]:
    return (
        Submission.course_id == course_id,
        Submission.review == Review.held,
        Submission.mode == Mode.submission,
        Submission.id.not_in(select(Appeal.submission_id).where(Appeal.decided_at.is_(None))),
    )


def _is_finding(course_id: int) -> tuple[ColumnElement[bool], ...]:
    """Of results that count, in what is not held anyway."""
    return (
        FindingLook.course_id == course_id,
        FindingLook.looked_at.is_(None),
        FindingLook.result_id == Submission.result_id,
        Submission.review != Review.held,
    )


def _appeals(session: Session, course_id: int) -> Part:
    where = _is_appeal(course_id)
    rows = session.execute(
        select(Submission, Appeal)
        .join(Appeal, Appeal.submission_id == Submission.id)
        .where(*where)
        .options(*_people())
        .order_by(Appeal.id)
        .limit(SHOWN)
    ).all()
    items = tuple(Item(row, appeal.created_at, appeal=appeal.text) for row, appeal in rows)
    return Part(items, _count(session, counts_of(course_id)[0]))


def _held(session: Session, course_id: int) -> Part:
    where = _is_held(course_id)
    rows = session.scalars(
        select(Submission).where(*where).options(*_people()).order_by(Submission.id).limit(SHOWN)
    ).all()
    results = [row.result_id for row in rows if row.result_id is not None]
    kinds, reasons = _kinds(session, results), _reasons(session, results)
    items = tuple(
        Item(
            row,
            row.finished_at or row.uploaded_at,
            kinds.get(row.result_id or 0, ()),
            reasons.get(row.result_id or 0, ""),
        )
        for row in rows
    )
    return Part(items, _count(session, counts_of(course_id)[1]))


def _findings(session: Session, course_id: int) -> Part:
    where = _is_finding(course_id)
    base = select(Submission, FindingLook).join(FindingLook, FindingLook.submission_id == Submission.id).where(*where)
    rows = session.execute(base.options(*_people()).order_by(FindingLook.id).limit(SHOWN)).all()
    items = tuple(Item(row, look.created_at, tuple(look.kinds)) for row, look in rows)
    return Part(items, _count(session, counts_of(course_id)[2]))


def _kinds(session: Session, result_ids: Sequence[int]) -> dict[int, tuple[str, ...]]:
    query = select(FindingLook.result_id, FindingLook.kinds).where(FindingLook.result_id.in_(result_ids))
    return {result_id: tuple(kinds) for result_id, kinds in session.execute(query)}


def _reasons(session: Session, result_ids: Sequence[int]) -> dict[int, str]:
    said = [Result.payload[name].as_string() for name in ("held_reason", "remeasure")]
    query = select(Result.id, *said).where(Result.id.in_(result_ids))
    return {result_id: held or remeasure or "" for result_id, held, remeasure in session.execute(query)}


def _people() -> tuple[ExecutableOption, ...]:
    return (
        joinedload(Submission.user),
        joinedload(Submission.assignment),
        joinedload(Submission.result).load_only(Result.ratio, Result.ratio_low, Result.ratio_high, Result.time_us),
    )


def _count(session: Session, query: Select[int]) -> int:
    return session.scalar(query) or 0
