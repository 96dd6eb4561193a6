"""What is looked at every few seconds: whether alerts are over, and what nobody reports because nobody is there."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from autograder.contract import Lane, Work
from server import alerts
from server.config import Config
from server.grading.lease_clock import MAX_GAP, behind_s, forget_ticks
from server.grading.states import LIVE, WAITING
from server.models import Alert, AlertKind, Attempt, Course, Line, Node, State, Submission
from server.nodes import nodes

STUCK_AFTER = timedelta(minutes=5)
QUIET_AFTER = timedelta(minutes=10)
"""An alert about something that happens, rather than lasts, is over when it has not happened for so long."""
DISK_FULL = "disk full"
"""How the fact `trouble` of a node begins that has no room left."""


class Watch:
    """Raises and ends alerts; one belongs to one dispatcher, which calls `look` every few seconds."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._stuck: frozenset[str] = frozenset()

    def look(self, session: Session, *, now: datetime) -> None:
        """Bring the alerts about lasting things up to date, and end those about things that happen no more."""
        _hold(session, AlertKind.recorder_behind, _recorder_behind(session, now), now)
        _hold(session, AlertKind.queue_stuck, self._queue_stuck(session, now), now, about="lane:")
        _hold(session, AlertKind.queue_stuck, _not_granted(session, now), now, about="course:")
        _hold(session, AlertKind.node_rests, _nodes_that_rest(session, now), now)
        _hold(session, AlertKind.disk_full, _troubled(session, disk=True), now)
        _hold(session, AlertKind.node_unfit, _troubled(session, disk=False), now)
        _end_silence(session, now)
        _end_failures(session, now)
        for kind in (AlertKind.forged_message, AlertKind.broker_misused, AlertKind.clock_jumped):
            _end_quiet(session, kind, now)
        _end_quiet(session, AlertKind.queue_stuck, now, about="dispatcher:")
        forget_ticks(session, now=now, longest_s=self._config.attempt_deadline_s + self._config.lease_s)

    def _queue_stuck(self, session: Session, now: datetime) -> Mapping[str, str]:
        """What was stuck at the last look too: a regrade of something old is not stuck the moment it is asked for."""
        found = _stuck(session, now)
        before, self._stuck = self._stuck, frozenset(found)
        open_now = alerts.open_subjects(session, AlertKind.queue_stuck)
        return {subject: message for subject, message in found.items() if subject in before or subject in open_now}


def _hold(session: Session, kind: AlertKind, lasting: Mapping[str, str], now: datetime, about: str = "") -> None:
    """Let exactly these alerts of a kind be open, as far as their subjects begin with `about`."""
    known = {subject for subject in alerts.open_subjects(session, kind) if subject.startswith(about)}
    for subject in sorted(lasting.keys() - known):
        alerts.raise_alert(session, kind, subject, lasting[subject], now)
    for subject in sorted(known - lasting.keys()):
        alerts.resolve(session, kind, subject, now)


def _recorder_behind(session: Session, now: datetime) -> Mapping[str, str]:
    behind = behind_s(session, now=now)
    living = session.scalar(select(Attempt.id).where(Attempt.state.in_(LIVE)).limit(1))
    if behind <= MAX_GAP.total_seconds() or living is None:
        return {}
    return {
        "recorder": f"Nothing that was put on the results queue in the last {behind:.0f} s has been recorded: check "
        f"that a recorder runs and that the broker answers. Until then no lease expires and nothing is lost."
    }


def _stuck(session: Session, now: datetime) -> dict[str, str]:
    query = (
        select(Submission.lane, Submission.work, func.count(), func.min(Submission.place_at))
        # What is to be confirmed has its grade, and waits until nobody else does.
        .where(Submission.state.in_(WAITING), Submission.line.not_in((Line.confirm, Line.profile)))
        .group_by(Submission.lane, Submission.work)
    )
    found = {}
    for lane, work, count, oldest in session.execute(query).all():
        why = _why_stuck(session, lane, work, now) if now - oldest > STUCK_AFTER else ""
        if why:
            said = f"{count} submissions wait on lane {lane} for {work}, the oldest since {oldest}: {why}"
            found[f"lane:{lane}:{work}"] = said
    return found


