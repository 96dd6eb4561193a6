"""Who grades: nodes, what they report about themselves, and the bundles they fetch."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from autograder import codec
from autograder.contract import Lane, NodeReport
from broker.envelope import key_of
from server.errors import ConflictError, InvalidInputError, NotFoundError, UnauthenticatedError
from server.ids import NODE_PREFIX
from server.models import Attempt, AttemptState, Bundle, Node

SILENCE_S = 15.0
"""A node that has not reported for so long gets nothing; nodes report every 3 s."""
REST_AFTER = 3
"""So many attempts in a row without a result make a node rest."""
REST_S = 60.0
"""How long it rests, before it is tried again."""
MIN_TOKEN = 32
MAX_SLOTS = 64
MAX_FACTS = 64
MAX_FACT_CHARS = 500
SAME_SUSPICION = timedelta(seconds=10)
MAX_SKEW_S = 1e9
"""A clock further off than thirty years is as wrong as any."""

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,59}")
_LIVE = (AttemptState.dispatched, AttemptState.running)
_WITHOUT_RESULT = (AttemptState.failed, AttemptState.lost)


def create_node(session: Session, *, name: str, now: datetime) -> tuple[Node, str]:
    """Register a node; its token is shown here and never again.

    Raises:
        InvalidInputError: the name cannot be part of a queue's name.
        ConflictError: a node of this name exists.
    """
    check_name(name)
    if session.scalar(select(Node.id).where(Node.name == name)):
        raise ConflictError(f"There is a node {name} already.")
    token = _new_token()
    node = Node(name=name, key=key_of(token), lanes=[], facts={}, created_at=now)
    session.add(node)
    session.flush()  # The caller may need its id.
    return node, token


def check_name(name: str) -> None:
    """Raise `InvalidInputError` if this cannot be a node's name."""
    if not _NAME.fullmatch(name):
        raise InvalidInputError("A node's name has lower-case letters, digits and hyphens, at most 60.", field="name")


def adopt_token(session: Session, *, name: str, token: str, now: datetime) -> Node:
    """The node of this name with this token, whether there was one before or not: for a token that was made elsewhere.

    Raises:
        InvalidInputError: the name cannot be one, or the token is short enough to be guessed.
    """
    if len(token) < MIN_TOKEN or not token.startswith(NODE_PREFIX):
        raise InvalidInputError(f"A node's token begins with {NODE_PREFIX} and has {MIN_TOKEN} characters at least.")
    node = session.scalar(select(Node).where(Node.name == name))
    if node is None:
        node, _ = create_node(session, name=name, now=now)
    node.key = key_of(token)
    return node


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


def drain(session: Session, *, name: str, now: datetime) -> Node:
    """Give a node nothing new, for as long as staff say so; what it works on may finish."""
    node = find_node(session, name=name)
    node.drained_at = node.drained_at or now
    return node


def undrain(session: Session, *, name: str) -> Node:
    """Let a drained node work again."""
    node = find_node(session, name=name)
    node.drained_at = None
    return node


def set_quarantine(session: Session, *, name: str, quarantine: bool) -> Node:
    """Set a node aside for submissions under which another one went silent, or give it back to everybody."""
    node = find_node(session, name=name)
    node.quarantine = quarantine
    return node


def in_quarantine(node: Node) -> bool:
    """It gets suspect submissions and nothing else."""
    return node.quarantine


def node_of_token(session: Session, token: str) -> Node:
    """Whose token this is.

    Raises:
        UnauthenticatedError: nobody's, or that of a node out of service which has nothing left to finish.
    """
    node = session.scalar(select(Node).where(Node.key == key_of(token)))
    if node is None or (node.disabled_at is not None and not _busy(session, node)):
        raise UnauthenticatedError("This token is no node's.")
    return node


