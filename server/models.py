"""The tables.

    User ─< Enrolment >─ Course ─< Assignment ─< AssignmentVersion >─ Bundle
      │                               │
      ├──< Submission >───────────────┤        Submission ─< Attempt ─ Result ─< CaseRow
      └──< QuizAnswer >─── Quiz >─────┘
    LoginSession, ApiToken >─ User              Attempt >─ Node      Attempt ─< Artefact, Sampling
    Submission ─ Forecast, ─< GradeChange       AuditEntry, Alert, Rehearsal, Service, Tick, NodeInvite, AccountsCheck
                                                ReceiptKey

A submission is what a student handed in and where it is; an attempt is one try of ours at grading it; a result is what
one attempt found: its payload is never changed afterwards, what is worked out from it follows the pool of samples and
the formula. `Submission.result_id` points at the result that counts: a regrade adds a result and moves the pointer.
Runs (practice) are submissions with `mode = run`: they number apart and count for nothing.

Times are UTC and end in `_at`. Relationships are `lazy="raise"`: what a page needs, its query loads.
"""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, ClassVar

from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    DateTime,
    Enum,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Text,
    TypeDecorator,
    UniqueConstraint,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship

from autograder.contract import Kind, Lane, Language, Mode, Phase, Review, State, Verdict, Visibility, Work

__all__ = ["Kind", "Lane", "Language", "Mode", "Phase", "Review", "State", "Verdict", "Visibility", "Work"]


class Role(StrEnum):
    """What a person is in one course."""

    student = "student"
    ta = "ta"
    instructor = "instructor"


class Line(StrEnum):
    """Where in the queue a submission stands; `server.grading.policy` says who goes first and what each is kept."""

    submission = "submission"
    """It has no verdict yet."""
    measuring = "measuring"
    """It passed and waits for its times, on lanes that measure apart."""
    run = "run"
    regrade = "regrade"
    superseded = "superseded"
    """A newer one took its place."""
    confirm = "confirm"
    """It has its grade, and is graded once more when nobody else waits: to confirm it, or because a node was sick."""


class AlertKind(StrEnum):
    """What staff are told of; docs/operations.md has a page of its runbook for each."""

    submission_failed = "submission_failed"
    """It has no result after the last attempt; ours."""
    node_rests = "node_rests"
    node_silent = "node_silent"
    suspect_held = "suspect_held"
    """Nodes went silent while they ran it."""
    queue_stuck = "queue_stuck"
    accounts_wrong = "accounts_wrong"
    """Received is not final plus in flight."""
    clock_jumped = "clock_jumped"
    recorder_behind = "recorder_behind"
    forged_message = "forged_message"
    disk_full = "disk_full"
    node_unfit = "node_unfit"
    """A node takes nothing because of what it found out about itself."""
    result_held = "result_held"
    """A measurement waits for a person."""
    confirmation_failed = "confirmation_failed"
    """It had passed, and did not when it was graded once more."""


class ChangeReason(StrEnum):
    """Why a submission's points are other than before."""

    graded = "graded"
    pooled = "pooled"
    """The same source was measured again: its samples were added."""
    rescored = "rescored"
    """Staff had it worked out anew by another formula."""
    reviewed = "reviewed"
    """Staff held, cleared or rejected it; or it was held until they look."""


class AttemptState(StrEnum):
    """Where an attempt is: `dispatched` (claimed, sent), `running` (a node has it), then one of the ends."""

    dispatched = "dispatched"
    running = "running"
    finished = "finished"
    lost = "lost"
    """Its lease expired; ours."""
    failed = "failed"
    """Its node said that it could not; ours."""


