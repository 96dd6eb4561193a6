"""What was handed in, every try of ours at grading it, and what was found."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, CheckConstraint, ForeignKey, Index, LargeBinary, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column, relationship

from autograder.contract import Lane, Language, Mode, Phase, Review, State, Verdict, Visibility, Work
from server.models.base import BIG, Base
from server.models.courses import Assignment, AssignmentVersion
from server.models.enums import AttemptState, ChangeReason, Line
from server.models.nodes import Node
from server.models.people import User

ERASED_HASH = "erased"
"""`Submission.source_hash` where the work was erased with who wrote it."""


class Submission(Base):
    """What a student handed in: the bytes and where they are. Accepted means this row exists."""

    __tablename__ = "submissions"
    __table_args__ = (
        UniqueConstraint("assignment_id", "user_id", "mode", "number"),
        UniqueConstraint("user_id", "request_key"),
        Index("ix_submissions_queue", "state", "lane", "line", "place_at"),
        Index("ix_submissions_own", "user_id", "assignment_id", "lane", "state"),
        Index("ix_submissions_assignment_id_lane", "assignment_id", "lane", "mode"),
        Index("ix_submissions_history", "user_id", "assignment_id", "id"),
        Index("ix_submissions_stand", "course_id", "state"),
        Index("ix_submissions_counted", "course_id", "assignment_id", "user_id", "mode", "verdict"),
        Index("ix_submissions_list", "course_id", "id"),
        Index("ix_submissions_list_assignment", "assignment_id", "id"),
        Index("ix_submissions_list_verdict", "course_id", "verdict", "id"),
        Index("ix_submissions_list_review", "course_id", "review", "id"),
        CheckConstraint("number > 0", name="number"),
    )

    id: Mapped[int] = mapped_column(BIG, primary_key=True)
    public_id: Mapped[str] = mapped_column(String(26), unique=True)
    """The receipt number: in URLs, mails and logs; not guessable."""
    number: Mapped[int]
    """Counts per student, assignment and mode, from 1."""
    course_id: Mapped[int] = mapped_column(ForeignKey("courses.id"), index=True)
    assignment_id: Mapped[int] = mapped_column(ForeignKey("assignments.id"))
    version_id: Mapped[int] = mapped_column(ForeignKey("assignment_versions.id"))
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    mode: Mapped[Mode]
    lane: Mapped[Lane]
    language: Mapped[Language]
    filename: Mapped[str] = mapped_column(String(120))
    case: Mapped[str] = mapped_column(String(120), default="", server_default="")
    """Of a profile: the public case to look at, `""` for the ranked one with the most work."""
    source: Mapped[bytes] = mapped_column(LargeBinary, deferred=True)
    """UTF-8, as uploaded."""
    source_hash: Mapped[str] = mapped_column(String(80), index=True)
    request_key: Mapped[str | None] = mapped_column(String(64))
    """The request's `Idempotency-Key`: a request that is sent again because its answer was lost makes no second row."""
    trace: Mapped[str] = mapped_column(String(32))
    """One id from the HTTP request to the last log line of its grading."""
    uploaded_at: Mapped[datetime]
    """Decides lateness; queue time never does."""
    state: Mapped[State]
    phase: Mapped[Phase | None]
    verdict: Mapped[Verdict | None]
    review: Mapped[Review] = mapped_column(default=Review.none)
    line: Mapped[Line] = mapped_column(default=Line.submission)
    work: Mapped[Work] = mapped_column(default=Work.all)
    """What the next attempt does; on lanes that measure apart a submission is checked first, then measured."""
    place_at: Mapped[datetime]
    """Its place in the queue: when it, or the one it superseded, was uploaded."""
    superseded_by_id: Mapped[int | None] = mapped_column(ForeignKey("submissions.id"), index=True)
    suspect: Mapped[bool] = mapped_column(default=False)
    """A node went silent while it ran this; until there is a result it runs in quarantine."""
    attempts_made: Mapped[int] = mapped_column(default=0)
    """Since it was last put in the queue for new work; `Attempt.fence` never starts again."""
    pool: Mapped[str | None] = mapped_column(String(80), index=True)
    """Whose samples are one: a hash of the person or group it was opened for, assignment, how that is graded, lane, and
    source without comments and layout. `None` for runs."""
    remeasured: Mapped[int] = mapped_column(default=0)
    """How often its measurement had to be taken again since it was put in the queue by a person."""
    confirmations: Mapped[int] = mapped_column(default=0)
    """How often it was graded once more and passed: the leaderboard's *confirmed × k*."""
    confirmed_at: Mapped[datetime | None]
    """When it was last tried."""
    avoid_node_id: Mapped[int | None] = mapped_column(ForeignKey("nodes.id"))
    """The node that graded it last, where another one is to do it now."""
    result_id: Mapped[int | None] = mapped_column(
        ForeignKey("results.id", use_alter=True, name="fk_submissions_result_id_results")
    )
    """The result that counts."""
    points: Mapped[float | None]
    """Of the result that counts, by the assignment's formula; a changed formula recomputes it without grading again."""
    finished_at: Mapped[datetime | None]
    revision: Mapped[int] = mapped_column(default=0)
    """Raised with every change a watcher should see."""

    user: Mapped[User] = relationship(lazy="raise")
    assignment: Mapped[Assignment] = relationship(lazy="raise")
    version: Mapped[AssignmentVersion] = relationship(lazy="raise")
    result: Mapped[Result | None] = relationship(lazy="raise", foreign_keys=[result_id], post_update=True)
    attempts: Mapped[list[Attempt]] = relationship(lazy="raise", back_populates="submission", order_by="Attempt.fence")


