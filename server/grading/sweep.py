"""Giving back what was lost: the only retry there is."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, func, or_, select
from sqlalchemy.orm import Session

from server import alerts
from server.config import Config
from server.grading.after_result import keeps_its_result
from server.grading.lease_clock import heard_before, lease_clock
from server.grading.lock import fresh_attempt, lock_submission
from server.grading.regrade_attempts import give_up, open_item, withdraw
from server.grading.remeasure_requests import fail_retime, open_request
from server.grading.states import LIVE, after_an_end_without_result, attempt_moves, submission_moves
from server.grading.supersede import give_back
from server.grading.suspects import hold
from server.models import AlertKind, Attempt, AttemptState, Node, RegradeItem, State, Submission, Verdict
from server.nodes import nodes

logger = logging.getLogger(__name__)

SWEEP_LIMIT = 100
"""At most so many attempts in one transaction; the rest is the next sweep's."""
MAX_REASON_CHARS = 4000
FREE_ENDS = 10
"""So many attempts of one submission may end without a result within `FREE_WITHIN` before even those count that never
began: something is wrong that trying again does not mend."""
FREE_WITHIN = timedelta(hours=1)
_NEVER_TAKEN = "the node never said that it has it"


def sweep(session: Session, *, now: datetime, config: Config) -> int:
    """End every attempt whose lease expired, or which outlived its deadline although it says it is alive; how many.

    Its submission goes back to the queue with its place kept, or has failed after the last attempt. Time is what the
    recorder has heard (`server.grading.lease_clock`): while it is away nothing expires.
    """
    _pull_in_leases(session, now, config)
    clock = lease_clock(session, now=now, lease_s=config.lease_s)
    if clock is None:
        return 0
    once = _Sweep(session, clock, _too_old(session, clock, now, config), now, config)
    expired = session.execute(
        select(Attempt.id, Attempt.submission_id)
        .where(Attempt.state.in_(LIVE), once.is_over())
        # By node: two sweepers that mark silent nodes do it in one order, so that neither waits for the other for ever.
        .order_by(Attempt.node_id, Attempt.lease_expires_at)
        .limit(SWEEP_LIMIT)
    ).all()
    return sum(once.give_up(attempt_id, submission_id) for attempt_id, submission_id in expired)


def end_attempt(
    session: Session, attempt: str, reason: str, *, now: datetime, config: Config, free: bool = False
) -> bool:
    """End a living attempt by its public id as failed; false if it is over."""
    found = session.execute(
        select(Attempt.id, Attempt.submission_id).where(Attempt.public_id == attempt, Attempt.state.in_(LIVE))
    ).one_or_none()
    submission = lock_submission(session, found.submission_id) if found is not None else None
    if found is None or submission is None:
        return False
    row = fresh_attempt(session, found.id)
    if row.state not in LIVE:
        return False
    end_without_result(session, submission, row, AttemptState.failed, reason, now=now, config=config, free=free)
    return True


def fence_off(session: Session, node_id: int, reason: str, *, now: datetime, config: Config) -> int:
    """End what a node works on, such as when its token is not its own any more; how many attempts. It costs none."""
    names = select(Attempt.public_id).where(Attempt.node_id == node_id, Attempt.state.in_(LIVE)).order_by(Attempt.id)
    living = session.scalars(names).all()
    return sum(end_attempt(session, name, reason, now=now, config=config, free=True) for name in living)


def end_without_result(
    session: Session,
    submission: Submission,
    attempt: Attempt,
    end: AttemptState,
    reason: str,
    *,
    now: datetime,
    config: Config,
    free: bool = False,
) -> None:
    """End an attempt that found nothing, and say where its submission goes; its row has to be locked.

    Args:
        free: it does not use up one of the submission's attempts, because nothing of it was tried.
    """
    if free and _few_ended_lately(session, submission, now):
        submission.attempts_made -= 1
    attempt.state = attempt_moves(attempt.state, end)
    attempt.finished_at = now
    attempt.reason = reason.replace("\0", "")[:MAX_REASON_CHARS]
    attempt.live_cases = []
    submission.phase = None
    submission.revision += 1
    if (item := open_item(session, submission)) is not None:
        _end_for_a_proposal(item, submission, attempt, now=now, config=config)
        return
    after = after_an_end_without_result(
        submission.attempts_made,
        config.max_attempts,
        superseded=submission.superseded_by_id is not None,
        # A check that passed is no whole result: what could not be measured has failed, and keeps its verdict.
        graded_before=keeps_its_result(session, submission),
    )
    submission.state = submission_moves(submission.state, after)
    if after is State.failed:
        submission.verdict = submission.verdict or Verdict.grader_error
        submission.finished_at = now
        # What it superseded is the newest that can still get a verdict by itself.
        give_back(session, submission, skip_locked=True)
    logger.warning(
        "trace %s: attempt %d of submission %s is %s (%s); the submission is %s",
        submission.trace, attempt.fence, submission.public_id, end, attempt.reason, after,
    )  # fmt: skip
    if after in {State.failed, State.done}:
        if (request := open_request(session, submission)) is not None:
            fail_retime(request)
        _say_failed(session, submission, attempt, now)
        if submission.suspect:
            hold(session, submission, now=now)


