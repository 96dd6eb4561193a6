"""The one ranking query: every student's best valid result on each leaderboard, and who shares a rank.

A result is valid if it counts, passed everything, has a speed that is settled, and staff do not hold or reject it. It
is a student's who is in the course and whose account is open. It stands on the board of its assignment and lane as long
as what grades is the same (`AssignmentVersion.grading_hash`): ratios to two references, or over two sets of cases, are
never mixed. Pages, the API, exports, badges and the nightly confirmation all read this.

What boards show now comes from `leaderboard_bests` (`server.grading.leaderboard_entries`); what one showed at an
earlier time, such as a frozen board, from everything that was handed in by then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Select,
    String,
    Subquery,
    and_,
    case,
    distinct,
    false,
    func,
    or_,
    select,
    type_coerce,
)
from sqlalchemy.orm import aliased

from autograder.contract import Lane, Language
from server.grading.leaderboard_entries import counts, judged
from server.models import (
    Assignment,
    AssignmentVersion,
    Best,
    Enrolment,
    Result,
    Role,
    Submission,
    User,
)

__all__ = [
    "EVERYTHING",
    "Boards",
    "Selection",
    "best",
    "counts",
    "crowds",
    "entry",
    "leaders",
    "may_stand",
    "newest",
    "outline",
    "ranks",
    "records",
    "standing",
]

Rows = Select[*tuple[Any, ...]]


@dataclass(frozen=True)
class Boards:
    """Which boards are asked for; all, where nothing is said.

    Attributes:
        assignment_ids: of these assignments.
        lanes: on these lanes.
    """

    assignment_ids: Collection[int] | None = None
    lanes: Collection[Lane] | None = None

    def of(self, table: type[Best | Submission]) -> list[ColumnElement[bool]]:
        """Whether a row belongs to one of them."""
        found: list[ColumnElement[bool]] = []
        if self.assignment_ids is not None:
            found.append(table.assignment_id.in_(sorted(self.assignment_ids)))
        if self.lanes is not None:
            found.append(table.lane.in_(sorted(self.lanes)))
        return found


@dataclass(frozen=True)
class Selection:
    """Of whom and of what the results are; everything, where nothing is said.

    Attributes:
        section: only students of this section.
        as_of: only what was handed in by then.
    """

    language: Language | None = None
    section: str | None = None
    as_of: datetime | None = None


EVERYTHING = Selection()


def best(selection: Selection, boards: Boards, *, more: Sequence[Any] = ()) -> Rows:
    """Each student's best valid result on each of the boards, by board and then best first.

    Args:
        more: columns of `Submission` and `Result` beside the usual ones.
    """
    inner = _places(selection, boards)
    return (
        select(*COLUMNS, *more)
        .join_from(inner, Submission, Submission.id == inner.c.id)
        .join(Result, Result.id == Submission.result_id)
        .join(User, User.id == Submission.user_id)
        .join(Enrolment, enrolled())
        .order_by(inner.c.assignment_id, inner.c.lane, inner.c.ratio, inner.c.uploaded_at, inner.c.id)
    )


def outline(selection: Selection, boards: Boards) -> Rows:
    """The same entries in the same order with little of each, for who looks at many boards at once.

    Lane and language come as their plain words: making a word of an enum of each of ten thousand is felt.
    """
    inner = _places(selection, boards)
    words = {name: type_coerce(inner.c[name], String).label(name) for name in ("lane", "language")}
    return select(*(words.get(name, inner.c[name]) for name in OUTLINE)).order_by(
        inner.c.assignment_id, inner.c.lane, inner.c.ratio, inner.c.uploaded_at, inner.c.id
    )


def crowds(selection: Selection, boards: Boards) -> Rows:
    """How many people stand on each of the boards in each language: `assignment_id`, `lane`, `language`, `people`."""
    if selection.as_of is None:
        board = (Best.assignment_id, Best.lane, Best.language)
        query = _stored(select(*board, func.count().label("people")), selection, boards)
    else:
        board = (Submission.assignment_id, Submission.lane, Submission.language)
        people = func.count(distinct(Submission.user_id)).label("people")
        query = _valid(select(*board, people), selection, boards)
    return query.group_by(*board)


def leaders(boards: Boards) -> Rows:
    """The best of each of the boards in each language, with how many stand there.

    Beside the usual columns: `people` with an entry in the language, and `everybody` on the board.
    """
    board = (Best.assignment_id, Best.lane)
    in_order = (Best.ratio, Best.uploaded_at, Best.submission_id)
    inner = _stored(
        select(
            *STORED,
            func.row_number().over(partition_by=(*board, Best.language), order_by=in_order).label("place"),
            func.count().over(partition_by=(*board, Best.language)).label("people"),
            func.sum(case((Best.leads, 1), else_=0)).over(partition_by=board).label("everybody"),
        ),
        EVERYTHING,
        boards,
    ).subquery()
    return select(inner).where(inner.c.place == 1).order_by(inner.c.ratio, inner.c.uploaded_at, inner.c.submission_id)


def newest(boards: Iterable[Boards], count: int) -> Rows:
    """The bests on any of the boards that were handed in last, newest first; everybody's in each language is one."""
    on_one = or_(false(), *(and_(*each.of(Best)) for each in boards))
    query = _stored(select(*STORED), EVERYTHING, Boards()).where(on_one)
    return query.order_by(Best.uploaded_at.desc(), Best.submission_id.desc()).limit(count)


