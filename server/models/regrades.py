"""Grading again as a proposal that staff apply or discard, and what students ask for."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import ForeignKey, Index, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column, relationship

from autograder.contract import Verdict
from server.models.base import BIG, Base
from server.models.courses import Assignment, AssignmentVersion
from server.models.grading import Submission
from server.models.people import User


class RegradeKind(StrEnum):
    """How a proposal finds its new points."""

    rerun = "rerun"
    """By grading again, on nodes."""
    rescore = "rescore"
    """By another formula, other points or tiers, from stored samples."""


class RegradeState(StrEnum):
    """Where a proposal is."""

    drafted = "drafted"
    running = "running"
    paused = "paused"
    ready = "ready"
    """Everything is known; staff decide."""
    applying = "applying"
    applied = "applied"
    discarded = "discarded"
    rolling_back = "rolling_back"
    rolled_back = "rolled_back"


class RegradeItemState(StrEnum):
    """Where one submission of a proposal is."""

    waiting = "waiting"
    queued = "queued"
    """It stands in the queue for the proposal, or runs."""
    found = "found"
    """What it would be is known."""
    failed = "failed"
    """Ours: no attempt ended in a result."""
    withdrawn = "withdrawn"
    applied = "applied"
    kept = "kept"
    """The proposal is applied; of this one what counted goes on to count."""
    conflict = "conflict"
    """It is not any more what the proposal was compared with."""
    rolled_back = "rolled_back"


class Why(StrEnum):
    """Why what was found differs, or that it does not; `server.grading.compare` decides."""

    unchanged = "unchanged"
    within_noise = "within_noise"
    """The intervals of the two speeds overlap."""
    speed_changed = "speed_changed"
    """Graded the same way, measured faster or slower beyond its noise."""
    verdict_changed = "verdict_changed"
    """Graded the same way, found otherwise."""
    tests_changed = "tests_changed"
    """What decides verdicts and ratios is another version's."""
    points_changed = "points_changed"
    """The same finding is worth more or less."""
    first_result = "first_result"
    """It had none."""


class RequestState(StrEnum):
    """Where a student's request is."""

    open = "open"
    accepted = "accepted"
    declined = "declined"


