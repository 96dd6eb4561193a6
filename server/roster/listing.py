"""Who is in a course, looked up: a page of the roster, its sections, its students."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Select, func, or_, select
from sqlalchemy.orm import Session, contains_eager

from server.accounts import names
from server.courses.courses import Membership, staff_names
from server.models import Course, Enrolment, Role, User

PAGE_ROWS = 100


@dataclass(frozen=True)
class Filter:
    """Which part of the roster is looked at; `None` and `""` are all of it."""

    search: str = ""
    section: str | None = None
    role: Role | None = None
    dropped: bool = False
    page: int = 1


@dataclass(frozen=True)
class Roster:
    """One page of it, by name.

    Attributes:
        found: how many there are on all pages.
        sections: of the whole course, with how many people are in each.
    """

    rows: tuple[Enrolment, ...]
    found: int
    pages: int
    sections: tuple[tuple[str, int], ...]
    counts: dict[Role, int]
    dropped: int
    alike: dict[int, str]
    """Students by their account, who could be taken for this one of the staff."""


def roster(session: Session, member: Membership, which: Filter) -> Roster:
    """A page of the roster, with `user` loaded.

    Raises:
        ForbiddenError: the member is no staff.
    """
    member.require_staff()
    query = _matching(member.course.id, which)
    found = session.scalars(select(func.count()).select_from(query.subquery())).one()
    pages = max(1, -(-found // PAGE_ROWS))
    page = min(max(1, which.page), pages)
    rows = session.scalars(
        query.options(contains_eager(Enrolment.user))
        .order_by(func.lower(User.name), User.id)
        .offset((page - 1) * PAGE_ROWS)
        .limit(PAGE_ROWS)
    )
    people, (counts, dropped) = tuple(rows), _counts(session, member.course.id)
    return Roster(
        rows=people,
        found=found,
        pages=pages,
        sections=tuple(sections(session, member.course.id)),
        counts=counts,
        dropped=dropped,
        alike=_alike(session, member.course, people),
    )


def _alike(session: Session, course: Course, rows: Sequence[Enrolment]) -> dict[int, str]:
    staff = staff_names(session, course)
    students = [row for row in rows if row.role is Role.student]
    found = {row.user_id: names.alike(row.user.name, staff) for row in students}
    return {user_id: name for user_id, name in found.items() if name}


def sections(session: Session, course_id: int) -> Sequence[tuple[str, int]]:
    """The sections of a course and how many people are in each; `""` for those in none."""
    query = (
        select(Enrolment.section, func.count())
        .where(Enrolment.course_id == course_id, Enrolment.dropped_at.is_(None))
        .group_by(Enrolment.section)
        .order_by(Enrolment.section)
    )
    return [(name, count) for name, count in session.execute(query)]


def students(session: Session, course_id: int, *, even_dropped: bool = False) -> Sequence[Enrolment]:
    """The students of a course, by name, with `user` loaded; those who dropped it only if they are asked for."""
    query = (
        select(Enrolment)
        .join(Enrolment.user)
        .where(Enrolment.course_id == course_id, Enrolment.role == Role.student)
        .options(contains_eager(Enrolment.user))
        .order_by(func.lower(User.name), User.id)
    )
    return list(session.scalars(query if even_dropped else query.where(Enrolment.dropped_at.is_(None))))


def everybody(session: Session, member: Membership) -> Sequence[Enrolment]:
    """All who are in the course, by name, with `user` loaded.

    Raises:
        ForbiddenError: the member is no staff.
    """
    member.require_staff()
    query = _matching(member.course.id, Filter()).options(contains_eager(Enrolment.user))
    return list(session.scalars(query.order_by(func.lower(User.name), User.id)))


def _matching(course_id: int, which: Filter) -> Select[Enrolment]:
    dropped = Enrolment.dropped_at.is_not(None) if which.dropped else Enrolment.dropped_at.is_(None)
    query = select(Enrolment).join(Enrolment.user).where(Enrolment.course_id == course_id, dropped)
    if which.role is not None:
        query = query.where(Enrolment.role == which.role)
    if which.section is not None:
        query = query.where(Enrolment.section == which.section)
    for word in which.search.lower().split()[:8]:
        like = f"%{word.replace('|', '||').replace('%', '|%').replace('_', '|_')}%"
        matched = (func.lower(User.name).like(like, escape="|"), User.email.like(like, escape="|"))
        query = query.where(or_(*matched, func.lower(Enrolment.student_number).like(like, escape="|")))
    return query


def _counts(session: Session, course_id: int) -> tuple[dict[Role, int], int]:
    query = (
        select(Enrolment.role, Enrolment.dropped_at.is_(None), func.count())
        .where(Enrolment.course_id == course_id)
        .group_by(Enrolment.role, Enrolment.dropped_at.is_(None))
    )
    counts, dropped = dict.fromkeys(Role, 0), 0
    for role, is_here, count in session.execute(query):
        if is_here:
            counts[role] = count
        else:
            dropped += count
    return counts, dropped
