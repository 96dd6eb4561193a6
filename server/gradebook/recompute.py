"""Write grades as they are now, in the transaction of whatever changed them.

Two transactions that change the grades of one person go one after the other: the second one reads what the first has
left. On PostgreSQL a lock of (course, person) sees to that, held until the transaction ends; it is taken after all
other locks. Whoever changes a whole course holds the course's alone, which everybody else shares. On SQLite the
transaction itself is the lock.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Integer, cast, delete, func, insert, select, update
from sqlalchemy.orm import Session

from server import dirty_grades
from server.db import now
from server.gradebook import grade_inputs as facts_of
from server.gradebook.compute import Outcome, outcomes
from server.groups import groups
from server.models import Enrolment, Grade, Role

_COLUMNS = tuple(field.name for field in dataclasses.fields(Outcome))
_NEAR = 1e-9


@dataclasses.dataclass(frozen=True)
class Difference:
    """A grade that is not what the facts come to; `stored` or `right` is `None` where one is missing or too much."""

    user_id: int
    assignment_id: int
    stored: Outcome | None
    right: Outcome | None


def settle(session: Session, noted: dirty_grades.Stale) -> None:
    """Bring the grades of these courses and people up to date."""
    for course_id, user_ids in sorted(noted.items()):
        people = None if user_ids is None else _with_partners(session, course_id, user_ids)
        lock(session, course_id, people)
        _write(session, course_id, differences(session, course_id, people))


def lock_people(session: Session, course_id: int, user_ids: Collection[int]) -> None:
    """`lock` for who decides about these people and goes on to `settle`: all that settling them will want."""
    lock(session, course_id, _with_partners(session, course_id, frozenset(user_ids)))


def lock(session: Session, course_id: int, user_ids: Collection[int] | None) -> None:
    """Let nobody else change these people's grades until the transaction ends; `None`: everybody's of the course."""
    if session.get_bind().dialect.name != "postgresql":
        return
    course = cast(course_id, Integer)
    if user_ids is None:
        session.execute(select(func.pg_advisory_xact_lock(course, cast(0, Integer))))
        return
    session.execute(select(func.pg_advisory_xact_lock_shared(course, cast(0, Integer))))
    for user_id in sorted(user_ids):
        session.execute(select(func.pg_advisory_xact_lock(course, cast(user_id, Integer))))


def differences(session: Session, course_id: int, user_ids: Collection[int] | None = None) -> list[Difference]:
    """Where stored grades are not what the facts come to now; after every transaction there are none."""
    stored = _stored(session, course_id, user_ids)
    students = _students(session, course_id, user_ids)
    facts = facts_of.read(session, course_id, user_ids)
    right = {(user_id, outcome.assignment_id): outcome for user_id in students for outcome in outcomes(facts, user_id)}
    places = sorted(stored.keys() | right.keys())
    return [
        Difference(*place, stored.get(place), right.get(place))
        for place in places
        if not _same(stored.get(place), right.get(place))
    ]


def _with_partners(session: Session, course_id: int, user_ids: frozenset[int]) -> frozenset[int]:
    together = groups.groups_in(session, course_id, sorted(user_ids))
    return user_ids.union(*(group.member_ids for group in together.values()))


def _students(session: Session, course_id: int, user_ids: Collection[int] | None) -> Sequence[int]:
    """Who has grades: who is a student of the course, or was until they dropped it."""
    query = select(Enrolment.user_id).where(Enrolment.course_id == course_id, Enrolment.role == Role.student)
    return session.scalars(query if user_ids is None else query.where(Enrolment.user_id.in_(user_ids))).all()


def _stored(session: Session, course_id: int, user_ids: Collection[int] | None) -> dict[facts_of.Place, Outcome]:
    columns = [getattr(Grade, name) for name in _COLUMNS]
    query = select(Grade.user_id, *columns).where(Grade.course_id == course_id)
    rows = session.execute(query if user_ids is None else query.where(Grade.user_id.in_(user_ids)))
    return {(user_id, values[0]): Outcome(*values) for user_id, *values in rows}


def _same(one: Outcome | None, other: Outcome | None) -> bool:
    if one is None or other is None:
        return one is other
    pairs = ((getattr(one, name), getattr(other, name)) for name in _COLUMNS)
    return all(_equal(mine, theirs) for mine, theirs in pairs)


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=_NEAR, abs_tol=_NEAR)
    return bool(one == other)


def _write(session: Session, course_id: int, found: Iterable[Difference]) -> None:
    at = now(session)
    new = [one for one in found if one.stored is None]
    if new:
        session.execute(insert(Grade), [_row(course_id, one, at) for one in new])
    for one in found:
        if one.stored is not None:
            _change(session, one, at)


def _row(course_id: int, one: Difference, at: datetime) -> dict[str, Any]:
    return {"course_id": course_id, "user_id": one.user_id, "revision": 1, "updated_at": at, **_values(one)}


def _change(session: Session, one: Difference, at: datetime) -> None:
    here = (Grade.user_id == one.user_id, Grade.assignment_id == one.assignment_id)
    if one.right is None:
        session.execute(delete(Grade).where(*here))
    else:
        values = {**_values(one), "revision": Grade.revision + 1, "updated_at": at}
        session.execute(update(Grade).where(*here).values(values).execution_options(synchronize_session=False))


def _values(one: Difference) -> dict[str, Any]:
    return {name: getattr(one.right, name) for name in _COLUMNS}


dirty_grades.settled_by(settle)
