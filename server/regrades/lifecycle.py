"""What people do to a proposal: propose it, start, pause, withdraw the rest, discard, apply, roll back.

    drafted ──> running ⇄ paused ──> ready ──> applying ──> applied ──> rolling_back ──> rolled_back
       └───────────┴─────────┴─────────┴──> discarded

One that is applied goes back to running or ready where what failed is graded again, or what changed since is compared
again: then it is left as applied instead of discarded. One that is rolled back goes back to rolling back for what the
roll-back passed over.

Everything that a person does names the revision that they saw; who was overtaken is told. `server.regrades.runner` does
what follows, bit by bit.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ColumnElement, and_, func, select, update
from sqlalchemy.orm import Session

from autograder.contract import State
from server.courses.courses import Membership
from server.errors import ConflictError, NotFoundError
from server.gradebook.people import checked_reason
from server.grading.lock import lock_submission
from server.grading.regrade_attempts import compare_result, withdraw
from server.models import (
    Regrade,
    RegradeItem,
    RegradeItemState,
    RegradeKind,
    RegradeState,
    Result,
)
from server.regrades import runner
from server.regrades.proposing import MAX_REASON_CHARS, note

_UNTIL_READY = (RegradeState.drafted, RegradeState.running, RegradeState.paused, RegradeState.ready)


def find(session: Session, member: Membership, regrade_id: int) -> Regrade:
    """A proposal of this course.

    Raises:
        NotFoundError: there is none, or the member is no staff.
    """
    regrade = session.get(Regrade, regrade_id)
    if regrade is None or regrade.course_id != member.course.id or not member.is_staff:
        raise NotFoundError("There is no such regrade.")
    return regrade


def start(session: Session, member: Membership, regrade_id: int, *, revision: int, now: datetime) -> Regrade:
    """Begin to grade, or go on after a pause.

    Raises:
        ConflictError: it is somewhere else by now.
    """
    regrade = _locked(session, member, regrade_id, revision, RegradeState.drafted, RegradeState.paused)
    action = "started" if regrade.state is RegradeState.drafted else "resumed"
    regrade.state = RegradeState.running
    regrade.started_at = regrade.started_at or now
    note(session, regrade, action, member.user)
    runner.step(session, regrade, now=now)
    return regrade


def pause(session: Session, member: Membership, regrade_id: int, *, revision: int, now: datetime) -> Regrade:
    """Take out of the queue what has not begun; what runs may end.

    Raises:
        ConflictError: it is somewhere else by now.
    """
    regrade = _locked(session, member, regrade_id, revision, RegradeState.running)
    for item in _take_out(session, regrade, now, last=False):
        item.state, item.found_at = RegradeItemState.waiting, None
    regrade.state = RegradeState.paused
    note(session, regrade, "paused", member.user)
    return regrade


def withdraw_rest(session: Session, member: Membership, regrade_id: int, *, revision: int, now: datetime) -> Regrade:
    """Grade no more: the proposal is about what is known by now, and about what still runs.

    Raises:
        ConflictError: it is somewhere else by now.
    """
    regrade = _locked(session, member, regrade_id, revision, RegradeState.running, RegradeState.paused)
    left = _stop(session, regrade, now)
    regrade.state = RegradeState.running
    note(session, regrade, "rest_withdrawn", member.user, detail={"submissions": left})
    runner.step(session, regrade, now=now)
    return regrade


def discard(session: Session, member: Membership, regrade_id: int, *, revision: int, now: datetime) -> Regrade:
    """Nothing of it will count; where some of it is applied already, nothing more, and that stays applied.

    Raises:
        ConflictError: it is somewhere else by now.
    """
    regrade = _locked(session, member, regrade_id, revision, *_UNTIL_READY)
    left = _stop(session, regrade, now)
    query = select(func.max(RegradeItem.applied_at))
    ended_at = session.scalar(query.where(_items(regrade, RegradeItemState.applied)))
    if ended_at is None:
        regrade.state, regrade.ended_at = RegradeState.discarded, now
        note(session, regrade, "discarded", member.user)
    else:
        left += _leave_out(session, regrade, RegradeItemState.found, now)
        regrade.state, regrade.ended_at = RegradeState.applied, ended_at
        note(session, regrade, "left_as_applied", member.user, detail={"submissions": left})
    return regrade


def retry_failed(session: Session, member: Membership, regrade_id: int, *, revision: int, now: datetime) -> Regrade:
    """Grade again what our side failed at.

    Raises:
        ConflictError: it is somewhere else by now, or nothing has failed.
    """
    regrade = _locked(session, member, regrade_id, revision, RegradeState.ready, RegradeState.applied)
    again = update(RegradeItem).where(_items(regrade, RegradeItemState.failed))
    values = {"state": RegradeItemState.waiting, "note": "", "found_at": None}
    count = len(session.scalars(again.values(values).returning(RegradeItem.id)).all())
    if not count:
        raise ConflictError("None of its submissions has failed on our side.")
    _reopen(session, regrade, now)
    regrade.state, regrade.ready_at = RegradeState.running, None
    note(session, regrade, "failed_retried", member.user, detail={"submissions": count})
    runner.step(session, regrade, now=now)
    return regrade


def recheck(session: Session, member: Membership, regrade_id: int, *, revision: int, now: datetime) -> Regrade:
    """Compare with what counts now whatever was in conflict, so that it can be applied after all.

    Raises:
        ConflictError: it is somewhere else by now, or nothing is in conflict.
    """
    regrade = _locked(session, member, regrade_id, revision, RegradeState.ready, RegradeState.applied)
    query = select(RegradeItem).where(_items(regrade, RegradeItemState.conflict))
    items = session.scalars(query.order_by(RegradeItem.submission_id)).all()
    if not items:
        raise ConflictError("None of its submissions has changed since.")
    _reopen(session, regrade, now)
    for item in items:
        _compare_again(session, item)
    note(session, regrade, "rechecked", member.user, detail={"submissions": len(items)})
    if regrade.kind is RegradeKind.rescore:
        regrade.state = RegradeState.running
        runner.step(session, regrade, now=now)
    else:
        regrade.state = RegradeState.ready
    return regrade


def _reopen(session: Session, regrade: Regrade, now: datetime) -> None:
    """Of one that is applied what ran when its rest was left out is known by now, and stays left out."""
    if regrade.state is RegradeState.applied:
        _leave_out(session, regrade, RegradeItemState.found, now)
    regrade.ended_at = None


def _compare_again(session: Session, item: RegradeItem) -> None:
    submission = lock_submission(session, item.submission_id)
    if submission is None:
        return
    if item.result_id is None:
        item.state = RegradeItemState.waiting
        return
    compare_result(session, item, submission, session.get_one(Result, item.result_id))


def apply(session: Session, member: Membership, regrade_id: int, *, revision: int, now: datetime) -> Regrade:
    """Let it count: the first of its submissions in this transaction, all of them soon.

    Raises:
        ConflictError: it is somewhere else by now, such as applied by somebody else.
    """
    regrade = _locked(session, member, regrade_id, revision, RegradeState.ready)
    regrade.state = RegradeState.applying
    note(session, regrade, "applied", member.user, reason=regrade.reason)
    runner.step(session, regrade, now=now)
    return regrade


def roll_back(
    session: Session, member: Membership, regrade_id: int, *, revision: int, reason: str, now: datetime
) -> Regrade:
    """Give back what counted before.

    Raises:
        InvalidInputError: no reason.
        ConflictError: it is somewhere else by now.
    """
    reason = checked_reason(reason, most=MAX_REASON_CHARS)
    regrade = _locked(session, member, regrade_id, revision, RegradeState.applied)
    regrade.state = RegradeState.rolling_back
    note(session, regrade, "rolled_back", member.user, reason=reason)
    runner.step(session, regrade, now=now)
    return regrade


def roll_back_again(session: Session, member: Membership, regrade_id: int, *, revision: int, now: datetime) -> Regrade:
    """Give back what counted before where a roll-back passed over it; what is still in the way is told again.

    Raises:
        ConflictError: it is somewhere else by now, or nothing was passed over.
    """
    regrade = _locked(session, member, regrade_id, revision, RegradeState.rolled_back)
    # What applying passed over is in conflict too, and has nothing to give back.
    passed_over = and_(_items(regrade, RegradeItemState.conflict), RegradeItem.applied_at.is_not(None))
    again = update(RegradeItem).where(passed_over).values(state=RegradeItemState.applied, note="")
    count = len(session.scalars(again.returning(RegradeItem.id)).all())
    if not count:
        raise ConflictError("Its roll-back skipped none of its submissions.")
    regrade.state = RegradeState.rolling_back
    note(session, regrade, "rolled_back_again", member.user, detail={"submissions": count})
    runner.step(session, regrade, now=now)
    return regrade


def _locked(session: Session, member: Membership, regrade_id: int, revision: int, *states: RegradeState) -> Regrade:
    """The proposal, its row locked, as the person saw it."""
    member.require_staff()
    find(session, member, regrade_id)
    query = select(Regrade).where(Regrade.id == regrade_id).with_for_update()
    regrade = session.scalars(query.execution_options(populate_existing=True)).one()
    if regrade.state not in states:
        raise ConflictError(f"This regrade is {regrade.state.replace('_', ' ')} by now, so this is not possible.")
    if regrade.revision != revision:
        raise ConflictError("Somebody else changed this regrade meanwhile. Check it again, then decide.")
    regrade.revision += 1
    return regrade


def _take_out(session: Session, regrade: Regrade, now: datetime, *, last: bool) -> list[RegradeItem]:
    """Take out of the queue what has not begun; with `last`, nothing further is tried for what runs."""
    query = select(RegradeItem).where(_items(regrade, RegradeItemState.queued))
    taken = []
    for item in session.scalars(query.order_by(RegradeItem.submission_id)).all():
        submission = lock_submission(session, item.submission_id)
        session.refresh(item)
        if submission is None or item.state is not RegradeItemState.queued:
            continue
        if submission.state is State.queued:
            withdraw(item, submission, now=now)
            taken.append(item)
        else:
            item.stopped = last
    return taken


def _stop(session: Session, regrade: Regrade, now: datetime) -> int:
    """Withdraw what waits or has not begun, and let what runs be the last; how many were withdrawn."""
    taken = len(_take_out(session, regrade, now, last=True))
    return taken + _leave_out(session, regrade, RegradeItemState.waiting, now)


def _leave_out(session: Session, regrade: Regrade, state: RegradeItemState, now: datetime) -> int:
    """Withdraw its items in this state, and forget why they would differ; how many."""
    values = {"state": RegradeItemState.withdrawn, "found_at": now, "why": None, "moves": False}
    left_out = update(RegradeItem).where(_items(regrade, state)).values(values).returning(RegradeItem.id)
    return len(session.scalars(left_out).all())


def _items(regrade: Regrade, state: RegradeItemState) -> ColumnElement[bool]:
    return and_(RegradeItem.regrade_id == regrade.id, RegradeItem.state == state)
