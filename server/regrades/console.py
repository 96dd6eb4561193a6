"""A proposal from draft to applied in one transaction, for a command on the server's own console."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from server.gradebook.people import checked_reason
from server.models import Assignment, Mode, Regrade, RegradeItem, RegradeKind, RegradeState, Submission
from server.regrades import runner
from server.regrades.proposing import MAX_REASON_CHARS, draft, note
from server.regrades.selection import Selection, Which


@dataclass(frozen=True)
class Rescored:
    """A submission whose points are, or would be, other ones."""

    submission: str
    before: float | None
    after: float | None


def rescore(
    session: Session, assignment: Assignment, *, reason: str, apply: bool, now: datetime, may_lower: bool = False
) -> Sequence[Rescored]:
    """Work out everything that was handed in by the formula and the assignment's current points and tiers; what moves.

    Args:
        apply: let it count. Otherwise the proposal is left ready, to be looked at, or rolled back with the transaction.
        may_lower: a declared correction of a mistake; without it nothing is lowered.

    Raises:
        InvalidInputError: no reason.
    """
    reason = checked_reason(reason, most=MAX_REASON_CHARS)
    if assignment.version_id is None or not _has_any(session, assignment):
        return []
    everything = Selection(which=Which.all)
    regrade = draft(
        session, None, assignment, kind=RegradeKind.rescore, selection=everything, reason=reason, now=now,
        may_lower=may_lower,
    )  # fmt: skip
    _go(session, regrade, RegradeState.running, "started", now)
    if apply and regrade.state is RegradeState.ready:
        _go(session, regrade, RegradeState.applying, "applied", now)
    return _moved(session, regrade)


def _has_any(session: Session, assignment: Assignment) -> bool:
    query = select(Submission.id).where(Submission.assignment_id == assignment.id, Submission.mode == Mode.submission)
    return session.scalar(query.where(Submission.result_id.is_not(None)).limit(1)) is not None


def _go(session: Session, regrade: Regrade, state: RegradeState, action: str, now: datetime) -> None:
    regrade.state, regrade.started_at = state, regrade.started_at or now
    note(session, regrade, action, None, reason=regrade.reason if state is RegradeState.applying else "")
    runner.step_through(session, regrade, now=now)


def _moved(session: Session, regrade: Regrade) -> Sequence[Rescored]:
    query = (
        select(Submission.public_id, RegradeItem.before_points, RegradeItem.new_points)
        .join(Submission, Submission.id == RegradeItem.submission_id)
        .where(RegradeItem.regrade_id == regrade.id, RegradeItem.moves)
        .order_by(RegradeItem.submission_id)
    )
    return [Rescored(*row) for row in session.execute(query) if row.before_points != row.new_points]
