"""The submissions of a course, filtered, newest first, a page at a time: all of them for its staff, a student's own.

A page begins where the last one ended (`before`, `after`), so that the hundredth costs what the first does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import ColumnElement, Select, func, or_, select
from sqlalchemy.orm import Session, joinedload

from server.courses import courses
from server.courses.courses import Membership
from server.models import (
    Assignment,
    Enrolment,
    Lane,
    Language,
    Mode,
    Result,
    Review,
    State,
    Submission,
    User,
    Verdict,
)

PAGE = 100
MAX_STUDENT_CHARS = 120


@dataclass(frozen=True)
class Filter:
    """What to show; `None` and `""` leave a thing open.

    Attributes:
        assignment: its slug.
        student: a part of a name, an e-mail address or a handle; `#7` is the person with this id.
    """

    assignment: str = ""
    student: str = ""
    section: str | None = None
    verdict: Verdict | None = None
    state: State | None = None
    review: Review | None = None
    lane: Lane | None = None
    language: Language | None = None
    mode: Mode | None = None

    @property
    def is_empty(self) -> bool:
        """Whether everything is shown."""
        return self == Filter()


@dataclass(frozen=True)
class Page:
    """Some submissions, newest first, with `assignment`, `user` and the speed of `result` loaded.

    Attributes:
        sections: of those who handed them in, by their ids.
        older, newer: the public ids after and before which the neighbouring pages begin; `""` where there is none.
    """

    rows: tuple[Submission, ...]
    sections: dict[int, str] = field(default_factory=dict)
    older: str = ""
    newer: str = ""


@dataclass(frozen=True)
class Choices:
    """What the form offers: assignments as (slug, title) in their order, and sections."""

    assignments: tuple[tuple[str, str], ...]
    sections: tuple[str, ...]


def page(
    session: Session, member: Membership, wanted: Filter, *, before: str = "", after: str = "", limit: int = PAGE
) -> Page:
    """Older than `before`, or newer than `after`, or the newest.

    Raises:
        ForbiddenError: to a student.
    """
    member.require_staff()
    query = _filtered(member, wanted).limit(limit + 1)
    if after:
        query = query.where(Submission.id > _id_of(member, after)).order_by(Submission.id)
    else:
        query = query.order_by(Submission.id.desc())
        if before:
            query = query.where(Submission.id < _id_of(member, before))
    found = list(session.scalars(query))
    has_more, rows = len(found) > limit, found[:limit]
    if after:
        rows.reverse()
    if not rows:
        return Page(())
    return Page(
        tuple(rows),
        _sections(session, member, rows),
        older=rows[-1].public_id if has_more or after else "",
        newer=rows[0].public_id if (before or (after and has_more)) else "",
    )


def listed(
    session: Session, member: Membership, wanted: Filter, *, before: str = "", limit: int = PAGE
) -> Sequence[Submission]:
    """Older than `before`, or the newest, as `Page` has them: everybody's for staff, a student's own.

    Raises:
        ForbiddenError: a student asks for people.
    """
    if wanted.student or wanted.section is not None:
        member.require_staff()
    query = _filtered(member, wanted).order_by(Submission.id.desc()).limit(limit)
    return session.scalars(query.where(Submission.id < _id_of(member, before)) if before else query).all()


def choices(session: Session, member: Membership) -> Choices:
    """What there is to choose from."""
    rows = session.execute(
        select(Assignment.slug, Assignment.title)
        .where(Assignment.course_id == member.course.id)
        .order_by(Assignment.rung, Assignment.slug)
    )
    return Choices(tuple((slug, title) for slug, title in rows), sections_of(session, member.course.id))


def sections_of(session: Session, course_id: int) -> tuple[str, ...]:
    """The sections that a course has, in their order."""
    query = select(Enrolment.section).where(Enrolment.course_id == course_id, Enrolment.section != "").distinct()
    return tuple(sorted(session.scalars(query)))


def _filtered(member: Membership, wanted: Filter) -> Select[Submission]:
    query = select(Submission).where(*_shown(member), *_plain(wanted))
    if wanted.assignment:
        rung = courses.id_of_assignment(member.course.id, wanted.assignment)
        query = query.where(Submission.assignment_id == rung.scalar_subquery())
    if wanted.student:
        query = query.where(Submission.user_id.in_(_people(wanted.student)))
    if wanted.section is not None:
        of_section = select(Enrolment.user_id).where(
            Enrolment.course_id == member.course.id, Enrolment.section == wanted.section
        )
        query = query.where(Submission.user_id.in_(of_section))
    return query.options(
        joinedload(Submission.assignment),
        joinedload(Submission.user),
        joinedload(Submission.result).load_only(Result.ratio, Result.ratio_low, Result.ratio_high),
    )


def _shown(member: Membership) -> list[ColumnElement[bool]]:
    """What of the course they see here."""
    own = [] if member.is_staff else [Submission.user_id == member.user.id]
    return [Submission.course_id == member.course.id, *own]


def _plain(wanted: Filter) -> list[ColumnElement[bool]]:
    columns: dict[str, Any] = {
        "verdict": Submission.verdict,
        "state": Submission.state,
        "review": Submission.review,
        "lane": Submission.lane,
        "language": Submission.language,
        "mode": Submission.mode,
    }
    given = {name: getattr(wanted, name) for name in columns}
    return [columns[name] == value for name, value in given.items() if value is not None]


def _people(text: str) -> Select[int]:
    """Who is meant: their ids."""
    text = text[:MAX_STUDENT_CHARS].replace("\0", "").strip()
    if text.startswith("#") and text[1:].isascii() and text[1:].isdigit() and len(text) <= 10:  # noqa: PLR2004  # 32 bits
        return select(User.id).where(User.id == int(text[1:]))
    like = [
        func.lower(column).contains(text.lower(), autoescape=True) for column in (User.name, User.email, User.handle)
    ]
    return select(User.id).where(or_(*like))


def _id_of(member: Membership, public_id: str) -> Any:
    """Its place; one that they do not see here has none, and nothing comes after it."""
    return select(Submission.id).where(Submission.public_id == public_id[:26], *_shown(member)).scalar_subquery()


def _sections(session: Session, member: Membership, rows: Sequence[Submission]) -> dict[int, str]:
    people = {row.user_id for row in rows}
    query = select(Enrolment.user_id, Enrolment.section).where(
        Enrolment.course_id == member.course.id, Enrolment.user_id.in_(people)
    )
    return {user_id: section for user_id, section in session.execute(query) if section}
