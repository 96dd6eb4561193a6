"""Who is best on each board, kept as rows beside the results that it follows from.

A ranking over everything that was handed in reads a hundred thousand rows for a few thousand entries. So each
person's best valid result in each language is a row (`leaderboard_bests`), brought up to date in the transaction that
changes a submission or its result, when the grades are: before the commit, under the lock that grades of that person
take (`server.dirty_grades`, `server.gradebook.recompute`). Nobody has to remember it: every change that the session
writes is seen here. What is written past the session, as `scripts.large_course` does, calls `renew`.

What depends on the person or on the assignment's current version (enrolled, not disabled, graded the same way) is not
kept here: `server.grading.ranking` asks for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Row, Select, delete, event, func, insert, or_, select
from sqlalchemy.orm import ORMExecuteState, Session, UOWTransaction
from sqlalchemy.orm.attributes import get_history

from autograder.contract import Lane, Mode, Review, Verdict
from server import dirty_grades
from server.gradebook import recompute
from server.models import Assignment, AssignmentVersion, Best, Result, Submission

__all__ = ["Difference", "Place", "counts", "differences", "judged", "recompute", "renew"]
"""`recompute` is imported so that it settles first: its lock is the one under which this works."""

_KEY = "stale_bests"
_SUBMISSION = ("result_id", "review", "version_id", "mode", "user_id", "uploaded_at")
_RESULT = ("verdict", "settled", "ratio", "ratio_low", "ratio_high", "time_us")
"""What a place on a board follows from."""
_MOST_AT_ONCE = 200
"""So many places are looked at by one query."""


class Place(NamedTuple):
    """Where somebody may stand."""

    assignment_id: int
    lane: Lane
    user_id: int


class Difference(NamedTuple):
    """A row that is not what the results come to; `stored` or `right` is `None` where one is missing or too much."""

    stored: tuple[Any, ...] | None
    right: tuple[Any, ...] | None


_COLUMNS = (
    Best.assignment_id, Best.lane, Best.grading_hash, Best.user_id, Best.language,
    Best.leads, Best.submission_id, Best.uploaded_at, Best.ratio, Best.ratio_low, Best.ratio_high, Best.time_us,
)  # fmt: skip
_KEYS = 5
"""So many of them say which row it is."""


def counts() -> ColumnElement[bool]:
    """Whether a submission's result has a speed that nobody doubts."""
    return (
        Submission.review.in_((Review.none, Review.cleared))
        & or_(Result.settled, Submission.review == Review.cleared)
        & (Result.verdict == Verdict.passed)
        & Result.ratio.is_not(None)
    )


def judged(query: Select[*tuple[Any, ...]]) -> Select[*tuple[Any, ...]]:
    """`query` over submissions that are no practice, with the result that counts for each, and what graded it."""
    return (
        query.select_from(Submission)
        # Not by `Result.id` itself: SQLite would take the wide rows by their number instead of the narrow index.
        .join(Result, (Result.submission_id == Submission.id) & (Result.id + 0 == Submission.result_id))
        .join(AssignmentVersion, AssignmentVersion.id == Submission.version_id)
        .where(Submission.mode == Mode.submission, counts())
    )


def differences(session: Session, course_id: int, places: Collection[Place] | None = None) -> list[Difference]:
    """Where the stored rows are not what the results come to now; after every transaction there are none.

    Args:
        places: only those; `None`: the whole course.
    """
    right = _by_key(session.execute(_found(course_id, places)))
    stored = _by_key(session.execute(_stored(course_id, places)))
    keys = sorted(right.keys() | stored.keys())
    return [Difference(stored.get(key), right.get(key)) for key in keys if stored.get(key) != right.get(key)]


def renew(session: Session, course_id: int) -> int:
    """Bring a course's rows up to date, whatever is stored; how many were not."""
    recompute.lock(session, course_id, None)
    wrong = differences(session, course_id)
    _write(session, wrong)
    return len(wrong)


