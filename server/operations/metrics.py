"""What Prometheus is told that stands in the database: one bounded transaction for a scrape, kept for some seconds.

Counters count rows, so that they agree however many processes answer, and survive restarts. What was measured of
attempts is of the newest ones only: a histogram of a window, which goes up and down.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from importlib import metadata
from itertools import pairwise
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeHistogramMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from server import alerts
from server.db import Database, now
from server.grading.calibration import calibrations
from server.grading.states import FINAL, WAITING
from server.models import AlertKind, Attempt, AttemptState, Lane, Result, Review, State, Submission
from server.operations import overview
from server.reconciliation import runs as reconciliation

KEPT_S = 5.0
"""A second scrape within so many seconds gets the first one's answer."""
NEWEST = 500
"""So many finished attempts of each lane are measured."""
BUCKETS_S = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0)
WHOLE = "whole"
SENT = "sent"
"""From the claim in the database to the node's first sign of life."""

Families = Iterator[Metric]
Values = Mapping[Any, float]
"""By the values of its labels, a tuple of strings; a mapping of narrower tuples is none of tuples."""


class Figures:
    """The newest exposition, made anew when it is asked for and too old."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._made_at = float("-inf")
        self._text = b""

    def exposition(self) -> bytes:
        """As Prometheus reads it; who asks while another one makes it waits for that."""
        with self._lock:
            if time.monotonic() - self._made_at >= KEPT_S:
                with self._database.reading() as session:
                    self._text = exposition(session)
                self._made_at = time.monotonic()
            return self._text


def exposition(session: Session) -> bytes:
    """Everything, now."""
    at = now(session)
    families = [family for collect in _COLLECTORS for family in collect(session, at)]
    registry = CollectorRegistry()
    registry.register(_Ready([_up(1), *families]))
    return generate_latest(registry)


def silence() -> bytes:
    """What there is to say while the database does not answer."""
    registry = CollectorRegistry()
    registry.register(_Ready([_up(0)]))
    return generate_latest(registry)


def _up(value: int) -> Metric:
    return _gauge("database_up", "Whether the database answered.", (), {(): value})


class _Ready(Collector):
    def __init__(self, families: Sequence[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def _submissions(session: Session, at: datetime) -> Families:
    keys = (Submission.mode, Submission.lane, Submission.line, Submission.state, Submission.verdict)
    rows = session.execute(select(*keys, func.count(), func.min(Submission.place_at)).group_by(*keys)).all()
    states: Counter[tuple[str, ...]] = Counter()
    verdicts: Counter[tuple[str, ...]] = Counter()
    depth: Counter[tuple[str, ...]] = Counter()
    oldest: dict[tuple[str, ...], float] = {}
    for mode, lane, line, state, verdict, count, place_at in rows:
        states[mode, lane, state] += count
        if state in FINAL and state is not State.cancelled:
            verdicts[mode, lane, verdict or "none"] += count
        if state in WAITING:
            depth[lane, line] += count
            oldest[lane, line] = max(oldest.get((lane, line), 0.0), (at - place_at).total_seconds())
    yield _gauge("submissions", "Submissions by where they are.", ("mode", "lane", "state"), states)
    yield _counter("verdicts", "Final submissions by what was found.", ("mode", "lane", "verdict"), verdicts)
    yield _gauge("queue_depth", "Submissions that wait.", ("lane", "line"), depth)
    yield _gauge("queue_oldest_seconds", "How long the oldest of them has waited.", ("lane", "line"), oldest)


def _attempts(session: Session, _at: datetime) -> Families:
    keys = (Attempt.lane, Attempt.work, Attempt.state)
    rows = session.execute(select(*keys, func.count()).group_by(*keys)).all()
    counts = {(lane, work, state): count for lane, work, state, count in rows}
    yield _counter(
        "attempts", "Attempts by how they ended; lost and failed ones are ours.", ("lane", "work", "end"), counts
    )
    family = GaugeHistogramMetricFamily(
        "ladder_phase_seconds",
        f"What phases took, of each lane's newest {NEWEST} finished attempts.",
        labels=("lane", "work", "phase"),
    )
    for lane in sorted({lane for lane, _, _ in counts}):
        for (work, phase), taken in sorted(_taken(session, lane).items()):
            family.add_metric((lane, work, phase), _buckets(taken), sum(taken))
    yield family


def _taken(session: Session, lane: Lane) -> dict[tuple[str, str], list[float]]:
    """Seconds of each phase, by what of the grading was done. Phases are timed by the node's own clock alone."""
    query = (
        select(Attempt.work, Attempt.phases, Attempt.dispatched_at, Attempt.claimed_at, Attempt.finished_at)
        .where(Attempt.lane == lane, Attempt.state == AttemptState.finished)
        .order_by(Attempt.id.desc())
        .limit(NEWEST)
    )
    found: dict[tuple[str, str], list[float]] = {}
    for work, phases, dispatched_at, claimed_at, finished_at in session.execute(query):
        spans = [(WHOLE, dispatched_at, finished_at), (SENT, dispatched_at, claimed_at)]
        for name, began, ended in spans:
            if ended is not None:
                found.setdefault((work, name), []).append(max(0.0, (ended - began).total_seconds()))
        for one, following in pairwise(sorted(phases, key=lambda item: float(item["at"]))):
            taken_s = float(following["at"]) - float(one["at"])
            found.setdefault((work, str(one["phase"])), []).append(taken_s)
    return found


