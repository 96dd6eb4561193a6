"""Who grades: nodes, what they report about themselves, and the bundles they fetch."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from autograder.contract import Lane, NodeReport
from broker.envelope import key_of
from server.errors import ConflictError, InvalidInputError, NotFoundError, UnauthenticatedError
from server.models import Attempt, AttemptState, Bundle, Node

SILENCE_S = 15.0
"""A node that has not reported for so long gets nothing; nodes report every 3 s."""
REST_AFTER = 3
"""So many attempts in a row without a result make a node rest."""
REST_S = 60.0
"""How long it rests, before it is tried again."""
MAX_SLOTS = 64
MAX_FACTS = 64
MAX_FACT_CHARS = 500

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,59}")
_LIVE = (AttemptState.dispatched, AttemptState.running)
_WITHOUT_RESULT = (AttemptState.failed, AttemptState.lost)


def create_node(session: Session, *, name: str, now: datetime) -> tuple[Node, str]:
    """Register a node; its token is shown here and never again.

    Raises:
        InvalidInputError: the name cannot be part of a queue's name.
        ConflictError: a node of this name exists.
    """
    if not _NAME.fullmatch(name):
        raise InvalidInputError("A node's name has lower-case letters, digits and hyphens, at most 60.", field="name")
    if session.scalar(select(Node.id).where(Node.name == name)):
        raise ConflictError(f"There is a node {name} already.")
    token = _new_token()
    node = Node(name=name, key=key_of(token), lanes=[], facts={}, created_at=now)
    session.add(node)
    session.flush()  # The caller may need its id.
    return node, token


def rotate_token(session: Session, *, name: str) -> tuple[Node, str]:
    """Give a node a new token; what it signed with the old one is not accepted any more."""
    node = find_node(session, name=name)
    token = _new_token()
    node.key = key_of(token)
    return node, token


def _new_token() -> str:
    return f"kn_{secrets.token_urlsafe(32)}"


def find_node(session: Session, *, name: str) -> Node:
    """The node of this name."""
    node = session.scalar(select(Node).where(Node.name == name))
    if node is None:
        raise NotFoundError(f"There is no node {name}.")
    return node


def set_disabled(session: Session, *, name: str, disabled: bool, now: datetime) -> Node:
    """Take a node out of service, or put it back; what it works on may finish."""
    node = find_node(session, name=name)
    node.disabled_at = (node.disabled_at or now) if disabled else None
    return node


def node_of_token(session: Session, token: str) -> Node:
    """Whose token this is.

    Raises:
        UnauthenticatedError: nobody's, or that of a node out of service.
    """
    node = session.scalar(select(Node).where(Node.key == key_of(token), Node.disabled_at.is_(None)))
    if node is None:
        raise UnauthenticatedError("This token is no node's.")
    return node


def apply_report(node: Node, report: NodeReport, *, now: datetime) -> None:
    """Note what a node says about itself. When it was heard counts by our clock, not by its."""
    node.lanes = sorted({lane.value for lane in report.lanes})
    node.slots = max(0, min(report.slots, MAX_SLOTS))
    node.draining = report.draining
    facts = sorted(report.facts.items())[:MAX_FACTS]
    node.facts = {name[:MAX_FACT_CHARS]: fact[:MAX_FACT_CHARS] for name, fact in facts}
    node.last_seen_at = now


def fell_silent(session: Session, node_id: int) -> None:
    """It let an attempt expire: it gets no other before it is heard of again, so that it cannot use up all three."""
    session.execute(update(Node).where(Node.id == node_id).values(last_seen_at=None))


def is_alive(node: Node, now: datetime) -> bool:
    """It reported not long ago."""
    return node.last_seen_at is not None and now - node.last_seen_at <= timedelta(seconds=SILENCE_S)


def takes_work(session: Session, node: Node, now: datetime) -> bool:
    """It is alive, in service and not draining, and does not rest (`why_resting`)."""
    in_service = node.disabled_at is None and not node.draining
    return is_alive(node, now) and in_service and not why_resting(session, node, now)


def why_resting(session: Session, node: Node, now: datetime) -> str:
    """Why the node gets nothing for now although it says it is well; empty if it does not rest.

    A node on which everything fails would use up the attempts of the whole queue, and quickly. So it rests for
    `REST_S` after its last `REST_AFTER` attempts that ended were all `failed` or `lost`, counted from the newest end.
    They have to be of two submissions at least: one source on which every node fails is no node's illness, and must
    not stop one either.
    """
    ended = session.execute(
        select(Attempt.state, Attempt.submission_id, Attempt.finished_at, Attempt.reason)
        .where(Attempt.node_id == node.id, Attempt.finished_at.is_not(None))
        .order_by(Attempt.id.desc())
        .limit(REST_AFTER)
    ).all()
    if len(ended) < REST_AFTER or len({row.submission_id for row in ended}) < 2:  # noqa: PLR2004  # "two at least"
        return ""
    newest = max(ended, key=lambda row: row.finished_at)
    if any(row.state not in _WITHOUT_RESULT for row in ended) or now >= newest.finished_at + timedelta(seconds=REST_S):
        return ""
    return f"its last {REST_AFTER} attempts all failed or were lost, the newest because: {newest.reason or 'unknown'}"


def working_nodes(session: Session, *, now: datetime) -> Sequence[Node]:
    """The nodes that take work, by name; one that rests for a minute is among them: its lanes stay in service."""
    heard = now - timedelta(seconds=SILENCE_S)
    query = select(Node).where(Node.last_seen_at >= heard, Node.disabled_at.is_(None), Node.draining.is_(False))
    return session.scalars(query.order_by(Node.name)).all()


def free_slots(session: Session, node: Node) -> int:
    """How many more attempts it could take now. Call it with the node's row locked to act on the answer."""
    busy = select(func.count()).select_from(Attempt).where(Attempt.node_id == node.id, Attempt.state.in_(_LIVE))
    return node.slots - session.scalars(busy).one()


def all_nodes(session: Session) -> Sequence[Node]:
    """Every node, by name."""
    return session.scalars(select(Node).order_by(Node.name)).all()


def lanes_in_service(session: Session, *, now: datetime) -> frozenset[Lane]:
    """The lanes on which something could be graded now."""
    return frozenset(Lane(lane) for node in working_nodes(session, now=now) for lane in node.lanes)


def bundle_bytes(session: Session, bundle_hash: str) -> bytes:
    """An assignment's files as one tar.

    Raises:
        NotFoundError: no bundle has this hash.
    """
    data = session.scalar(select(Bundle.data).where(Bundle.hash == bundle_hash))
    if data is None:
        raise NotFoundError("There is no bundle with this hash.")
    return data