class Regrade(Base):
    """A proposal to grade submissions of one assignment again: nothing counts before it is applied."""

    __tablename__ = "regrades"
    __table_args__ = (Index("ix_regrades_course_id_id", "course_id", "id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    course_id: Mapped[int] = mapped_column(ForeignKey("courses.id", ondelete="CASCADE"))
    assignment_id: Mapped[int] = mapped_column(ForeignKey("assignments.id", ondelete="CASCADE"), index=True)
    version_id: Mapped[int] = mapped_column(ForeignKey("assignment_versions.id"))
    """By what it grades, or scores."""
    kind: Mapped[RegradeKind]
    selection: Mapped[dict[str, Any]]
    """`codec.to_json(server.regrades.selection.Selection)`."""
    reason: Mapped[str]
    """Whose points change reads it."""
    may_lower: Mapped[bool] = mapped_column(default=False)
    """A declared correction of a mistake: it may lower grades too. Noise never does."""
    tell: Mapped[bool] = mapped_column(default=True)
    """Students whose points change get a notification."""
    state: Mapped[RegradeState] = mapped_column(index=True)
    revision: Mapped[int] = mapped_column(default=1)
    """Raised with everything that a person does to it."""
    actor_id: Mapped[int | None] = mapped_column(ForeignKey("users.id"))
    created_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    ready_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]
    """When it was applied, discarded or rolled back."""

    assignment: Mapped[Assignment] = relationship(lazy="raise")
    version: Mapped[AssignmentVersion] = relationship(lazy="raise")
    actor: Mapped[User | None] = relationship(lazy="raise")


class RegradeItem(Base):
    """One submission of a proposal: what it was compared with, what was found, and what became of that.

    Whoever changes one that is `waiting` or `queued` holds its submission's row.
    """

    __tablename__ = "regrade_items"
    __table_args__ = (
        UniqueConstraint("regrade_id", "submission_id"),
        Index("ix_regrade_items_regrade_id_state", "regrade_id", "state", "id"),
        Index("ix_regrade_items_submission_id_state", "submission_id", "state"),
    )

    id: Mapped[int] = mapped_column(BIG, primary_key=True)
    regrade_id: Mapped[int] = mapped_column(ForeignKey("regrades.id", ondelete="CASCADE"))
    submission_id: Mapped[int] = mapped_column(ForeignKey("submissions.id", ondelete="CASCADE"))
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    version_id: Mapped[int] = mapped_column(ForeignKey("assignment_versions.id"))
    """The proposal's: by what this one is graded while it stands in the queue for it."""
    state: Mapped[RegradeItemState]
    stopped: Mapped[bool] = mapped_column(default=False)
    """Nobody waits for it any more: what runs may end, nothing further is tried."""
    queue: Mapped[dict[str, Any]] = mapped_column(default=dict)
    """Where its submission stood before it was put into the queue, to be put there again."""
    why: Mapped[Why | None]
    moves: Mapped[bool] = mapped_column(default=False)
    """What was found would count."""
    before: Mapped[dict[str, Any]] = mapped_column(default=dict)
    """What it was compared with, and is given back by a roll-back."""
    before_verdict: Mapped[Verdict | None]
    before_points: Mapped[float | None]
    before_ratio: Mapped[float | None]
    before_low: Mapped[float | None]
    before_high: Mapped[float | None]
    result_id: Mapped[int | None] = mapped_column(ForeignKey("results.id", ondelete="SET NULL"), index=True)
    """What was found, of a rerun."""
    scores: Mapped[dict[str, Any]] = mapped_column(default=dict)
    """What was worked out, of a rescore."""
    pool: Mapped[str | None] = mapped_column(String(80))
    """Where the samples of its attempts are until they count."""
    new_verdict: Mapped[Verdict | None]
    new_points: Mapped[float | None]
    """What would count, at its review as it was: noise and what may not be lowered are seen to already."""
    new_ratio: Mapped[float | None]
    new_low: Mapped[float | None]
    new_high: Mapped[float | None]
    speed_floor: Mapped[float | None]
    """Speed points that are kept although the formula gives fewer."""
    note: Mapped[str] = mapped_column(default="")
    """Why it failed, is in conflict, or is kept; for staff."""
    found_at: Mapped[datetime | None]
    applied_at: Mapped[datetime | None]
    after: Mapped[dict[str, Any]] = mapped_column(default=dict)
    """How applying it left its submission: a roll-back finds it so, or passes it over."""

    regrade: Mapped[Regrade] = relationship(lazy="raise")
    submission: Mapped[Submission] = relationship(lazy="raise")
    user: Mapped[User] = relationship(lazy="raise")


class Trial(Base):
    """An attempt that was made for a proposal: what it finds counts only once that is applied."""

    __tablename__ = "trials"

    attempt_id: Mapped[int] = mapped_column(ForeignKey("attempts.id", ondelete="CASCADE"), primary_key=True)
    item_id: Mapped[int] = mapped_column(ForeignKey("regrade_items.id", ondelete="CASCADE"), index=True)


class RegradeRules(Base):
    """What a course lets its students ask; one without a row has the defaults."""

    __tablename__ = "regrade_rules"

    course_id: Mapped[int] = mapped_column(ForeignKey("courses.id", ondelete="CASCADE"), primary_key=True)
    enabled: Mapped[bool] = mapped_column(default=True)
    per_assignment: Mapped[int] = mapped_column(default=2)
    """So many requests of one student that were not granted, or are not answered yet."""
    per_course: Mapped[int] = mapped_column(default=8)
    window_days: Mapped[int] = mapped_column(default=7)
    """How long after the grades are published."""
    cooling_off_h: Mapped[int] = mapped_column(default=0)
    """So many hours after that nobody may ask yet."""
    revision: Mapped[int] = mapped_column(default=0)


class RegradeRequest(Base):
    """A student asks for a submission of theirs to be looked at again."""

    __tablename__ = "regrade_requests"
    __table_args__ = (
        Index("ix_regrade_requests_course_id_state", "course_id", "state", "id"),
        Index("ix_regrade_requests_user_id_assignment_id", "user_id", "assignment_id"),
    )

    id: Mapped[int] = mapped_column(BIG, primary_key=True)
    course_id: Mapped[int] = mapped_column(ForeignKey("courses.id", ondelete="CASCADE"))
    assignment_id: Mapped[int] = mapped_column(ForeignKey("assignments.id", ondelete="CASCADE"), index=True)
    submission_id: Mapped[int] = mapped_column(ForeignKey("submissions.id", ondelete="CASCADE"), unique=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    """Who asked."""
    state: Mapped[RequestState]
    retiming: Mapped[bool] = mapped_column(default=False)
    """Its times are taken once more: it stands in the queue for that, or runs."""
    free: Mapped[bool] = mapped_column(default=False)
    """It counts against no quota: what failed was ours."""
    retime: Mapped[dict[str, Any]] = mapped_column(default=dict)
    """What taking its times once more came to: `codec.to_json(server.grading.remeasure_requests.Retime)`."""
    points_before: Mapped[float | None]
    """When it was asked."""
    reopened_at: Mapped[datetime | None]
    """Once at most."""
    regrade_id: Mapped[int | None] = mapped_column(ForeignKey("regrades.id", ondelete="SET NULL"), index=True)
    """The proposal that accepting it made."""
    answered_by_id: Mapped[int | None] = mapped_column(ForeignKey("users.id"))
    created_at: Mapped[datetime]
    answered_at: Mapped[datetime | None]
    revision: Mapped[int] = mapped_column(default=1)

    submission: Mapped[Submission] = relationship(lazy="raise")
    assignment: Mapped[Assignment] = relationship(lazy="raise")
    user: Mapped[User] = relationship(lazy="raise", foreign_keys=[user_id])
    regrade: Mapped[Regrade | None] = relationship(lazy="raise")


class RegradeMessage(Base):
    """What was said about a request. Rows are only added."""

    __tablename__ = "regrade_messages"

    id: Mapped[int] = mapped_column(BIG, primary_key=True)
    request_id: Mapped[int] = mapped_column(ForeignKey("regrade_requests.id", ondelete="CASCADE"), index=True)
    author_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    by_staff: Mapped[bool]
    outcome: Mapped[RequestState | None]
    """What it made of the request; `None`: only words."""
    text: Mapped[str]
    at: Mapped[datetime]

    author: Mapped[User] = relationship(lazy="raise")
