"""How long a submission in the queue will wait: from how long the latest ones on its lane took, as an interval."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from server.models import Attempt, AttemptState, Submission
from server.nodes import service as nodes
from server.submissions.service import SubmissionView

_LATEST = 20
_ENOUGH = 3
"""With fewer durations than this, saying nothing is more honest."""


@dataclass(frozen=True)
class Wait:
    """What a waiting submission waits for.

    Attributes:
        ahead: how many are graded before it.
        has_node: something grades its lane now.
        low_s, high_s: until its own result, by the faster and the slower quarter of the latest; `None` if unknown.
    """

    ahead: int
    has_node: bool
    low_s: float | None
    high_s: float | None


def wait_of(session: Session, view: SubmissionView, now: datetime) -> Wait | None:
    """`None` once it does not wait."""
    if view.position is None:
        return None
    slots = sum(node.slots for node in nodes.working_nodes(session, now=now) if view.lane.value in node.lanes)
    taken = _durations(session, view)
    if slots == 0 or len(taken) < _ENOUGH:
        return Wait(view.position, slots > 0, None, None)
    quarter, _, three_quarters = statistics.quantiles(taken, n=4)
    rounds = view.position // slots + 1
    return Wait(view.position, has_node=True, low_s=rounds * quarter, high_s=rounds * three_quarters)


def _durations(session: Session, view: SubmissionView) -> list[float]:
    """How long the latest attempts on this lane took, in seconds."""
    query = (
        select(Attempt.dispatched_at, Attempt.finished_at)
        .join(Submission, Submission.id == Attempt.submission_id)
        .where(Submission.lane == view.lane, Attempt.state == AttemptState.finished, Attempt.finished_at.is_not(None))
        .order_by(Attempt.id.desc())
        .limit(_LATEST)
    )
    return [(ended - began).total_seconds() for began, ended in session.execute(query) if ended is not None]
