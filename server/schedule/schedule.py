"""Read the schedule of a course and change it: any number of rungs at once, all or none of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session, joinedload

from autograder.contract import Lane
from server import audit, dirty_grades
from server.courses import clock
from server.courses.courses import Membership, spec_of
from server.errors import InvalidInputError, NotFoundError
from server.models import Assignment
from server.schedule import typed
from server.schedule.typed import Decided

MAX_REASON = 500
MOST_DAYS = 366
"""By so many days all dates move at once."""


@dataclass(frozen=True)
class Row:
    """One rung as the schedule shows it.

    Attributes:
        lanes: those that its files have.
        texts: its fields as the form holds them; what was typed, where it was refused.
        seen: the digest of the fields as they stand.
        problems: field → why it was refused; `""` is about the whole row.
    """

    row: Assignment
    lanes: tuple[Lane, ...]
    texts: Mapping[str, str]
    seen: str
    problems: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True)
class Moved:
    """All rungs with their dates moved; nothing is changed until the edits are sent.

    Attributes:
        other_hours: which dates have another hour than before, as the clocks skip theirs on the new day.
    """

    rows: list[Row]
    edits: list[Edit]
    other_hours: list[str]

    @property
    def touched(self) -> int:
        """How many rungs have a date that moved."""
        return sum(edit.is_touched for edit in self.edits)


@dataclass(frozen=True)
class Edit:
    """One rung as a form sent it: what the form had held before, and what it holds now."""

    slug: str
    revision: int
    seen: str
    texts: Mapping[str, str]

    @property
    def is_touched(self) -> bool:
        """Whether somebody changed a field of it."""
        return typed.digest(self.texts) != self.seen


class ScheduleRefusedError(InvalidInputError):
    """Nothing was changed; `problems` says for each rung which field cannot be taken, and why."""

    def __init__(self, problems: Mapping[str, Mapping[str, str]]) -> None:
        super().__init__("Nothing was saved: see the marked fields.", field="schedule")
        self.problems = problems


def rows(session: Session, member: Membership) -> list[Row]:
    """Every rung of the course, in order.

    Raises:
        ForbiddenError: the member is no staff.
    """
    member.require_staff()
    query = select(Assignment).where(Assignment.course_id == member.course.id).options(joinedload(Assignment.version))
    return [
        _row(row, member.course.timezone) for row in session.scalars(query.order_by(Assignment.rung, Assignment.id))
    ]


def shown_again(found: Sequence[Row], edits: Sequence[Edit], problems: Mapping[str, Mapping[str, str]]) -> list[Row]:
    """The rows with what was typed in them and why it was refused."""
    by_slug = {edit.slug: edit for edit in edits}
    return [
        dataclasses.replace(one, texts=by_slug[slug].texts, problems=problems.get(slug, {}))
        if (slug := one.row.slug) in by_slug and by_slug[slug].is_touched
        else one
        for one in found
    ]


def moved(session: Session, member: Membership, *, days: int, now: datetime, only_ahead: bool) -> Moved:
    """The edits that would move the dates of all rungs by so many days.

    Each date keeps its hour on the course's clock, to the second, unless the clock skips it on that day.

    Args:
        only_ahead: dates that have passed stay.

    Raises:
        ForbiddenError: the member is no staff.
        InvalidInputError: it is 0, or too many.
    """
    if not 0 < abs(days) <= MOST_DAYS:
        raise InvalidInputError(
            f"Type a whole number of days from 1 to {MOST_DAYS}, or below 0 to move dates back.", field="days"
        )
    zone = member.course.timezone
    found = rows(session, member)
    edits, other_hours = [], []
    for one in found:
        dates = {name: getattr(one.row, name) for name in typed.TIMES}
        going = {name: at for name, at in dates.items() if at is not None and (at > now or not only_ahead)}
        later = {name: clock.typed_exactly(clock.days_later(at, zone, days), zone) for name, at in going.items()}
        edits.append(Edit(one.row.slug, one.row.revision, one.seen, {**one.texts, **later}))
        other_hours += [
            f"{one.row.title}, {typed.TIMES[name]}: {later[name].replace('T', ' ')} instead of {before}"
            for name, at in going.items()
            if not later[name].endswith(before := clock.typed_exactly(at, zone).partition("T")[2])
        ]
    return Moved(found, edits, other_hours)


def change(session: Session, member: Membership, edits: Sequence[Edit], *, reason: str = "") -> list[Assignment]:
    """Do what a form says about the rungs that were touched, and nothing to the others.

    Returns:
        The rungs that are other than before.

    Raises:
        ForbiddenError: the member is no staff.
        ScheduleRefusedError: a field cannot be taken, or somebody else changed the rung meanwhile; nothing changes.
        NotFoundError: a rung is not of this course.
    """
    member.require_staff()
    touched = {edit.slug: edit for edit in edits if edit.is_touched}
    if not touched:
        return []
    found = _locked(session, member.course.id, touched)
    problems: dict[str, dict[str, str]] = {}
    wanted: dict[str, Decided] = {}
    for slug, edit in touched.items():
        row = found[slug]
        decided, wrong = typed.read(edit.texts, row, member.course.timezone, _lanes(row))
        if row.revision != edit.revision:
            wrong = {"": "Somebody else changed this assignment meanwhile. Reload the page to see its dates."}
        if decided is None or wrong:
            problems[slug] = wrong
        else:
            wanted[slug] = decided
    if problems:
        raise ScheduleRefusedError(problems)
    changed = [found[slug] for slug, decided in wanted.items() if _apply(session, member, found[slug], decided, reason)]
    if changed:
        dirty_grades.grades(session, member.course.id)
    return changed


def _apply(session: Session, member: Membership, row: Assignment, decided: Decided, reason: str) -> bool:
    before = Decided.of(row)
    if decided == before:
        return False
    changed: dict[str, list[Any]] = {}
    for name in typed.FIELDS:
        old, new = getattr(before, name), getattr(decided, name)
        if old != new:
            setattr(row, name, new)
            changed[name] = [_plain(old), _plain(new)]
    row.revision += 1
    audit.record(
        session,
        action="assignment.scheduled",
        subject=f"assignment:{row.id}",
        actor=member.user,
        detail={"assignment": row.slug, "changed": changed},
        reason=reason.strip()[:MAX_REASON],
    )
    return True


def _locked(session: Session, course_id: int, slugs: Mapping[str, Edit]) -> dict[str, Assignment]:
    """In one order for everybody, so that two forms do not wait for each other for ever."""
    query = (
        select(Assignment)
        .where(Assignment.course_id == course_id, Assignment.slug.in_(slugs))
        .order_by(Assignment.id)
        .options(joinedload(Assignment.version))
        .with_for_update(of=Assignment)
        .execution_options(populate_existing=True)
    )
    found = {row.slug: row for row in session.scalars(query)}
    if missing := slugs.keys() - found.keys():
        raise NotFoundError(f"There is no assignment {min(missing)[:60]} in this course.")
    return found


def _row(row: Assignment, zone: str) -> Row:
    lanes = _lanes(row)
    texts = typed.texts_of(row, zone, lanes)
    return Row(row, lanes, texts, typed.digest(texts))


def _lanes(row: Assignment) -> tuple[Lane, ...]:
    """Those of its files."""
    if row.version is None:
        return ()
    spec = spec_of(row.version)
    return tuple(lane for lane in Lane if spec.policy(lane) is not None)


def _plain(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else value