class Attempt(Base):
    """One try of ours at grading a submission. `fence` counts them; only the newest may record a result."""

    __tablename__ = "attempts"
    __table_args__ = (
        UniqueConstraint("submission_id", "fence"),
        Index("ix_attempts_state_lease", "state", "lease_expires_at"),
        Index("ix_attempts_lane_id", "lane", "id"),
    )

    id: Mapped[int] = mapped_column(BIG, primary_key=True)
    public_id: Mapped[str] = mapped_column(String(26), unique=True)
    submission_id: Mapped[int] = mapped_column(ForeignKey("submissions.id", ondelete="CASCADE"), index=True)
    node_id: Mapped[int] = mapped_column(ForeignKey("nodes.id"), index=True)
    fence: Mapped[int]
    lane: Mapped[Lane]
    line: Mapped[Line]
    """Where its submission stood when it was claimed; what each line got lately is counted by it."""
    work: Mapped[Work]
    state: Mapped[AttemptState]
    dispatched_at: Mapped[datetime]
    claimed_at: Mapped[datetime | None]
    heartbeat_at: Mapped[datetime | None]
    lease_expires_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]
    reason: Mapped[str] = mapped_column(default="")
    """Why it was lost or failed, for staff."""
    sequence: Mapped[int] = mapped_column(default=-1)
    """Of the newest event that was applied; an older one changes nothing."""
    phases: Mapped[list[Any]] = mapped_column(default=list)
    """`[{"phase": …, "at": seconds}]`, as they began."""
    live_cases: Mapped[list[Any]] = mapped_column(default=list)
    """`CaseResult.for_student()` of the cases that finished so far, for the page; the result replaces them."""

    submission: Mapped[Submission] = relationship(lazy="raise", back_populates="attempts")
    node: Mapped[Node] = relationship(lazy="raise")


class Result(Base):
    """What one attempt found. Written once."""

    __tablename__ = "results"

    id: Mapped[int] = mapped_column(BIG, primary_key=True)
    attempt_id: Mapped[int] = mapped_column(ForeignKey("attempts.id", ondelete="CASCADE"), unique=True)
    submission_id: Mapped[int] = mapped_column(ForeignKey("submissions.id", ondelete="CASCADE"), index=True)
    verdict: Mapped[Verdict]
    explanation: Mapped[str]
    payload: Mapped[dict[str, Any]] = mapped_column(JSON, deferred=True)
    """`codec.to_json(GradeResult)`, whole: raw samples, hidden cases, findings. Fronts show `for_student()` of it."""
    ratio: Mapped[float | None]
    """Geometric mean over the ranked cases of the paired ratio to the reference, with its interval; pooled."""
    ratio_low: Mapped[float | None]
    ratio_high: Mapped[float | None]
    time_us: Mapped[float | None]
    """Geometric mean of the ranked cases' times; pooled."""
    pooled: Mapped[list[Any]] = mapped_column(default=list)
    """`autograder.samples.PooledCase` as JSON of every ranked case."""
    pooled_attempts: Mapped[int] = mapped_column(default=0)
    """Of how many attempts the samples are counted."""
    correctness_points: Mapped[float]
    speed_points: Mapped[float]
    speed_floor: Mapped[float | None]
    """Speed points that a regrade left standing although the formula gives fewer; `speed_points` are never below."""
    formula_version: Mapped[int] = mapped_column(default=1)
    """By which formula the points are."""
    scored_version_id: Mapped[int | None] = mapped_column(ForeignKey("assignment_versions.id"))
    """By whose points and tiers, where that is another version than the one that was handed in against."""
    settled: Mapped[bool] = mapped_column(default=True)
    """False: its times have to be taken again before they count."""
    held: Mapped[bool] = mapped_column(default=False)
    created_at: Mapped[datetime]

    cases: Mapped[list[CaseRow]] = relationship(lazy="raise", order_by="CaseRow.index")


