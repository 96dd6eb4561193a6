"""What a course shows to whoever comes by: who leads its boards, and the newest entries on them.

Of a board that is frozen for the looker it tells nothing: what was there when it froze is on the board itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from sqlalchemy import Row, select
from sqlalchemy.orm import Session

from autograder.contract import Lane, Language
from server.courses import courses
from server.courses.courses import AssignmentDetail
from server.grading import ranking
from server.grading.ranking import Boards
from server.leaderboard.board import frozen_at, is_practice
from server.leaderboard.limits import CaseWork, limit_us, work_of
from server.models import Course

NEWEST = 8
MOST_COURSES = 20
"""On the front page, which has to stay cheap."""


@dataclass(frozen=True)
class Line:
    """One entry of a board, without whose submission it is.

    Attributes:
        name: the name if they chose to show it, otherwise their pseudonym.
        is_practice: the board is of its language alone, and its times give no points.
    """

    detail: AssignmentDetail
    lane: Lane
    language: Language
    name: str
    at: datetime
    ratio: float
    time_us: float
    is_practice: bool

    @cached_property
    def work(self) -> CaseWork | None:
        """As a board's; worked out where it is shown, since it evaluates formulas for every case."""
        return work_of(self.detail.version, self.lane)

    @cached_property
    def limit_us(self) -> float | None:
        """As a board's, and as late."""
        return limit_us(self.detail.version, self.lane)


@dataclass(frozen=True)
class Lead:
    """The fastest of an assignment, on the lane that is shown first; `entries` are on the same board."""

    line: Line
    entries: int


@dataclass(frozen=True)
class Showcase:
    """A course with what the public sees of it.

    Attributes:
        details: the assignments that its students see, by rung.
        leads: by slug, of those whose boards have an entry and are not frozen.
        frozen: slugs of those whose boards are.
    """

    course: Course
    details: tuple[AssignmentDetail, ...]
    leads: Mapping[str, Lead]
    frozen: frozenset[str]


def public_courses(session: Session) -> Sequence[Course]:
    """Courses whose boards are public, those that go on first, newest first."""
    query = (
        select(Course)
        .where(Course.public_leaderboards)
        .order_by(Course.archived_at.is_not(None), Course.created_at.desc(), Course.id.desc())
        .limit(MOST_COURSES)
    )
    return session.scalars(query).all()


def showcases(session: Session, found: Sequence[Course], now: datetime) -> tuple[Showcase, ...]:
    """What the public sees of these courses, which have to be public."""
    details: dict[int, list[AssignmentDetail]] = defaultdict(list)
    for detail in courses.details_of(session, *(course.id for course in found)):
        if detail.is_visible(now, staff=False):
            details[detail.row.course_id].append(detail)
    everything = [detail for seen in details.values() for detail in seen]
    open_ones = [detail for detail in everything if frozen_at(detail.row, now) is None]
    leads = _leads(session, open_ones)
    return tuple(_showcase(course, details[course.id], leads, now) for course in found)


def _showcase(
    course: Course, details: Sequence[AssignmentDetail], leads: Mapping[int, Lead], now: datetime
) -> Showcase:
    return Showcase(
        course,
        tuple(details),
        {detail.slug: leads[detail.row.id] for detail in details if detail.row.id in leads},
        frozenset(detail.slug for detail in details if frozen_at(detail.row, now) is not None),
    )


def newest(
    session: Session, details: Iterable[AssignmentDetail], now: datetime, *, staff: bool = False
) -> tuple[Line, ...]:
    """The entries that were handed in last, newest first; staff see past a freeze."""
    shown = {detail.row.id: detail for detail in details if staff or frozen_at(detail.row, now) is None}
    by_lane: dict[Lane, list[int]] = defaultdict(list)
    for number, detail in shown.items():
        for lane in detail.board_lanes:
            by_lane[lane].append(number)
    boards = [Boards(numbers, [lane]) for lane, numbers in by_lane.items()]
    return tuple(_line(row, shown) for row in session.execute(ranking.newest(boards, NEWEST)))


def _leads(session: Session, details: Sequence[AssignmentDetail]) -> dict[int, Lead]:
    """Of each assignment the fastest, on the lane with points and entries, or else with entries."""
    shown = {detail.row.id: detail for detail in details}
    found: dict[int, tuple[tuple[bool, int], Row[Any]]] = {}
    # Fastest first: of one board's languages the first one leads it.
    for row in session.execute(ranking.leaders(Boards(shown))):
        detail = shown[row.assignment_id]
        if row.lane not in detail.board_lanes:
            continue
        practice = is_practice(detail, row.lane)
        weight = (not practice, row.people if practice else row.everybody)
        known = found.get(row.assignment_id)
        if known is None or weight > known[0]:
            found[row.assignment_id] = (weight, row)
    return {number: Lead(_line(row, shown), entries) for number, ((_, entries), row) in found.items()}


def _line(row: Row[Any], shown: Mapping[int, AssignmentDetail]) -> Line:
    detail = shown[row.assignment_id]
    return Line(
        detail=detail,
        lane=row.lane,
        language=row.language,
        name=row.name if row.show_name else row.handle,
        at=row.uploaded_at,
        ratio=row.ratio,
        time_us=row.time_us,
        is_practice=is_practice(detail, row.lane),
    )