class UtcDateTime(TypeDecorator[datetime]):
    """A time that is always aware and in UTC; SQLite stores it without its zone."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Any) -> datetime | None:  # noqa: ARG002
        """Refuse naive times."""
        if value is not None and value.tzinfo is None:
            raise ValueError("a time has to know its zone")
        return value.astimezone(UTC) if value is not None else None

    def process_result_value(self, value: datetime | None, dialect: Any) -> datetime | None:  # noqa: ARG002
        """Give SQLite's times back their zone."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Base(DeclarativeBase):
    """Every table's parent: constraint names that migrations can rely on."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(column_0_label)s",
            "uq": "uq_%(table_name)s_%(column_0_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        datetime: UtcDateTime(),
        str: Text(),
        bytes: LargeBinary(),
        dict[str, Any]: JSON(),
        list[Any]: JSON(),
        **{
            enum: Enum(enum, native_enum=False, length=24, values_callable=lambda e: [m.value for m in e])
            for enum in (
                AlertKind,
                AttemptState,
                ChangeReason,
                Lane,
                Language,
                Line,
                Mode,
                Phase,
                Review,
                Role,
                State,
                Verdict,
                Visibility,
                Work,
            )
        },
    }


class User(Base):
    """A person. `handle` is the pseudonym shown on leaderboards unless they choose their name."""

    __tablename__ = "users"

    id: Mapped[int] = mapped_column(primary_key=True)
    email: Mapped[str] = mapped_column(String(254), unique=True)
    """Lower case."""
    name: Mapped[str] = mapped_column(String(120))
    handle: Mapped[str] = mapped_column(String(40), unique=True)
    password_hash: Mapped[str | None]
    is_admin: Mapped[bool] = mapped_column(default=False)
    created_at: Mapped[datetime]
    disabled_at: Mapped[datetime | None]


class LoginSession(Base):
    """A browser that is logged in; the cookie holds the token, the table only its hash."""

    __tablename__ = "login_sessions"

    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    token_hash: Mapped[str] = mapped_column(String(64), unique=True)
    csrf_token: Mapped[str] = mapped_column(String(64))
    created_at: Mapped[datetime]
    last_seen_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    agent: Mapped[str] = mapped_column(String(200), default="")
    address: Mapped[str] = mapped_column(String(64), default="")

    user: Mapped[User] = relationship(lazy="raise")


class ApiToken(Base):
    """A token for the command line; shown once, stored as its hash."""

    __tablename__ = "api_tokens"

    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    name: Mapped[str] = mapped_column(String(80))
    token_hash: Mapped[str] = mapped_column(String(64), unique=True)
    start: Mapped[str] = mapped_column(String(12))
    """Its first characters, so that its owner can tell tokens apart."""
    created_at: Mapped[datetime]
    last_used_at: Mapped[datetime | None]
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]

    user: Mapped[User] = relationship(lazy="raise")


class LoginAttempt(Base):
    """A failed login, for the rate limit; rows older than an hour are swept."""

    __tablename__ = "login_attempts"

    id: Mapped[int] = mapped_column(primary_key=True)
    address: Mapped[str] = mapped_column(String(64), index=True)
    email: Mapped[str] = mapped_column(String(254), index=True)
    at: Mapped[datetime]


class Course(Base):
    """A course in one term."""

    __tablename__ = "courses"

    id: Mapped[int] = mapped_column(primary_key=True)
    slug: Mapped[str] = mapped_column(String(60), unique=True)
    title: Mapped[str] = mapped_column(String(200))
    timezone: Mapped[str] = mapped_column(String(60), default="UTC")
    """IANA name; due dates are shown in it beside the viewer's own."""
    created_at: Mapped[datetime]


