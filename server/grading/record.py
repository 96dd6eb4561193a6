"""Applying what a node sent: verified, in order, once.

Nothing here trusts a message further than its signature goes: a node may say that it is alive and what came of the
attempts that it was given, and of those only while they live. Everything else is ignored and logged.
"""

from __future__ import annotations

import logging
import math
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from sqlalchemy import Row, select
from sqlalchemy.exc import DataError
from sqlalchemy.orm import Session

from autograder import codec
from autograder.contract import (
    AttemptEvent,
    AttemptFailure,
    AttemptResult,
    CaseFinished,
    Claim,
    Envelope,
    GradeResult,
    NodeReport,
    PhaseStarted,
    Verdict,
)
from autograder.errors import ContractError
from broker.envelope import Message, unseal
from broker.identity import ForgedError
from server import alerts
from server.config import Config
from server.grading.lock import fresh_attempt, lock_submission
from server.grading.regrade_attempts import item_of, pool_of_item
from server.grading.results import write_result
from server.grading.sample_sets import keep_samples
from server.grading.states import LIVE, attempt_moves
from server.grading.sweep import end_without_result
from server.models import AlertKind, Attempt, AttemptState, Node, Submission
from server.nodes import nodes, stamps
from server.nodes.stamps import Freshness

logger = logging.getLogger(__name__)

MAX_LIVE_CASES = 1000
MAX_SEQUENCE = 2**31 - 1
"""The largest that the columns of sequence and fence hold."""
MAX_NAME_CHARS = 60
SAY_AGAIN_S = 60.0
"""What is ignored for the same reason is logged once in so long."""
MAX_SUBJECTS = 1000

AttemptMessage = Claim | AttemptEvent | AttemptResult | AttemptFailure


class Outcome(StrEnum):
    """What became of a message."""

    applied = "applied"
    refused = "refused"
    """Unknown sender, forged, of another version, or not of the shape its kind has."""
    foreign = "foreign"
    """About an attempt that this node was not given."""
    late = "late"
    """About an attempt that has ended, or older than what is known of it."""
    repeated = "repeated"
    """It was taken before: the broker gave it again, or somebody plays it again."""


def record(session: Session, envelope: Envelope, *, now: datetime, config: Config) -> Outcome:
    """Apply one message; a repeated, late or foreign one changes nothing."""
    node = session.scalar(select(Node).where(Node.name == envelope.node[:MAX_NAME_CHARS].replace("\0", "")))
    if node is None:
        return _forged(session, envelope, "unknown", "no node has this name", now)
    message = _opened(session, envelope, node, now)
    if isinstance(message, Outcome):
        return message
    if isinstance(message, NodeReport):
        nodes.apply_report(node, message, now=now)
        return Outcome.applied
    return _record_attempt(session, envelope, message, node.id, now=now, config=config)


def _opened(session: Session, envelope: Envelope, node: Node, now: datetime) -> Message | Outcome:
    """The message inside, or why it counts for nothing."""
    try:
        message = unseal(envelope, _key_of(node))
    except ForgedError as error:
        return _forged(session, envelope, node.name, str(error), now)
    except ContractError as error:
        return _ignored(Outcome.refused, envelope, str(error), about=f"refused {node.name}")
    match stamps.take(session, node.id, envelope.stamp, now=now):
        case Freshness.fresh:
            return message
        case Freshness.repeated:
            return _ignored(Outcome.repeated, envelope, "it was taken before", about=f"repeated {node.name}")
        case Freshness.stale:
            return _forged(session, envelope, node.name, f"it says that it was signed {_ago(envelope, now)}", now)


def _key_of(node: Node) -> str:
    if node.public_key is None:
        raise ForgedError("the node has no key: it was revoked, or has to join again")
    return node.public_key


def _ago(envelope: Envelope, now: datetime) -> str:
    hours = (now.timestamp() - envelope.stamp.at) / 3600
    return f"{abs(hours):.1f} h {'ago' if hours >= 0 else 'from now'}: it is played again, or the node's clock is wrong"


def _forged(session: Session, envelope: Envelope, whose: str, why: str, now: datetime) -> Outcome:
    """Somebody who is none of our nodes can write to the results queue; told as one alert, however often."""
    message = f"A {envelope.kind} from node {envelope.node[:MAX_NAME_CHARS]!r} was refused: {why}."
    alerts.raise_alert(session, AlertKind.forged_message, f"node:{whose}", message, now)
    return _ignored(Outcome.refused, envelope, why, about=f"forged {whose}")


class _Heard:
    """What was logged lately: a node that goes on saying the same must not fill the disk."""

    def __init__(self) -> None:
        self._at: dict[str, float] = {}

    def is_news(self, about: str) -> bool:
        """True once in a while for each subject."""
        at = time.monotonic()
        if at - self._at.get(about, -math.inf) < SAY_AGAIN_S:
            return False
        self._at.pop(about, None)
        self._at[about] = at
        if len(self._at) > MAX_SUBJECTS:
            del self._at[next(iter(self._at))]
        return True


_heard = _Heard()


def _ignored(outcome: Outcome, envelope: Envelope, why: str, *, about: str) -> Outcome:
    if _heard.is_news(about):
        logger.warning("ignored a %s from node %.60s (%s): %.300s", envelope.kind, envelope.node, outcome, why)
    return outcome