def _why_stuck(session: Session, lane: Lane, work: Work, now: datetime) -> str:
    working = [node for node in nodes.working_nodes(session, now=now) if not nodes.in_quarantine(node)]
    if not any({lane} <= set(node.lanes) and {work} <= set(node.works) for node in working):
        return "no node in service does that."
    moves = or_(Attempt.state.in_(LIVE), Attempt.dispatched_at >= now - STUCK_AFTER)
    if session.scalar(select(Attempt.id).where(Attempt.lane == lane, moves).limit(1)) is not None:
        return ""
    return "nodes are in service, but nothing was claimed."


def _not_granted(session: Session, now: datetime) -> Mapping[str, str]:
    """Courses whose work waits although its lane is served: staff granted them none of the nodes that do it."""
    serving = [node for node in nodes.working_nodes(session, now=now) if not nodes.in_quarantine(node)]
    if all(node.granted_courses is None for node in serving):
        return {}
    query = (
        select(Course.id, Course.slug, Submission.lane, func.count())
        .join(Course, Course.id == Submission.course_id)
        .where(Submission.state.in_(WAITING), Submission.place_at < now - STUCK_AFTER)
        .group_by(Course.id, Course.slug, Submission.lane)
    )
    found = {}
    for course_id, slug, lane, count in session.execute(query).all():
        on_lane = [node for node in serving if lane in node.lanes]
        if on_lane and not any(nodes.serves(node, course_id) for node in on_lane):
            said = f"{count} submissions wait on lane {lane}, but none of its nodes may grade this course: "
            said += "`ladder admin grant-node`."
            found[f"course:{slug}"] = said
    return found


def _nodes_that_rest(session: Session, now: datetime) -> Mapping[str, str]:
    reasons = {node.name: nodes.why_resting(session, node, now) for node in nodes.working_nodes(session, now=now)}
    return {
        f"node:{name}": f"Node {name} rests up to {nodes.REST_S:.0f} s: {reason}"
        for name, reason in reasons.items()
        if reason
    }


def _troubled(session: Session, *, disk: bool) -> Mapping[str, str]:
    """Nodes that say why they take nothing: a full disk, or something that they found out about themselves."""
    in_use = session.scalars(select(Node).where(Node.disabled_at.is_(None))).all()
    troubles = {node.name: str(node.facts.get("trouble", "")).rstrip(".") for node in in_use}
    return {
        f"node:{name}": f"Node {name} takes nothing: {trouble}."
        for name, trouble in troubles.items()
        if trouble and trouble.startswith(DISK_FULL) == disk
    }


def _end_silence(session: Session, now: datetime) -> None:
    silent = alerts.open_subjects(session, AlertKind.node_silent)
    if not silent:
        return
    for node in nodes.all_nodes(session):
        over = node.disabled_at is not None or nodes.is_alive(node, now)
        if over and f"node:{node.name}" in silent:
            alerts.resolve(session, AlertKind.node_silent, f"node:{node.name}", now)


def _end_failures(session: Session, now: datetime) -> None:
    """A submission that failed and has had a result since needs nobody any more."""
    query = select(Alert).where(Alert.kind == AlertKind.submission_failed, Alert.resolved_at.is_(None))
    for alert in session.scalars(query.order_by(Alert.id)).all():
        graded_since = select(Submission.id).where(
            Submission.public_id == alert.subject.removeprefix("submission:"),
            Submission.state == State.done,
            Submission.finished_at > alert.last_at,
        )
        if session.scalar(graded_since) is not None:
            alerts.resolve(session, AlertKind.submission_failed, alert.subject, now)


def _end_quiet(session: Session, kind: AlertKind, now: datetime, about: str = "") -> None:
    quiet = (
        Alert.kind == kind,
        Alert.subject.startswith(about),
        Alert.resolved_at.is_(None),
        Alert.last_at < now - QUIET_AFTER,
    )
    for subject in session.scalars(select(Alert.subject).where(*quiet)).all():
        alerts.resolve(session, kind, subject, now)