def _buckets(taken: Sequence[float]) -> list[tuple[str, float]]:
    counts = [(f"{edge:g}", float(sum(seconds <= edge for seconds in taken))) for edge in BUCKETS_S]
    return [*counts, ("+Inf", float(len(taken)))]


def _nodes(session: Session, at: datetime) -> Families:
    found = overview.nodes_now(session, at)
    yield _gauge(
        "node_condition", "1 for what a node's condition is.", ("node", "condition"),
        {(node.row.name, node.condition): 1 for node in found},
    )  # fmt: skip
    yield _gauge("node_running", "Attempts a node works on.", ("node",), {(n.row.name,): n.running for n in found})
    yield _gauge("node_slots", "How many it can work on.", ("node",), {(n.row.name,): n.row.slots for n in found})
    seen = {(node.row.name,): (at - node.row.last_seen_at).total_seconds() for node in found if node.row.last_seen_at}
    yield _gauge("node_last_seen_seconds", "How long ago it was heard of.", ("node",), seen)
    skews = {(node.row.name,): node.row.clock_skew_s for node in found if node.row.clock_skew_s is not None}
    yield _gauge("node_clock_skew_seconds", "Its clock less ours.", ("node",), skews)
    yield from _health(found)
    heard = {
        (service.kind, service.instance): (at - service.last_seen_at).total_seconds()
        for service in overview.services(session)
    }
    yield _gauge("service_last_seen_seconds", "How long ago a process said so.", ("kind", "instance"), heard)


def _health(found: Sequence[overview.NodeNow]) -> Families:
    """What nodes say of themselves: noise floor, canary."""
    floors = {node.row.name: floor for node in found if (floor := node.calibration) is not None}
    yield _gauge(
        "node_noise_ratio", "Largest distance of its golden kernel's ratio from its median.", ("node",),
        {(name,): floor.ratio_spread for name, floor in floors.items()},
    )  # fmt: skip
    yield _gauge(
        "node_canary_timestamp_seconds", "When its golden kernel was last measured, by its clock.", ("node",),
        {(name,): floor.at for name, floor in floors.items()},
    )  # fmt: skip
    yield _gauge(
        "node_in_trouble", "1 while it takes nothing because of what it found wrong with itself.", ("node",),
        {(node.row.name,): int(bool(node.trouble)) for node in found},
    )  # fmt: skip