@dataclass(frozen=True)
class _Live:
    """A living attempt whose submission's row is locked, and what applying a message to it needs."""

    session: Session
    submission: Submission
    attempt: Attempt
    now: datetime
    config: Config

    def end(self, reason: str, *, free: bool = False) -> None:
        """It found nothing, and that is ours."""
        end_without_result(
            self.session,
            self.submission,
            self.attempt,
            AttemptState.failed,
            reason,
            now=self.now,
            config=self.config,
            free=free,
        )


def _record_attempt(
    session: Session, envelope: Envelope, message: AttemptMessage, node_id: int, *, now: datetime, config: Config
) -> Outcome:
    found = _given(session, message, node_id)
    if found is None:
        why = f"attempt {message.attempt[:30]} with fence {message.fence}"
        return _ignored(Outcome.foreign, envelope, why, about=f"foreign {node_id}")
    submission = lock_submission(session, found.submission_id)
    attempt = fresh_attempt(session, found.id)
    if submission is None or attempt.state not in LIVE:
        why = f"attempt {attempt.public_id} is {attempt.state}"
        return _ignored(Outcome.late, envelope, why, about=f"late {attempt.public_id}")
    return _apply(_Live(session, submission, attempt, now, config), message)


def _given(session: Session, message: AttemptMessage, node_id: int) -> Row[int, int] | None:
    """Id and submission of the attempt that a message is about, if it was given to this node."""
    if not 0 < message.fence <= MAX_SEQUENCE:
        return None
    return session.execute(
        select(Attempt.id, Attempt.submission_id).where(
            Attempt.public_id == message.attempt[:MAX_NAME_CHARS].replace("\0", ""),
            Attempt.fence == message.fence,
            Attempt.node_id == node_id,
        )
    ).one_or_none()


def _apply(live: _Live, message: AttemptMessage) -> Outcome:
    match message:
        case Claim():
            _stay_alive(live)
        case AttemptEvent():
            if not live.attempt.sequence < message.sequence <= MAX_SEQUENCE:
                return Outcome.late
            _stay_alive(live)
            _apply_event(live.submission, live.attempt, message)
        case AttemptResult():
            _apply_result(live, message.result)
        case AttemptFailure():
            # Its node failed a known-good job right after it.
            live.submission.suspect |= message.suspect
            live.end(message.reason, free=message.handed_back)
    return Outcome.applied


def _stay_alive(live: _Live) -> None:
    """Any sign of life renews the lease, by our clock; the first one is the claim, whichever message brought it."""
    attempt = live.attempt
    if attempt.state is AttemptState.dispatched:
        attempt.state = attempt_moves(attempt.state, AttemptState.running)
        attempt.claimed_at = live.now
        live.submission.revision += 1
    attempt.heartbeat_at = live.now
    attempt.lease_expires_at = live.now + timedelta(seconds=live.config.lease_s)


def _apply_event(submission: Submission, attempt: Attempt, message: AttemptEvent) -> None:
    attempt.sequence = message.sequence
    submission.revision += 1
    if (phase := message.event.phase) is not None:
        _apply_phase(submission, attempt, phase)
    if (case := message.event.case) is not None:
        _apply_case(attempt, case)


def _apply_phase(submission: Submission, attempt: Attempt, started: PhaseStarted) -> None:
    submission.phase = started.phase
    others = [item for item in attempt.phases if item["phase"] != started.phase]
    attempt.phases = [*others, {"phase": started.phase.value, "at": started.at}]


def _apply_case(attempt: Attempt, finished: CaseFinished) -> None:
    if len(attempt.live_cases) < MAX_LIVE_CASES:
        attempt.live_cases = [*attempt.live_cases, codec.to_json(finished.case.for_student())]


def _apply_result(live: _Live, result: GradeResult) -> None:
    """Write it; where it is no finding about the submission, the attempt has failed."""
    if result.verdict is Verdict.grader_error:
        _keep_samples(live, result)
        error = f" [{result.error.kind}: {result.error.message}]" if result.error else ""
        live.end(f"the judge failed: {result.explanation}{error}")
        return
    try:
        with live.session.begin_nested():
            write_result(
                live.session, live.submission, live.attempt, result, now=live.now, max_attempts=live.config.max_attempts
            )
    except (ContractError, DataError) as error:
        # Such as a text with a NUL in it, which PostgreSQL does not store.
        live.end(f"the node's result does not fit: {error}")
        return
    trace, attempt = live.submission.trace, live.attempt.public_id
    logger.info("trace %s: attempt %s found %s", trace, attempt, result.verdict)


def _keep_samples(live: _Live, result: GradeResult) -> None:
    """What an attempt measured before our side failed counts as well: nobody draws again by making it fail."""
    if not result.measurements:
        return
    try:
        with live.session.begin_nested():
            item = item_of(live.session, live.attempt)
            apart = pool_of_item(live.session, item, live.submission) if item is not None else None
            keep_samples(live.session, live.submission, live.attempt, result.measurements, now=live.now, apart=apart)
    except (ContractError, DataError) as error:
        logger.warning("attempt %s: its samples do not fit: %s", live.attempt.public_id, error)