def records(selection: Selection, boards: Boards) -> Rows:
    """What was faster than everything valid before it, on the one board that is asked for, oldest first."""
    in_time = (Submission.uploaded_at, Submission.id)
    before = func.min(Result.ratio).over(order_by=in_time, rows=(None, -1)).label("before")
    inner = _valid(select(Submission.id, Result.ratio, before), selection, boards).subquery()
    return (
        select(*COLUMNS)
        .join_from(inner, Submission, Submission.id == inner.c.id)
        .join(Result, Result.id == Submission.result_id)
        .join(User, User.id == Submission.user_id)
        .join(Enrolment, enrolled())
        .where(or_(inner.c.before.is_(None), inner.c.ratio < inner.c.before))
        .order_by(*in_time)
    )


def standing(assignment_id: int) -> Select[int]:
    """Ids of the submissions that a board of the assignment shows, whatever graded them: bests, and former records."""
    in_time = (Submission.uploaded_at, Submission.id)
    same_board = (Submission.lane, AssignmentVersion.grading_hash)
    before = func.min(Result.ratio).over(partition_by=same_board, order_by=in_time, rows=(None, -1)).label("before")
    inner = (
        judged(select(Submission.id, Result.ratio, before)).where(Submission.assignment_id == assignment_id).subquery()
    )
    was_record = select(inner.c.id).where(or_(inner.c.before.is_(None), inner.c.ratio < inner.c.before))
    bests = select(Best.submission_id).where(Best.assignment_id == assignment_id)
    return select(Submission.id).where(or_(Submission.id.in_(bests), Submission.id.in_(was_record)))


def entry(submission_id: int) -> Rows:
    """The row of this submission as a best of its board in its language; none where it is not one, or may not stand."""
    columns = (*STORED, Best.ratio_low, Best.ratio_high)
    return _stored(select(*columns), EVERYTHING, Boards()).where(Best.submission_id == submission_id)


COLUMNS = (
    Submission.id,
    Submission.public_id,
    Submission.assignment_id,
    Submission.lane,
    Submission.user_id,
    Submission.language,
    Submission.uploaded_at,
    Submission.confirmations,
    Result.ratio,
    Result.ratio_low,
    Result.ratio_high,
    Result.time_us,
    User.handle,
    User.name,
    Enrolment.show_name,
    Enrolment.section,
)
"""What both queries tell of an entry."""
STORED = (
    Best.assignment_id,
    Best.lane,
    Best.language,
    Best.submission_id,
    Best.uploaded_at,
    Best.ratio,
    Best.time_us,
    User.handle,
    User.name,
    Enrolment.show_name,
)
"""What is told of an entry where no more than its line is shown."""
OUTLINE = ("assignment_id", "lane", "user_id", "language", "id", "ratio", "ratio_low", "ratio_high", "time_us")
"""What an outline tells of one."""


