"""The queue of a course: what runs, who waits in which line, how long it takes, and how right past estimates were.

A student sees how many there are and where they are themselves, staff also who in their course. Nobody sees anything of
another course but its number. All of it is of the looks that viewers share (`server.grading.snapshots`).
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from fastapi import APIRouter, Request
from sqlalchemy import select
from sqlalchemy.orm import Session
from starlette.responses import Response

from server import db
from server.courses import courses
from server.courses.courses import Membership
from server.grading.calibration import PROMISED
from server.grading.forecast import LaneForecast
from server.grading.history import HourOfWaits
from server.grading.policy import LINES
from server.grading.service_times import Job, ServiceTimes
from server.http.identity import Someone
from server.http.waits import snapshots_of
from server.http.work import Work
from server.models import Assignment, AssignmentVersion, Lane, Line, Mode, Submission, User
from server.models import Work as Part
from server.pages.bars import Bars, of_waits
from server.pages.queue_text import place_text
from server.pages.rendering import render

router = APIRouter(include_in_schema=False)
SHOWN = 200
"""Staff see so many of those who wait, in the order of their turns."""


@dataclass(frozen=True)
class Row:
    """One submission that the viewer may see: their own, or one of their course if they are staff."""

    public_id: str
    number: int
    mode: Mode
    title: str
    author: str
    line: Line
    said: str
    since_s: float


@dataclass(frozen=True)
class LineNow:
    """How many wait in a line, and for how long the oldest of them has."""

    line: Line
    count: int
    oldest_s: float


@dataclass(frozen=True)
class JobTime:
    """How long one kind of job took lately: half no longer than the median, nine of ten no longer than the high."""

    what: str
    count: int
    median_s: float
    high_s: float


@dataclass(frozen=True)
class Board:
    """One lane as one viewer sees it.

    Attributes:
        running, waiting: of what the viewer may see, in order; `others_running` is the rest of what runs.
        hours: those in which something was handed in.
        estimates: how many past ones were right, in a sentence; empty before the first.
    """

    lane: Lane
    nodes: int
    slots: int
    running: tuple[Row, ...]
    others_running: int
    lines: tuple[LineNow, ...]
    waiting: tuple[Row, ...]
    left_out: int
    times: tuple[JobTime, ...]
    estimates: str
    hours: tuple[HourOfWaits, ...]
    chart: Bars | None


@router.get("/courses/{course}/queue")
def queue_page(request: Request, course: str, who: Someone, work: Work) -> Response:
    """Every lane on which the course's assignments are graded."""
    member = courses.membership(work, who.user, course)
    now = db.now(work)
    details = courses.assignments_of(work, member, now)
    lanes = [lane for lane in Lane if any(lane in detail.lanes for detail in details)]
    snapshots = snapshots_of(request)
    boards = []
    for lane in lanes:
        seen, hours = snapshots.newest(work, lane), snapshots.history(work, lane)
        boards.append(_board(work, member, seen, hours, now))
    busy = [board for board in boards if board.nodes or board.lines or board.running]
    return render(
        request,
        "queue.html",
        member=member,
        course=member.course,
        boards=busy or boards[:1],
        idle=[board.lane for board in boards if board not in busy] if busy else [board.lane for board in boards[1:]],
        now=now,
    )


def _board(
    session: Session, member: Membership, seen: LaneForecast, hours: Sequence[HourOfWaits], now: datetime
) -> Board:
    visible = _visible(seen, member)
    facts, busy = _facts(session, visible), [hour for hour in hours if hour.count]
    running = [
        _row(facts[item.submission_id], item.line, (now - item.since_at).total_seconds())
        for item in seen.running
        if item.submission_id in facts
    ]
    waiting = [
        _row(
            facts[item.id], item.line, (now - item.place_at).total_seconds(),
            place_text(seen.waits[item.id], seen.lane, own=item.user_id == member.user.id),
        )
        for item in seen.queue
        if item.id in facts
    ]  # fmt: skip
    return Board(
        lane=seen.lane,
        nodes=seen.nodes,
        slots=seen.slots,
        running=tuple(running),
        others_running=len(seen.running) - len(running),
        lines=tuple(_lines(seen, now)),
        waiting=tuple(waiting[:SHOWN]),
        left_out=max(0, len(waiting) - SHOWN),
        times=tuple(_times(session, member, seen.times)),
        estimates=estimates_text(
            sum(past.right for past in seen.calibrations.values()),
            sum(past.total for past in seen.calibrations.values()),
        ),
        hours=tuple(busy),
        chart=of_waits("From upload to verdict, by the hour of the upload, last 24 h", hours, member.course.timezone)
        if busy
        else None,
    )


