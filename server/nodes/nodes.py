"""Who grades: nodes, their keys, what staff let them grade, and what they report about themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from autograder import codec, languages
from autograder.contract import Lane, Language, NodeReport
from autograder.errors import ContractError
from broker.identity import Credentials, ForgedError, Identity
from server.errors import ConflictError, InvalidInputError, NotFoundError, UnauthenticatedError
from server.models import Attempt, AttemptState, Course, Node, NodeStamps
from server.nodes import stamps
from server.nodes.stamps import Freshness

SERVED_FOR = timedelta(days=1)
"""A node that was heard of so lately still counts as one that serves its lanes."""
SILENCE_S = 15.0
"""A node that has not reported for so long gets nothing; nodes report every 3 s."""
REST_AFTER = 3
"""So many attempts in a row without a result make a node rest."""
REST_S = 60.0
"""How long it rests, before it is tried again."""
MAX_SLOTS = 64
MAX_FACTS = 64
MAX_FACT_CHARS = 500
SAME_SUSPICION = timedelta(seconds=10)
MAX_SKEW_S = 1e9
"""A clock further off than thirty years is as wrong as any."""

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,59}")
_LIVE = (AttemptState.dispatched, AttemptState.running)
_WITHOUT_RESULT = (AttemptState.failed, AttemptState.lost)


@dataclass(frozen=True)
class Grant:
    """What staff let a node grade.

    Attributes:
        lanes: one at least; what a node reports beyond them counts for nothing.
        courses: their ids, `None` for every course.
    """

    lanes: frozenset[Lane]
    courses: frozenset[int] | None = None

    @classmethod
    def of(cls, lanes: Iterable[Any], courses: Iterable[Any] | None) -> Grant:
        """As a row holds it."""
        return cls(frozenset(Lane(lane) for lane in lanes), frozenset(courses) if courses is not None else None)

    @property
    def lane_names(self) -> list[str]:
        """As a row holds them."""
        return sorted(lane.value for lane in self.lanes)

    @property
    def course_ids(self) -> list[int] | None:
        """As a row holds them."""
        return sorted(self.courses) if self.courses is not None else None


def make_grant(session: Session, lanes: Iterable[Lane], courses: Iterable[str] | None) -> Grant:
    """A grant of these lanes for the courses of these slugs.

    Raises:
        InvalidInputError: no lane, no course, or a course that there is not.
    """
    named = frozenset(lanes)
    if not named:
        raise InvalidInputError("A node needs at least one lane.", field="lanes")
    if courses is None:
        return Grant(named)
    slugs = set(courses)
    found = {row.slug: row.id for row in session.execute(select(Course.slug, Course.id).where(Course.slug.in_(slugs)))}
    if missing := sorted(slugs - found.keys()):
        raise InvalidInputError(f"There is no course {missing[0]}.", field="courses")
    if not found:
        raise InvalidInputError("Name at least one course, or none for every course.", field="courses")
    return Grant(named, frozenset(found.values()))


def create_node(session: Session, *, name: str, identity: Identity, grant: Grant, now: datetime) -> Node:
    """Register a node.

    Raises:
        InvalidInputError: the name cannot be part of a queue's name, or the identity is none.
        ConflictError: a node of this name exists.
    """
    check_name(name)
    if session.scalar(select(Node.id).where(Node.name == name)):
        raise ConflictError(f"A node {name} exists already.")
    node = Node(name=name, granted_lanes=[], lanes=[], facts={}, created_at=now)
    set_identity(node, identity)
    set_grant(node, grant)
    session.add(node)
    session.flush()  # Its stamps and the caller need its id.
    session.add(NodeStamps(node_id=node.id, sessions=[]))
    return node


def check_name(name: str) -> None:
    """Raise `InvalidInputError` if this cannot be a node's name."""
    if not _NAME.fullmatch(name):
        raise InvalidInputError(
            "A node's name has at most 60 characters: lower-case letters, digits and hyphens.", field="name"
        )