def apply_report(node: Node, report: NodeReport, *, now: datetime) -> None:
    """Note what a node says about itself. When it was heard counts by our clock, not by its."""
    node.lanes = sorted({lane.value for lane in report.lanes})
    node.works = sorted({work.value for work in report.works})
    node.slots = max(0, min(report.slots, MAX_SLOTS))
    node.draining = report.draining
    facts = sorted(report.facts.items())[:MAX_FACTS]
    node.facts = {_text(name): _text(fact) for name, fact in facts}
    node.clock_skew_s = max(-MAX_SKEW_S, min(report.at - now.timestamp(), MAX_SKEW_S))
    node.last_seen_at = now
    if report.calibration is not None:
        node.calibration = codec.to_json(report.calibration)
    _note_suspicion(node, report)


def _note_suspicion(node: Node, report: NodeReport) -> None:
    """When its measurements were not to be trusted, on our clock; it says the same until the next such time."""
    if report.suspect_since is None or report.suspect_until is None:
        return
    skew = timedelta(seconds=node.clock_skew_s or 0.0)
    try:
        since, until = (datetime.fromtimestamp(at, UTC) - skew for at in (report.suspect_since, report.suspect_until))
    except (ValueError, OverflowError, OSError):
        return
    # The skew differs by a little from report to report: what ends close to the last one is the same.
    known = node.suspect_until_at
    if known is None or until > known + SAME_SUSPICION:
        node.suspect_since_at, node.suspect_until_at, node.suspect_handled = since, until, False


def _text(text: str) -> str:
    # PostgreSQL reads no NUL back out of JSON.
    return text.replace("\0", "")[:MAX_FACT_CHARS]


def fell_silent(session: Session, node_id: int) -> None:
    """It let an attempt expire: it gets no other before it is heard of again, so that it cannot use up all three."""
    session.execute(update(Node).where(Node.id == node_id).values(last_seen_at=None))


def is_alive(node: Node, now: datetime) -> bool:
    """It reported not long ago; a report from a future that the clock was set back from says nothing."""
    return node.last_seen_at is not None and abs(now - node.last_seen_at) <= timedelta(seconds=SILENCE_S)


def takes_work(session: Session, node: Node, now: datetime) -> bool:
    """It is alive, in service and not draining, and does not rest (`why_resting`)."""
    in_service = node.disabled_at is None and node.drained_at is None and not node.draining
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
    rested = abs(now - newest.finished_at) >= timedelta(seconds=REST_S)
    if rested or any(row.state not in _WITHOUT_RESULT for row in ended):
        return ""
    return f"its last {REST_AFTER} attempts all failed or were lost, the newest because: {newest.reason or 'unknown'}"


def working_nodes(session: Session, *, now: datetime) -> Sequence[Node]:
    """The nodes that take work, by name; one that rests for a minute is among them: its lanes stay in service."""
    silence = timedelta(seconds=SILENCE_S)
    heard = Node.last_seen_at.between(now - silence, now + silence)
    in_service = (Node.disabled_at.is_(None), Node.drained_at.is_(None), Node.draining.is_(False))
    return session.scalars(select(Node).where(heard, *in_service).order_by(Node.name)).all()


def free_slots(session: Session, node: Node) -> int:
    """How many more attempts it could take now. Call it with the node's row locked to act on the answer."""
    return node.slots - _busy(session, node)


def _busy(session: Session, node: Node) -> int:
    """How many attempts it works on."""
    busy = select(func.count()).select_from(Attempt).where(Attempt.node_id == node.id, Attempt.state.in_(_LIVE))
    return session.scalars(busy).one()


def all_nodes(session: Session) -> Sequence[Node]:
    """Every node, by name."""
    return session.scalars(select(Node).order_by(Node.name)).all()


def lanes_in_service(session: Session, *, now: datetime) -> frozenset[Lane]:
    """The lanes on which something could be graded now."""
    working = (node for node in working_nodes(session, now=now) if not in_quarantine(node))
    return frozenset(Lane(lane) for node in working for lane in node.lanes)


def bundle_bytes(session: Session, bundle_hash: str) -> bytes:
    """An assignment's files as one tar.

    Raises:
        NotFoundError: no bundle has this hash.
    """
    data = session.scalar(select(Bundle.data).where(Bundle.hash == bundle_hash))
    if data is None:
        raise NotFoundError("There is no bundle with this hash.")
    return data
