"""When those who wait will have their result: the queue as it is, in the order of its policy, with measured times.

`forecast` looks at one lane once, for everybody who waits in it; `server.grading.snapshots` shares that among viewers.
An estimate that was shown first is stored and later held against what came (`server.grading.calibration`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Select, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from server.grading.calibration import Calibration, calibrations
from server.grading.policy import Waiting, order
from server.grading.queue_snapshot import look_at
from server.grading.schedule import Bench, Busy, Expected, Planned, expect
from server.grading.service_times import Job, ServiceTimes, service_times
from server.grading.states import LIVE, WAITING
from server.models import Attempt, Forecast, Lane, Line, Mode, Node, Submission, Work
from server.nodes import nodes

FIRST_ANSWERS = (Line.submission, Line.run)
"""In these lines people wait for a first verdict, so that an estimate is stored."""


@dataclass(frozen=True)
class Wait:
    """What a waiting submission can be told.

    Attributes:
        line: where it stands.
        ahead: how many have their turn before it.
        has_node: something grades its lane now.
        measured: the times are measured; else they are a guess.
        low_s, likely_s, high_s: until its result, 10th, 50th and 90th percentile; `None` without a node.
        approximate: the queue was too long to work through all of it.
    """

    line: Line
    ahead: int
    has_node: bool
    measured: bool = False
    low_s: float | None = None
    likely_s: float | None = None
    high_s: float | None = None
    approximate: bool = False


@dataclass(frozen=True)
class Served:
    """What a slot of the lane runs now."""

    submission_id: int
    user_id: int
    course_id: int
    line: Line
    job: Job
    node_id: int
    since_at: datetime


@dataclass(frozen=True)
class LaneForecast:
    """One lane at one time.

    Attributes:
        queue: everybody who waits, in the order of their turns.
        nodes, slots: in service.
    """

    lane: Lane
    made_at: datetime
    queue: tuple[Waiting, ...]
    running: tuple[Served, ...]
    nodes: int
    slots: int
    waits: Mapping[int, Wait]
    times: ServiceTimes
    calibrations: Mapping[Mode, Calibration]


def forecast(session: Session, lane: Lane, now: datetime) -> LaneForecast:
    """Look at the lane and work out when everybody in it has a result."""
    working = nodes.working_nodes(session, now=now)
    queue = order(look_at(session, lane, working, now=now))
    jobs, running = _jobs(session, lane), _running(session, lane)
    # One that came between the two queries is seen by the next look.
    queue = [item for item in queue if item.id in jobs]
    serving = [node for node in working if lane.value in node.lanes]
    slots = sum(node.slots for node in serving)
    times, past = service_times(session, lane), calibrations(session, lane)
    planned = [Planned(item.id, jobs[item.id]) for item in queue]
    raw = expect(planned, [_bench(node, running, now) for node in serving], times)
    shown = {item_id: past[jobs[item_id].mode].apply(each) for item_id, each in raw.items()}
    waits = {
        item.id: _wait(item.line, place, shown.get(item.id), has_node=slots > 0, measured=times.measured)
        for place, item in enumerate(queue)
    }
    return LaneForecast(lane, now, tuple(queue), tuple(running), len(serving), slots, waits, times, past)


def store_forecasts(session: Session, now: datetime) -> int:
    """Store an estimate for everybody who waits for a first verdict and has none; how many were stored."""
    missing: dict[Lane, list[tuple[int, Mode]]] = {}
    for submission_id, lane, mode in session.execute(_without_forecast()):
        missing.setdefault(lane, []).append((submission_id, mode))
    rows = []
    for lane, items in missing.items():
        seen = forecast(session, lane, now)
        rows += [row for submission_id, mode in items if (row := _row(seen, submission_id, mode)) is not None]
    if rows:
        # Another dispatcher may have stored some of them meanwhile.
        insert = postgresql.insert if session.get_bind().dialect.name == "postgresql" else sqlite.insert
        session.execute(insert(Forecast).on_conflict_do_nothing(), rows)
    return len(rows)


def verdict_came(session: Session, submission: Submission, now: datetime) -> None:
    """Note how long it took until the first verdict; nothing was promised of one superseded or graded again."""
    if submission.line not in FIRST_ANSWERS:
        return
    made_at = session.scalar(
        select(Forecast.made_at).where(Forecast.submission_id == submission.id, Forecast.came_s.is_(None))
    )
    if made_at is not None:
        came_s = max(0.0, (now - made_at).total_seconds())
        session.execute(update(Forecast).where(Forecast.submission_id == submission.id).values(came_s=came_s))


def _jobs(session: Session, lane: Lane) -> dict[int, Job]:
    query = select(Submission.id, Submission.version_id, Submission.mode, Submission.work).where(
        Submission.lane == lane, Submission.state.in_(WAITING)
    )
    return {item: Job(version, mode, work) for item, version, mode, work in session.execute(query)}


def _running(session: Session, lane: Lane) -> list[Served]:
    query = (
        select(
            Attempt.submission_id, Submission.user_id, Submission.course_id, Attempt.line, Submission.version_id,
            Submission.mode, Attempt.work, Attempt.node_id, Attempt.dispatched_at,
        )
        .join(Submission, Submission.id == Attempt.submission_id)
        .where(Attempt.lane == lane, Attempt.state.in_(LIVE))
        .order_by(Attempt.dispatched_at)
    )  # fmt: skip
    return [
        Served(item, user, course, line, Job(version, mode, work), node, at)
        for item, user, course, line, version, mode, work, node, at in session.execute(query)
    ]


def _bench(node: Node, running: Sequence[Served], now: datetime) -> Bench:
    busy = (Busy(item.job, (now - item.since_at).total_seconds()) for item in running if item.node_id == node.id)
    return Bench(node.slots, frozenset(Work(work) for work in node.works), tuple(busy))


def _wait(line: Line, place: int, shown: Expected | None, *, has_node: bool, measured: bool) -> Wait:
    if shown is None:
        return Wait(line, place, has_node)
    return Wait(line, place, has_node, measured, shown.low_s, shown.likely_s, shown.high_s, shown.approximate)


def _without_forecast() -> Select[int, Lane, Mode]:
    return (
        select(Submission.id, Submission.lane, Submission.mode)
        .outerjoin(Forecast, Forecast.submission_id == Submission.id)
        .where(
            Submission.state.in_(WAITING),
            Submission.line.in_(FIRST_ANSWERS),
            Submission.result_id.is_(None),
            Forecast.submission_id.is_(None),
        )
    )


def _row(seen: LaneForecast, submission_id: int, mode: Mode) -> dict[str, object] | None:
    wait, past = seen.waits.get(submission_id), seen.calibrations[mode]
    if wait is None or wait.likely_s is None:
        return None
    return {
        "submission_id": submission_id,
        "lane": seen.lane,
        "made_at": seen.made_at,
        "position": wait.ahead,
        "low_s": wait.low_s,
        "likely_s": wait.likely_s,
        "high_s": wait.high_s,
        "scale_low": past.down,
        "scale_high": past.up,
    }