def set_identity(node: Node, identity: Identity) -> None:
    """Let another key be the node's; what it signed with the one before is not accepted any more.

    Raises:
        InvalidInputError: it can be nobody's.
    """
    try:
        identity.check()
    except ContractError as error:
        raise InvalidInputError(f"This is not a valid node identity: {error}.") from None
    node.public_key, node.broker_hash = identity.public_key, identity.broker_hash


def set_grant(node: Node, grant: Grant) -> None:
    """Let it grade this and no more, from now on; what it works on may finish."""
    node.granted_lanes, node.granted_courses = grant.lane_names, grant.course_ids
    node.lanes = [lane for lane in node.lanes if lane in node.granted_lanes]


def grant_of(node: Node) -> Grant:
    """What staff let it grade."""
    return Grant.of(node.granted_lanes, node.granted_courses)


def serves(node: Node, course_id: int) -> bool:
    """Whether it gets the work of this course."""
    return node.granted_courses is None or course_id in node.granted_courses


def revoke(session: Session, *, name: str, now: datetime) -> Node:
    """Take a node's key from it and put it out of service: nothing that it signs is accepted any more."""
    node = set_disabled(session, name=name, disabled=True, now=now)
    node.public_key = node.broker_hash = None
    return node


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


def node_of_request(
    session: Session, credentials: Credentials, *, method: str, target: str, content: bytes, now: datetime
) -> Node:
    """Which node signed this request; it may be made once.

    Args:
        target: path and query, as they were sent.

    Raises:
        UnauthenticatedError: none, or one out of service which has nothing left to finish, or it was made before, or is
            old.
    """
    node = session.scalar(select(Node).where(Node.name == credentials.node.replace("\0", "")))
    if node is None or node.public_key is None:
        raise UnauthenticatedError("There is no such node, or its key was revoked: it has to join again.")
    try:
        credentials.check(node.public_key, method, target, content)
    except ForgedError:
        raise UnauthenticatedError("This request is not signed by the node's key.") from None
    freshness = stamps.take(session, node.id, credentials.stamp, now=now)
    if freshness is not Freshness.fresh:
        raise UnauthenticatedError(f"This request is {freshness}; is the node's clock right?")
    if node.disabled_at is not None and not _busy(session, node):
        raise UnauthenticatedError("This node is out of service.")
    return node


def apply_report(node: Node, report: NodeReport, *, now: datetime) -> None:
    """Note what a node says about itself. When it was heard counts by our clock, not by its."""
    node.lanes = sorted({lane.value for lane in report.lanes}.intersection(node.granted_lanes))
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


def lanes_in_service(session: Session, *, now: datetime, course_id: int | None = None) -> frozenset[Lane]:
    """The lanes on which something could be graded now; of this course, where one is given."""
    working = (node for node in working_nodes(session, now=now) if not in_quarantine(node))
    served = (node for node in working if course_id is None or serves(node, course_id))
    return frozenset(Lane(lane) for node in served for lane in node.lanes)


def served_lanes(session: Session, *, now: datetime, course_id: int | None = None) -> frozenset[Lane]:
    """The lanes that something here serves, if not at this moment: of nodes that were heard of within a day.

    A node that is made anew or looked after comes back; what waits for a lane that no node has waits for ever.
    """
    return frozenset(Lane(lane) for node in _heard(session, now, course_id) for lane in node.lanes)


def served_languages(session: Session, lane: Lane, *, now: datetime, course_id: int) -> frozenset[Language]:
    """The languages that some node of those serves on a lane; of some not every node has the toolchain."""
    served = (node for node in _heard(session, now, course_id) if lane.value in node.lanes)
    return frozenset(language for node in served for language in Language if language not in lacks(node))


def lacks(node: Node) -> frozenset[str]:
    """Ids of languages of which it has no toolchain."""
    return languages.lacking(node.facts or {})


def _heard(session: Session, now: datetime, course_id: int | None) -> list[Node]:
    heard = session.scalars(select(Node).where(Node.disabled_at.is_(None), Node.last_seen_at > now - SERVED_FOR))
    return [node for node in heard if course_id is None or serves(node, course_id)]
