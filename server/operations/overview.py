"""What staff see of an installation at a glance, and what they may do about it: alerts, nodes, services, rehearsals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import partial

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from autograder import codec
from autograder.contract import Calibration
from server import alerts, audit
from server.config import Config
from server.db import after_commit
from server.errors import NotFoundError
from server.grading.states import LIVE
from server.models import Alert, Attempt, Course, Node, Rehearsal, Service, Submission, User
from server.nodes import access, nodes
from server.operations import fleet
from server.reconciliation.checks import Courses


@dataclass(frozen=True)
class NodeNow:
    """One node and what it is doing.

    Attributes:
        running: attempts that it works on.
        condition: in one word: `works`, `silent`, `rests`, `drains`, `quarantine`, `disabled`.
        why: the reason of a rest, or what it found wrong with itself.
    """

    row: Node
    running: int
    condition: str
    why: str

    @property
    def calibration(self) -> Calibration | None:
        """Its noise floor, where it has a golden kernel."""
        return codec.from_json(Calibration, self.row.calibration) if self.row.calibration else None

    @property
    def trouble(self) -> str:
        """What it says that it found wrong with itself."""
        return str(self.row.facts.get("trouble", ""))


class NodeAction(StrEnum):
    """What staff do to a node; what it works on may finish, unless its key is revoked."""

    drain = "drain"
    undrain = "undrain"
    quarantine = "quarantine"
    release = "release"
    disable = "disable"
    revoke = "revoke"
    enable = "enable"


_ACTIONS: Mapping[NodeAction, Callable[[Session, str, datetime], Node]] = {
    NodeAction.drain: lambda session, name, now: nodes.drain(session, name=name, now=now),
    NodeAction.undrain: lambda session, name, _now: nodes.undrain(session, name=name),
    NodeAction.quarantine: lambda session, name, _now: nodes.set_quarantine(session, name=name, quarantine=True),
    NodeAction.release: lambda session, name, _now: nodes.set_quarantine(session, name=name, quarantine=False),
    NodeAction.disable: lambda session, name, now: nodes.set_disabled(session, name=name, disabled=True, now=now),
    NodeAction.enable: lambda session, name, now: nodes.set_disabled(session, name=name, disabled=False, now=now),
}


def act_on_node(
    session: Session, name: str, action: NodeAction, *, actor: User | None, now: datetime, config: Config
) -> Node:
    """Do it, and leave an entry in the trail.

    Raises:
        NotFoundError: there is no such node.
    """
    if action is NodeAction.revoke:
        return fleet.revoke(session, config, name=name, actor=actor, now=now)
    node = _ACTIONS[action](session, name, now)
    if action is NodeAction.enable:
        # A sync of the broker's users while it was disabled has removed its own.
        after_commit(session, partial(access.grant, config.broker_url, [(node.name, node.broker_hash)]))
    audit.record(session, action=f"node.{action}", subject=f"node:{node.name}", actor=actor)
    return node


def nodes_now(session: Session, now: datetime) -> list[NodeNow]:
    """Every node, by name."""
    live = select(Attempt.node_id, func.count()).where(Attempt.state.in_(LIVE)).group_by(Attempt.node_id)
    running = dict(session.execute(live).all())
    return [_node_now(session, node, running.get(node.id, 0), now) for node in nodes.all_nodes(session)]


def _node_now(session: Session, node: Node, running: int, now: datetime) -> NodeNow:
    why = nodes.why_resting(session, node, now)
    conditions = (
        ("disabled", node.disabled_at is not None),
        ("silent", not nodes.is_alive(node, now)),
        ("drains", node.draining or node.drained_at is not None),
        ("rests", bool(why)),
        ("quarantine", nodes.in_quarantine(node)),
    )
    condition = next((word for word, holds in conditions if holds), "works")
    return NodeNow(node, running, condition, why or str(node.facts.get("trouble", "")))


def services(session: Session) -> Sequence[Service]:
    """The processes of ours that say they are alive, by kind."""
    return session.scalars(select(Service).order_by(Service.kind, Service.started_at)).all()


def alerts_of(session: Session, courses: Courses) -> list[Alert]:
    """Open alerts, the newest first; for the staff of some courses only those about these and their submissions."""
    found = list(alerts.open_alerts(session))
    if courses is None:
        return found
    theirs = _subjects_of(session, found, courses)
    return [alert for alert in found if alert.subject in theirs]


def resolve_alert(session: Session, alert_id: int, courses: Courses, *, actor: User | None, now: datetime) -> Alert:
    """End an open alert by hand, and leave an entry in the trail.

    Raises:
        NotFoundError: it is not open, or about something that these courses' staff do not see.
    """
    alert = next((item for item in alerts_of(session, courses) if item.id == alert_id), None)
    if alert is None:
        raise NotFoundError("There is no such open alert.")
    alerts.resolve(session, alert.kind, alert.subject, now, by=actor)
    detail = {"alert": alert.id, "kind": alert.kind.value, "count": alert.count}
    audit.record(session, action="alert.resolved", subject=alert.subject, actor=actor, detail=detail)
    return alert


def last_rehearsal(session: Session) -> Rehearsal | None:
    """The newest chaos run, by when it was made."""
    return session.scalar(select(Rehearsal).order_by(Rehearsal.at.desc(), Rehearsal.id.desc()).limit(1))


def _subjects_of(session: Session, found: Sequence[Alert], courses: Courses) -> set[str]:
    receipts = [alert.subject.removeprefix("submission:") for alert in found if alert.subject.startswith("submission:")]
    owned = select(Submission.public_id, Submission.course_id).where(Submission.public_id.in_(receipts))
    slugs = select(Course.slug).where(Course.id.in_(courses or ()))
    return {
        *(f"submission:{receipt}" for receipt, course_id in session.execute(owned) if course_id in (courses or ())),
        *(f"course:{slug}" for slug in session.scalars(slugs)),
    }