def _places(selection: Selection, boards: Boards) -> Subquery:
    """Everybody's best valid result on each of the boards."""
    if selection.as_of is None:
        return _kept(selection, boards)
    own = (Submission.assignment_id, Submission.lane, Submission.user_id)
    # Of two equal results the earlier one stands first.
    order = (Result.ratio, Submission.uploaded_at, Submission.id)
    place = func.row_number().over(partition_by=own, order_by=order).label("own_place")
    shown = (Submission.language, Submission.uploaded_at, Submission.id, *_speed(Result))
    inner = _valid(select(*own, *shown, place), selection, boards).subquery()
    return select(inner).where(inner.c.own_place == 1).subquery()


def _kept(selection: Selection, boards: Boards) -> Subquery:
    """The same from what is kept of everybody's best, of who and what may stand on a leaderboard."""
    own = (Best.assignment_id, Best.lane, Best.user_id)
    shown = (Best.language, Best.uploaded_at, Best.submission_id.label("id"), *_speed(Best))
    query = _stored(select(*own, *shown), selection, boards)
    return (query.where(Best.leads) if selection.language is None else query).subquery()


def _stored(query: Rows, selection: Selection, boards: Boards) -> Rows:
    """`query` over `Best`, of who and what may stand on a leaderboard now, in whatever language."""
    query = (
        query.join_from(Best, Assignment, Assignment.id == Best.assignment_id)
        .join(AssignmentVersion, AssignmentVersion.id == Assignment.version_id)
        .join(User, User.id == Best.user_id)
        .join(Enrolment, (Enrolment.user_id == Best.user_id) & (Enrolment.course_id == Assignment.course_id))
        .where(Best.grading_hash == AssignmentVersion.grading_hash, *may_stand(), *boards.of(Best))
    )
    if selection.language is not None:
        query = query.where(Best.language == selection.language)
    if selection.section is not None:
        query = query.where(Enrolment.section == selection.section)
    return query


def _speed(table: type[Best | Result]) -> tuple[Any, ...]:
    return (table.ratio, table.ratio_low, table.ratio_high, table.time_us)


def _valid(query: Rows, selection: Selection, boards: Boards) -> Rows:
    """`query` over `Submission` and `Result`, of what may stand on a leaderboard.

    The result that counts is looked at, whatever the submission's state: while staff grade it again, its entry stays.
    """
    current = aliased(AssignmentVersion)
    query = (
        judged(query)
        .join(Assignment, Assignment.id == Submission.assignment_id)
        .join(current, current.id == Assignment.version_id)
        .join(User, User.id == Submission.user_id)
        .join(Enrolment, enrolled())
        .where(AssignmentVersion.grading_hash == current.grading_hash, *may_stand(), *boards.of(Submission))
    )
    if selection.language is not None:
        query = query.where(Submission.language == selection.language)
    if selection.section is not None:
        query = query.where(Enrolment.section == selection.section)
    if selection.as_of is not None:
        query = query.where(Submission.uploaded_at <= selection.as_of)
    return query


def may_stand() -> tuple[ColumnElement[bool], ...]:
    """Whether a person may: a student of the course whose account is open."""
    return (User.disabled_at.is_(None), Enrolment.role == Role.student, Enrolment.dropped_at.is_(None))


def enrolled() -> ColumnElement[bool]:
    """Whether an enrolment is that of the submission's owner in its course."""
    return (Enrolment.user_id == Submission.user_id) & (Enrolment.course_id == Submission.course_id)


def ranks(intervals: Sequence[tuple[float, float]]) -> list[int]:
    """The ranks of entries that stand best first: a group lasts while intervals begin before its leader's ends.

    Args:
        intervals: the ends of each entry's interval.
    """
    found: list[int] = []
    leader_high = float("-inf")
    for place, (low, high) in enumerate(intervals, start=1):
        if found and low <= leader_high:
            found.append(found[-1])
        else:
            leader_high = high
            found.append(place)
    return found