class CaseRow(Base):
    """One case of a result, for statistics over many results."""

    __tablename__ = "case_results"
    __table_args__ = (UniqueConstraint("result_id", "index"),)

    id: Mapped[int] = mapped_column(BIG, primary_key=True)
    result_id: Mapped[int] = mapped_column(ForeignKey("results.id", ondelete="CASCADE"), index=True)
    index: Mapped[int]
    name: Mapped[str] = mapped_column(String(120))
    category: Mapped[str] = mapped_column(String(120))
    group: Mapped[str] = mapped_column(String(60))
    visibility: Mapped[Visibility]
    verdict: Mapped[Verdict | None]
    pattern: Mapped[str | None] = mapped_column(String(24))
    ratio: Mapped[float | None]
    time_us: Mapped[float | None]


class Sampling(Base):
    """The raw samples of one ranked case that one attempt took, whatever became of it. Rows are only added."""

    __tablename__ = "samplings"
    __table_args__ = (UniqueConstraint("attempt_id", "case"), Index("ix_samplings_pool", "pool", "id"))

    id: Mapped[int] = mapped_column(BIG, primary_key=True)
    attempt_id: Mapped[int] = mapped_column(ForeignKey("attempts.id", ondelete="CASCADE"))
    pool: Mapped[str] = mapped_column(String(80))
    case: Mapped[str] = mapped_column(String(120))
    measurement: Mapped[dict[str, Any]]
    """`codec.to_json(autograder.contract.Measurement)`, as the judge sent it."""
    created_at: Mapped[datetime] = mapped_column(index=True)


class GradeChange(Base):
    """A submission's points changed: the trail behind its receipt. Rows are only added."""

    __tablename__ = "grade_changes"

    id: Mapped[int] = mapped_column(BIG, primary_key=True)
    submission_id: Mapped[int] = mapped_column(ForeignKey("submissions.id", ondelete="CASCADE"), index=True)
    at: Mapped[datetime]
    reason: Mapped[ChangeReason]
    before: Mapped[float | None]
    after: Mapped[float | None]
    formula_version: Mapped[int]


class ReceiptKey(Base):
    """The public half of a key that signs receipts; kept for ever, so that old receipts can be checked."""

    __tablename__ = "receipt_keys"

    id: Mapped[int] = mapped_column(primary_key=True)
    public: Mapped[str] = mapped_column(String(64), unique=True)
    """Base64 of its 32 bytes; the private half is a file of the server's."""
    created_at: Mapped[datetime]
    retired_at: Mapped[datetime | None]
    """Since then another key signs."""


class Artefact(Base):
    """A file that an attempt left, for staff: a judge's log, a compiler's output. Kept for a while, then removed."""

    __tablename__ = "artefacts"
    __table_args__ = (UniqueConstraint("attempt_id", "name"),)

    id: Mapped[int] = mapped_column(BIG, primary_key=True)
    attempt_id: Mapped[int] = mapped_column(ForeignKey("attempts.id", ondelete="CASCADE"))
    name: Mapped[str] = mapped_column(String(120))
    data: Mapped[bytes] = mapped_column(LargeBinary, deferred=True)
    size: Mapped[int]
    sha256: Mapped[str] = mapped_column(String(64))
    created_at: Mapped[datetime] = mapped_column(index=True)


class Forecast(Base):
    """When a submission was first expected to have its verdict; made once, to be held against what came."""

    __tablename__ = "forecasts"

    submission_id: Mapped[int] = mapped_column(ForeignKey("submissions.id", ondelete="CASCADE"), primary_key=True)
    lane: Mapped[Lane]
    made_at: Mapped[datetime] = mapped_column(index=True)
    position: Mapped[int]
    low_s: Mapped[float]
    """Seconds from `made_at` to the verdict: 10th, 50th and 90th percentile."""
    likely_s: Mapped[float]
    high_s: Mapped[float]
    scale_low: Mapped[float] = mapped_column(default=1.0)
    """What past misses had stretched each arm of the interval by (`server.grading.calibration`)."""
    scale_high: Mapped[float] = mapped_column(default=1.0)
    came_s: Mapped[float | None]
    """What it was; `None` until there is a verdict, and for ever where there was none or it was superseded."""