def _measuring(session: Session, _at: datetime) -> Families:
    """Holds, measurements that had to be taken again, confirmations."""
    reviews = select(Submission.lane, Submission.review, func.count()).group_by(Submission.lane, Submission.review)
    held = {(lane, review): count for lane, review, count in session.execute(reviews) if review is not Review.none}
    yield _gauge("reviews", "Submissions that were held, by what became of them.", ("lane", "review"), held)
    unsettled = (
        select(Submission.lane, func.count(Result.id))
        .join(Submission, Submission.id == Result.submission_id)
        .where(Result.settled.is_(False))
        .group_by(Submission.lane)
    )
    asked = {(lane,): count for lane, count in session.execute(unsettled)}
    yield _counter("remeasured", "Measurements that had to be taken again.", ("lane",), asked)
    confirmed = select(Submission.lane, func.sum(Submission.confirmations)).group_by(Submission.lane)
    counts = {(lane,): int(count or 0) for lane, count in session.execute(confirmed)}
    yield _counter("confirmations", "Submissions graded once more, and passed.", ("lane",), counts)


def _accounts(session: Session, at: datetime) -> Families:
    checks = [(course.slug, check) for course, check in reconciliation.last_checks(session) if check is not None]
    columns = {
        "received": "Receipts given, at the newest check.",
        "final": "Final submissions, at the newest check.",
        "in_flight": "Others, at the newest check.",
    }
    for name, says in columns.items():
        yield _gauge(
            f"reconciliation_{name}", says, ("course",), {(slug,): getattr(check, name) for slug, check in checks}
        )
    broken = {
        (slug,): 0 if reconciliation.is_balanced(check) else max(1, len(check.problems)) for slug, check in checks
    }
    yield _gauge("reconciliation_problems", "Rules that something breaks; 0 is well.", ("course",), broken)
    ages = {(slug,): (at - check.checked_at).total_seconds() for slug, check in checks}
    yield _gauge("reconciliation_check_age_seconds", "How long ago the check was.", ("course",), ages)
    open_now = Counter({(kind.value,): 0 for kind in AlertKind})
    open_now.update((alert.kind.value,) for alert in alerts.open_alerts(session))
    yield _gauge("alerts_open", "Open alerts.", ("kind",), open_now)


def _promises(session: Session, _at: datetime) -> Families:
    shares, counts = {}, {}
    for lane in Lane:
        for mode, past in calibrations(session, lane).items():
            if past.total:
                shares[lane, mode], counts[lane, mode] = past.share, past.total
    yield _gauge(
        "forecast_right_ratio", "Of the newest estimates, those whose interval held.", ("lane", "mode"), shares
    )
    yield _gauge("forecast_judged", "How many estimates that is of.", ("lane", "mode"), counts)
    rehearsal = overview.last_rehearsal(session)
    if rehearsal is not None:
        yield _gauge("rehearsal_passed", "Whether the newest chaos run held.", (), {(): int(rehearsal.passed)})
        yield _gauge("rehearsal_timestamp_seconds", "When it was.", (), {(): rehearsal.at.timestamp()})
    yield _gauge("build_info", "The version that runs.", ("version",), {(version(),): 1})


_COLLECTORS: tuple[Callable[[Session, datetime], Families], ...] = (
    _submissions, _attempts, _measuring, _nodes, _accounts, _promises,
)  # fmt: skip


def _gauge(name: str, says: str, labels: Sequence[str], values: Values) -> Metric:
    family = GaugeMetricFamily(f"ladder_{name}", says, labels=labels)
    for label_values, value in sorted(values.items()):
        family.add_metric(label_values, value)
    return family


def _counter(name: str, says: str, labels: Sequence[str], values: Values) -> Metric:
    family = CounterMetricFamily(f"ladder_{name}", says, labels=labels)
    for label_values, value in sorted(values.items()):
        family.add_metric(label_values, value)
    return family


def version() -> str:
    """Of this program."""
    try:
        return metadata.version("kernel-ladder")
    except metadata.PackageNotFoundError:
        return "a checkout"