class Enrolment(Base):
    """A person in a course."""

    __tablename__ = "enrolments"
    __table_args__ = (UniqueConstraint("course_id", "user_id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    course_id: Mapped[int] = mapped_column(ForeignKey("courses.id", ondelete="CASCADE"))
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    role: Mapped[Role]
    section: Mapped[str] = mapped_column(String(60), default="")
    show_name: Mapped[bool] = mapped_column(default=False)
    """The student chose to stand on leaderboards by name."""
    created_at: Mapped[datetime]
    dropped_at: Mapped[datetime | None]

    course: Mapped[Course] = relationship(lazy="raise")
    user: Mapped[User] = relationship(lazy="raise")


class Bundle(Base):
    """An assignment's files as one tar, named by its content hash; nodes fetch it by that name."""

    __tablename__ = "bundles"

    hash: Mapped[str] = mapped_column(String(80), primary_key=True)
    data: Mapped[bytes] = mapped_column(LargeBinary, deferred=True)
    size: Mapped[int]
    created_at: Mapped[datetime]


class Assignment(Base):
    """A rung in a course. What the files say stands in its versions; what staff decide stands here."""

    __tablename__ = "assignments"
    __table_args__ = (UniqueConstraint("course_id", "slug"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    course_id: Mapped[int] = mapped_column(ForeignKey("courses.id", ondelete="CASCADE"))
    slug: Mapped[str] = mapped_column(String(60))
    rung: Mapped[int]
    title: Mapped[str] = mapped_column(String(200))
    open_at: Mapped[datetime | None]
    due_at: Mapped[datetime | None]
    late_until: Mapped[datetime | None]
    published: Mapped[bool] = mapped_column(default=True)
    version_id: Mapped[int | None] = mapped_column(
        ForeignKey("assignment_versions.id", use_alter=True, name="fk_assignments_version_id_assignment_versions")
    )
    quiz_id: Mapped[int | None] = mapped_column(
        ForeignKey("quizzes.id", use_alter=True, name="fk_assignments_quiz_id_quizzes")
    )
    """Its questions as they are now; `None` where it never had any."""
    created_at: Mapped[datetime]

    course: Mapped[Course] = relationship(lazy="raise")
    version: Mapped[AssignmentVersion | None] = relationship(lazy="raise", foreign_keys=[version_id], post_update=True)
    quiz: Mapped[Quiz | None] = relationship(lazy="raise", foreign_keys=[quiz_id], post_update=True)


class AssignmentVersion(Base):
    """What an assignment's files said at one time. Submissions keep the version they were handed in against."""

    __tablename__ = "assignment_versions"
    __table_args__ = (UniqueConstraint("assignment_id", "number"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    assignment_id: Mapped[int] = mapped_column(ForeignKey("assignments.id", ondelete="CASCADE"))
    number: Mapped[int]
    bundle_hash: Mapped[str] = mapped_column(ForeignKey("bundles.hash"))
    grading_hash: Mapped[str] = mapped_column(String(80))
    """Of what decides verdicts and ratios: results of versions that share it are ranked together."""
    manifest: Mapped[dict[str, Any]]
    """`codec.to_json(autograder.assignment.Assignment)`."""
    handout: Mapped[str]
    """Markdown."""
    starters: Mapped[dict[str, Any]]
    """Language → source."""
    milestones: Mapped[list[Any]]
    created_at: Mapped[datetime]


class Quiz(Base):
    """An assignment's questions and the key to them at one time. Answers keep the one that they were given to."""

    __tablename__ = "quizzes"
    __table_args__ = (UniqueConstraint("assignment_id", "number"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    assignment_id: Mapped[int] = mapped_column(ForeignKey("assignments.id", ondelete="CASCADE"))
    number: Mapped[int]
    digest: Mapped[str] = mapped_column(String(80))
    """Content hash of questions and key."""
    questions: Mapped[list[Any]]
    """`autograder.quiz.Question` as JSON, in their order."""
    keys: Mapped[list[Any]] = mapped_column(JSON, deferred=True)
    """`autograder.quiz.Key` as JSON, in the same order. Staff only; read by `server.quizzes` alone."""
    created_at: Mapped[datetime]


class QuizAnswer(Base):
    """One answer of one person to one question. Rows are only added; `right` alone may change, and to true only."""

    __tablename__ = "quiz_answers"
    __table_args__ = (
        UniqueConstraint("assignment_id", "user_id", "question", "number"),
        Index("ix_quiz_answers_course_id_user_id", "course_id", "user_id"),
        CheckConstraint("number > 0", name="number"),
    )

    id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
    course_id: Mapped[int] = mapped_column(ForeignKey("courses.id"))
    assignment_id: Mapped[int] = mapped_column(ForeignKey("assignments.id"))
    quiz_id: Mapped[int] = mapped_column(ForeignKey("quizzes.id"), index=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    question: Mapped[str] = mapped_column(String(40))
    """Its name."""
    number: Mapped[int]
    """Counts per person and question, from 1: the try."""
    response: Mapped[dict[str, Any]]
    """`autograder.quiz.Response` as JSON."""
    right: Mapped[bool]
    remarked_at: Mapped[datetime | None]
    """When it became right, because staff corrected the key."""
    trace: Mapped[str] = mapped_column(String(32))
    uploaded_at: Mapped[datetime]
    """Decides lateness, as a submission's."""


class Node(Base):
    """A machine that grades. The table holds its token's SHA-256, the key that signs what it sends."""

    __tablename__ = "nodes"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(60), unique=True)
    key: Mapped[str] = mapped_column(String(64))
    lanes: Mapped[list[Any]]
    slots: Mapped[int] = mapped_column(default=0)
    works: Mapped[list[Any]] = mapped_column(default=lambda: [work.value for work in Work])
    """What of a grading it does, `Work` values: a node may be kept for measuring."""
    draining: Mapped[bool] = mapped_column(default=False)
    """It says so itself: it ends, or its owner drains it."""
    drained_at: Mapped[datetime | None]
    """Staff took it out of the queue; what it works on may finish."""
    quarantine: Mapped[bool] = mapped_column(default=False)
    """Set aside for submissions under which another node went silent; it gets nothing else."""
    facts: Mapped[dict[str, Any]]
    clock_skew_s: Mapped[float | None]
    """Its clock less ours when its newest report was applied: travel time included, so a few tenths mean nothing."""
    calibration: Mapped[dict[str, Any] | None]
    """`codec.to_json(autograder.contract.Calibration)`: its noise floor by its golden kernel."""
    suspect_since_at: Mapped[datetime | None]
    """What it measured from then to `suspect_until_at` is measured again; the newest such time that it reported."""
    suspect_until_at: Mapped[datetime | None]
    suspect_handled: Mapped[bool] = mapped_column(default=True)
    """What it measured in that time has been put back in the queue."""
    last_seen_at: Mapped[datetime | None]
    created_at: Mapped[datetime]
    disabled_at: Mapped[datetime | None]


class Submission(Base):
    """What a student handed in: the bytes and where they are. Accepted means this row exists."""

    __tablename__ = "submissions"
    __table_args__ = (
        UniqueConstraint("assignment_id", "user_id", "mode", "number"),
        UniqueConstraint("user_id", "request_key"),
        Index("ix_submissions_queue", "state", "lane", "line", "place_at"),
        Index("ix_submissions_own", "user_id", "assignment_id", "lane", "state"),
        Index("ix_submissions_assignment_id_lane", "assignment_id", "lane", "mode"),
        CheckConstraint("number > 0", name="number"),
    )

    id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
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
    """Whose samples are one: a hash of its person, assignment, how that is graded, lane, and source without comments
    and layout. `None` for runs."""
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

    id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
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

    id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
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

    id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
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

    id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
    attempt_id: Mapped[int] = mapped_column(ForeignKey("attempts.id", ondelete="CASCADE"))
    pool: Mapped[str] = mapped_column(String(80))
    case: Mapped[str] = mapped_column(String(120))
    measurement: Mapped[dict[str, Any]]
    """`codec.to_json(autograder.contract.Measurement)`, as the judge sent it."""
    created_at: Mapped[datetime] = mapped_column(index=True)


class GradeChange(Base):
    """A submission's points changed: the trail behind its receipt. Rows are only added."""

    __tablename__ = "grade_changes"

    id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
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
    """Another one signs since then."""


class AuditEntry(Base):
    """Who changed what, when and why. Rows are only added."""

    __tablename__ = "audit_entries"

    id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
    at: Mapped[datetime] = mapped_column(index=True)
    actor_id: Mapped[int | None] = mapped_column(ForeignKey("users.id"), index=True)
    """`None`: the system, or a command on the server's own console."""
    action: Mapped[str] = mapped_column(String(60))
    """A verb and a noun, `user.created`."""
    subject: Mapped[str] = mapped_column(String(120), index=True)
    """What it was done to, `submission:01J…`."""
    detail: Mapped[dict[str, Any]]
    reason: Mapped[str] = mapped_column(default="")


class Artefact(Base):
    """A file that an attempt left, for staff: a judge's log, a compiler's output. Kept for a while, then removed."""

    __tablename__ = "artefacts"
    __table_args__ = (UniqueConstraint("attempt_id", "name"),)

    id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
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


class Tick(Base):
    """A message of ours that travelled through the results queue: how far the recorder has heard what nodes said."""

    __tablename__ = "ticks"

    nonce: Mapped[str] = mapped_column(String(32), primary_key=True)
    made_at: Mapped[datetime] = mapped_column(index=True)
    heard_at: Mapped[datetime | None]


class Service(Base):
    """A process of ours that says it is alive; silent ones are removed after a day."""

    __tablename__ = "services"
    __table_args__ = (UniqueConstraint("kind", "instance"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    kind: Mapped[str] = mapped_column(String(24))
    """`web`, `dispatcher` or `recorder`."""
    instance: Mapped[str] = mapped_column(String(120))
    """Host and process id."""
    started_at: Mapped[datetime]
    last_seen_at: Mapped[datetime]
    facts: Mapped[dict[str, Any]]


class Alert(Base):
    """Something staff have to know; the same again, while it is open, raises the count."""

    __tablename__ = "alerts"
    __table_args__ = (Index("ix_alerts_open", "resolved_at", "kind", "subject"),)

    id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
    kind: Mapped[AlertKind]
    subject: Mapped[str] = mapped_column(String(120))
    """`submission:01J…`, `node:anvil`, `lane:cpu`."""
    message: Mapped[str]
    count: Mapped[int] = mapped_column(default=1)
    first_at: Mapped[datetime]
    last_at: Mapped[datetime]
    resolved_at: Mapped[datetime | None]
    resolved_by_id: Mapped[int | None] = mapped_column(ForeignKey("users.id"))
    """`None` while it is open, and where what it was about ended by itself."""


class Rehearsal(Base):
    """A chaos run and what it found; the page that says that all submissions are accounted for shows the newest."""

    __tablename__ = "rehearsals"

    id: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[datetime]
    passed: Mapped[bool]
    machine: Mapped[str] = mapped_column(String(200))
    report: Mapped[dict[str, Any]]


class AccountsCheck(Base):
    """The newest check of a course's accounts; the dispatcher makes one every minute and pages show it."""

    __tablename__ = "accounts_checks"

    course_id: Mapped[int] = mapped_column(ForeignKey("courses.id", ondelete="CASCADE"), primary_key=True)
    checked_at: Mapped[datetime]
    received: Mapped[int]
    final: Mapped[int]
    in_flight: Mapped[int]
    problems: Mapped[list[Any]]
    """`server.accounting.checks.Problem`, as plain JSON."""
    took_s: Mapped[float]


class NodeInvite(Base):
    """Lets one machine join as a node, once; the table holds the hash of what its owner was given."""

    __tablename__ = "node_invites"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(60))
    token_hash: Mapped[str] = mapped_column(String(64), unique=True)
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]
