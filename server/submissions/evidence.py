"""What a person needs to decide about a submission's speed in one piece: claims beside bounds, and what was before."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from autograder.contract import DeviceKernel, Measurement
from server import audit
from server.grading import appeals
from server.models import Appeal, AuditEntry, FindingLook, Mode, Node, Result, Review, Submission, User
from server.submissions.views import SubmissionView, view

HISTORY = 50
_DEFINES = r"\b(?:def|void)\s+{}\b"


@dataclass(frozen=True)
class Claim:
    """A ranked case: the time that the runner's clock claims beside what nobody can forge.

    Attributes:
        claimed_us: median of the event clock's samples.
        sealed_us: upper bound of one call by the sealed clock; `None` where it was not bounded.
        below_floor: the claim is faster than the device can be by its data sheet.
    """

    measurement: Measurement
    claimed_us: float
    sealed_us: float | None
    below_floor: bool


@dataclass(frozen=True)
class Earlier:
    """Another submission of the same student on the same lane."""

    public_id: str
    number: int
    uploaded_at: datetime
    review: Review
    ratio: float
    time_us: float


@dataclass(frozen=True)
class Evidence:
    """The whole bundle.

    Attributes:
        marked: line of the source → what is to be seen there.
        trail: decisions and looks so far, oldest first, with names by `names`.
        reasons: why findings were let pass, where somebody looked.
    """

    view: SubmissionView
    source: str
    claims: tuple[Claim, ...]
    marked: Mapping[int, str]
    history: tuple[Earlier, ...]
    node: Node | None
    appeal: Appeal | None
    unseen: int
    trail: tuple[AuditEntry, ...]
    names: Mapping[int, str]


def evidence_of(session: Session, submission: Submission, source: str) -> Evidence:
    """Everything about a submission whose assignment and course are loaded; for staff alone."""
    shown = view(session, submission, staff=True)
    trail = [row for row in audit.entries(session, subject=f"submission:{submission.public_id}") if _decides(row)]
    people = {row.actor_id for row in trail if row.actor_id is not None}
    return Evidence(
        view=shown,
        source=source,
        claims=tuple(_claim(item) for item in shown.measurements),
        marked=kernel_lines(source, shown.device_kernels),
        history=_history(session, submission),
        node=session.scalar(select(Node).where(Node.name == shown.node)) if shown.node else None,
        appeal=appeals.of_submission(session, submission),
        unseen=len(_unseen(session, submission)),
        trail=tuple(reversed(trail)),
        names={row[0]: row[1] for row in session.execute(select(User.id, User.name).where(User.id.in_(people)))},
    )


def kernel_lines(source: str, kernels: Sequence[DeviceKernel]) -> dict[int, str]:
    """Where the kernels that ran are written, with their share of the time."""
    found: dict[int, str] = {}
    rows = source.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for kernel in kernels:
        name = re.match(r"\w+", kernel.name)
        if not kernel.own or name is None:
            continue
        pattern = re.compile(_DEFINES.format(re.escape(name[0])))
        line = next((number for number, row in enumerate(rows, 1) if pattern.search(row)), None)
        if line is not None:
            found.setdefault(line, f"{kernel.share * 100:.1f} % of the GPU's time")
    return found


def _claim(item: Measurement) -> Claim:
    events = sorted(pair.submission_event_us for pair in item.pairs)
    claimed = events[len(events) // 2] if events else item.time_us
    return Claim(item, claimed, item.bound.sealed_us if item.bound else None, below_floor=0 < claimed < item.floor_us)


def _history(session: Session, submission: Submission) -> tuple[Earlier, ...]:
    query = (
        select(
            Submission.public_id,
            Submission.number,
            Submission.uploaded_at,
            Submission.review,
            Result.ratio,
            Result.time_us,
        )
        .join(Result, Result.id == Submission.result_id)
        .where(
            Submission.user_id == submission.user_id,
            Submission.assignment_id == submission.assignment_id,
            Submission.lane == submission.lane,
            Submission.mode == Mode.submission,
            Result.ratio.is_not(None),
            Result.time_us.is_not(None),
        )
        .order_by(Submission.id.desc())
        .limit(HISTORY)
    )
    rows = session.execute(query)
    return tuple(Earlier(row[0], row[1], row[2], row[3], row[4] or 0.0, row[5] or 0.0) for row in rows)


def _unseen(session: Session, submission: Submission) -> Sequence[int]:
    return session.scalars(
        select(FindingLook.id).where(FindingLook.result_id == submission.result_id, FindingLook.looked_at.is_(None))
    ).all()


def _decides(row: AuditEntry) -> bool:
    return row.action in {
        "submission.reviewed",
        "submission.looked_at",
        "submission.appealed",
        "submission.appeal_answered",
    }
