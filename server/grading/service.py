"""What dispatcher, recorder, fronts and commands call."""

from __future__ import annotations

from sqlalchemy import ColumnElement, and_, func, or_, select
from sqlalchemy.orm import Session

from server.grading.claim import claim_next
from server.grading.record import Outcome, record
from server.grading.results import manifest_of, points_of, rescore
from server.grading.scores import FORMULA_VERSION, NextPoint, next_point
from server.grading.states import FINAL, LIVE, WAITING
from server.grading.sweep import sweep
from server.models import Submission

__all__ = [
    "FINAL",
    "FORMULA_VERSION",
    "LIVE",
    "WAITING",
    "NextPoint",
    "Outcome",
    "ahead_of",
    "claim_next",
    "manifest_of",
    "next_point",
    "points_of",
    "record",
    "rescore",
    "sweep",
]


def ahead_of(session: Session, submission: Submission) -> int | None:
    """How many submissions of its lane are graded before it; `None` if it does not wait."""
    if submission.state not in WAITING:
        return None
    waiting = select(func.count()).select_from(Submission)
    query = waiting.where(Submission.state.in_(WAITING), Submission.lane == submission.lane, _goes_before(submission))
    return session.scalars(query).one()


def _goes_before(other: Submission) -> ColumnElement[bool]:
    """The order of `claim_next`."""
    same_priority = Submission.priority == other.priority
    return or_(
        Submission.priority < other.priority,
        and_(same_priority, Submission.place_at < other.place_at),
        and_(same_priority, Submission.place_at == other.place_at, Submission.id < other.id),
    )