def estimates_text(right: int, total: int) -> str:
    """`Of the last 412 estimates 83 % were right; 80 % were promised.`, empty where none was held against a result."""
    if not total:
        return ""
    if total == 1:
        return f"The one estimate so far was {'right' if right else 'wrong'}; {PROMISED:.0%} are promised to be right."
    promised = f"{100 * PROMISED:.0f} % were promised"
    return f"Of the last {total:,} estimates {100 * right / total:.0f} % were right; {promised}."


def _visible(seen: LaneForecast, member: Membership) -> list[int]:
    """The ids of what the viewer may see by itself."""
    items = [(item.submission_id, item.user_id, item.course_id) for item in seen.running]
    items += [(item.id, item.user_id, item.course_id) for item in seen.queue]
    return [
        submission_id
        for submission_id, user_id, course_id in items
        if course_id == member.course.id and (member.is_staff or user_id == member.user.id)
    ]


@dataclass(frozen=True)
class _Facts:
    public_id: str
    number: int
    mode: Mode
    title: str
    author: str


def _facts(session: Session, submission_ids: Sequence[int]) -> Mapping[int, _Facts]:
    if not submission_ids:
        return {}
    query = (
        select(
            Submission.id, Submission.public_id, Submission.number, Submission.mode, Assignment.title, User.name
        )
        .join(Assignment, Assignment.id == Submission.assignment_id)
        .join(User, User.id == Submission.user_id)
        .where(Submission.id.in_(submission_ids))
    )  # fmt: skip
    return {row[0]: _Facts(*row[1:]) for row in session.execute(query)}


def _row(facts: _Facts, line: Line, since_s: float, said: str = "") -> Row:
    return Row(
        public_id=facts.public_id,
        number=facts.number,
        mode=facts.mode,
        title=facts.title,
        author=facts.author,
        line=line,
        said=said,
        since_s=max(0.0, since_s),
    )


def _lines(seen: LaneForecast, now: datetime) -> Iterable[LineNow]:
    for line in LINES:
        places = [item.place_at for item in seen.queue if item.line is line]
        if places:
            yield LineNow(line, len(places), max(0.0, (now - min(places)).total_seconds()))


def _times(session: Session, member: Membership, times: ServiceTimes) -> Iterable[JobTime]:
    """Of the course's own assignments, by what was done."""
    titles = _titles(session, member, {job.version_id for job in times.by_job})
    by_what: dict[str, list[float]] = {}
    for job, seconds in times.by_job.items():
        if job.version_id in titles:
            by_what.setdefault(f"{titles[job.version_id]}, {_part(job)}", []).extend(seconds)
    for what, each in sorted(by_what.items()):
        each.sort()
        yield JobTime(what, len(each), statistics.median(each), each[round(0.9 * (len(each) - 1))])


def _titles(session: Session, member: Membership, version_ids: set[int]) -> Mapping[int, str]:
    if not version_ids:
        return {}
    query = (
        select(AssignmentVersion.id, Assignment.title)
        .join(Assignment, Assignment.id == AssignmentVersion.assignment_id)
        .where(AssignmentVersion.id.in_(version_ids), Assignment.course_id == member.course.id)
    )
    if not member.is_staff:
        query = query.where(Assignment.published)
    return {row.id: row.title for row in session.execute(query)}


def _part(job: Job) -> str:
    if job.mode is not Mode.submission:
        return f"a {job.mode.noun}"
    return {Part.check: "a check", Part.measure: "a measurement", Part.all: "a submission"}[job.work]