def _end_for_a_proposal(
    item: RegradeItem, submission: Submission, attempt: Attempt, *, now: datetime, config: Config
) -> None:
    """Try it again, or give it up; what counts of the submission is not touched, and nobody is held for it."""
    if item.stopped:
        withdraw(item, submission, now=now)
    elif submission.attempts_made < config.max_attempts:
        submission.state = submission_moves(submission.state, State.queued)
    else:
        give_up(item, submission, attempt.reason, now=now)
    logger.warning(
        "trace %s: attempt %d of submission %s is %s (%s); it was made for regrade %d, whose item is %s",
        submission.trace, attempt.fence, submission.public_id, attempt.state, attempt.reason, item.regrade_id,
        item.state,
    )  # fmt: skip


def _pull_in_leases(session: Session, now: datetime, config: Config) -> None:
    """Cut leases that end later than any lease can: they were given before the clock was set back."""
    latest = now + timedelta(seconds=2 * config.lease_s)
    too_long = (Attempt.state.in_(LIVE), Attempt.lease_expires_at > latest)
    query = select(Attempt.id, Attempt.submission_id).where(*too_long).limit(SWEEP_LIMIT)
    for attempt_id, submission_id in session.execute(query).all():
        if lock_submission(session, submission_id, skip_locked=True) is not None:
            attempt = fresh_attempt(session, attempt_id)
            attempt.lease_expires_at = min(attempt.lease_expires_at, now + timedelta(seconds=config.lease_s))


def _too_old(session: Session, clock: datetime, now: datetime, config: Config) -> datetime | None:
    """Whatever was dispatched before this has outlived its deadline; `None` where nothing can have."""
    span_s = config.attempt_deadline_s + config.lease_s
    # Nearly never: only then are that many ticks read.
    by_the_clock = (Attempt.state.in_(LIVE), Attempt.dispatched_at < clock - timedelta(seconds=span_s))
    if session.scalar(select(Attempt.id).where(*by_the_clock).limit(1)) is None:
        return None
    return heard_before(session, now=now, span_s=span_s)


@dataclass(frozen=True)
class _Sweep:
    """One look for what is over; `clock` is what the recorder has heard, `now` what is written."""

    session: Session
    clock: datetime
    too_old: datetime | None
    now: datetime
    config: Config

    def is_over(self) -> ColumnElement[bool]:
        silent = Attempt.lease_expires_at < self.clock
        return silent if self.too_old is None else or_(silent, Attempt.dispatched_at < self.too_old)

    def give_up(self, attempt_id: int, submission_id: int) -> bool:
        """End one attempt, unless somebody else works on its submission or a heartbeat came meanwhile."""
        submission = lock_submission(self.session, submission_id, skip_locked=True)
        if submission is None:
            return False
        still_over = select(Attempt.id).where(Attempt.id == attempt_id, Attempt.state.in_(LIVE), self.is_over())
        if self.session.scalar(still_over) is None:
            return False
        attempt = fresh_attempt(self.session, attempt_id)
        if attempt.lease_expires_at < self.clock:
            self._fell_silent(submission, attempt)
            unclaimed = attempt.claimed_at is None
            # A node went silent while it ran this: the next one to run it is no other's.
            submission.suspect |= not unclaimed
            self._lose(submission, attempt, _NEVER_TAKEN if unclaimed else "the node fell silent", free=unclaimed)
        else:
            self._lose(submission, attempt, "the deadline of the attempt passed")
        return True

    def _lose(self, submission: Submission, attempt: Attempt, reason: str, *, free: bool = False) -> None:
        lost = AttemptState.lost
        end_without_result(self.session, submission, attempt, lost, reason, now=self.now, config=self.config, free=free)

    def _fell_silent(self, submission: Submission, attempt: Attempt) -> None:
        node = self.session.get_one(Node, attempt.node_id)
        if not nodes.is_alive(node, self.now):
            message = f"Node {node.name} fell silent while it had attempt {attempt.fence} of {submission.public_id}."
            alerts.raise_alert(self.session, AlertKind.node_silent, f"node:{node.name}", message, self.now)
        nodes.fell_silent(self.session, node.id)


def _few_ended_lately(session: Session, submission: Submission, now: datetime) -> bool:
    ended = (
        select(func.count())
        .select_from(Attempt)
        .where(
            Attempt.submission_id == submission.id,
            Attempt.state.in_((AttemptState.lost, AttemptState.failed)),
            Attempt.finished_at > now - FREE_WITHIN,
        )
    )
    return session.scalars(ended).one() < FREE_ENDS


def _say_failed(session: Session, submission: Submission, attempt: Attempt, now: datetime) -> None:
    kept = " It keeps the result it had." if submission.result_id is not None else ""
    message = (
        f"Submission {submission.public_id} has no result after {submission.attempts_made} attempts, which is our "
        f"fault: {attempt.reason[:500]}.{kept}"
    )
    alerts.raise_alert(session, AlertKind.submission_failed, f"submission:{submission.public_id}", message, now)