def _found(course_id: int, places: Collection[Place] | None) -> Select[Any]:
    kept = (Submission.assignment_id, Submission.lane, AssignmentVersion.grading_hash, Submission.user_id,
            Submission.language)  # fmt: skip
    # Of two equal results the earlier one is the better.
    order = (Result.ratio, Submission.uploaded_at, Submission.id)
    place = func.row_number().over(partition_by=kept, order_by=order).label("place")
    leads = (func.row_number().over(partition_by=kept[:-1], order_by=order) == 1).label("leads")
    shown = (
        *kept, leads, Submission.id, Submission.uploaded_at, Result.ratio, Result.ratio_low, Result.ratio_high,
        Result.time_us, place,
    )  # fmt: skip
    inner = judged(select(*shown)).where(*_here(Submission, course_id, places)).subquery()
    return select(*(column for column in inner.c if column.name != "place")).where(inner.c.place == 1)


def _stored(course_id: int, places: Collection[Place] | None) -> Select[Any]:
    columns: Sequence[Any] = _COLUMNS
    return select(*columns).where(*_here(Best, course_id, places))


def _here(
    table: type[Best | Submission], course_id: int, places: Collection[Place] | None
) -> Sequence[ColumnElement[bool]]:
    """Of the course, or of these places and some more: whatever is looked at is put right."""
    if places is None:
        return [table.assignment_id.in_(select(Assignment.id).where(Assignment.course_id == course_id))]
    columns = (table.assignment_id, table.lane, table.user_id)
    return [column.in_(sorted(set(values))) for column, values in zip(columns, zip(*places, strict=True), strict=True)]


def _by_key(rows: Iterable[Row[Any]]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    return {tuple(row[:_KEYS]): tuple(row) for row in rows}


def _write(session: Session, wrong: Iterable[Difference]) -> None:
    for old in (one.stored for one in wrong if one.stored is not None):
        same = zip(_COLUMNS[:_KEYS], old, strict=False)
        session.execute(delete(Best).where(*(column == value for column, value in same)))
    names = [column.key for column in _COLUMNS]
    new = [dict(zip(names, one.right, strict=True)) for one in wrong if one.right is not None]
    if new:
        session.execute(insert(Best), new)


def _settle(session: Session, noted: dirty_grades.Stale) -> None:
    """Bring up to date what was noted in these courses."""
    changed: dict[int, set[Place]] = session.info.get(_KEY, {})
    for course_id in sorted(noted.keys() & changed.keys()):
        # Person by person, and of nobody else: who was not noted is not locked, and may be changed meanwhile.
        places = sorted(changed.pop(course_id), key=lambda place: (place.user_id, place))
        for first in range(0, len(places), _MOST_AT_ONCE):
            _write(session, differences(session, course_id, places[first : first + _MOST_AT_ONCE]))


def _note(session: Session, course_id: int, place: Place) -> None:
    session.info.setdefault(_KEY, {}).setdefault(course_id, set()).add(place)
    dirty_grades.grades(session, course_id, place.user_id)


def _note_submission(session: Session, row: Submission) -> None:
    _note(session, row.course_id, Place(row.assignment_id, row.lane, row.user_id))


def _after_flush(session: Session, _context: UOWTransaction) -> None:
    """See what was written: a submission that another result counts for, or a result with other numbers."""
    for row in session.dirty:
        if isinstance(row, Submission) and _has_changed(row, _SUBMISSION):
            _note_submission(session, row)
        elif isinstance(row, Result) and _has_changed(row, _RESULT):
            _note_submission(session, session.get_one(Submission, row.submission_id))
    for row in session.new:
        if isinstance(row, Submission) and row.result_id is not None:
            _note_submission(session, row)


def _has_changed(row: Submission | Result, names: Iterable[str]) -> bool:
    return any(get_history(row, name).has_changes() for name in names)


def _before_many(state: ORMExecuteState) -> None:
    """See which submissions one statement is about to change or delete; which columns it changes is not asked."""
    mapper = state.bind_mapper
    if not (state.is_update or state.is_delete) or mapper is None or mapper.class_ not in {Submission, Result}:
        return
    where = getattr(state.statement, "whereclause", None)
    query = select(Submission.course_id, Submission.assignment_id, Submission.lane, Submission.user_id)
    if mapper.class_ is Result:
        query = query.join(Result, Result.submission_id == Submission.id)
    if where is not None:
        query = query.where(where)
    for course_id, assignment_id, lane, user_id in state.session.execute(query.distinct()):
        _note(state.session, course_id, Place(assignment_id, lane, user_id))


dirty_grades.settled_by(_settle)
event.listen(Session, "after_flush", _after_flush)
event.listen(Session, "do_orm_execute", _before_many)
