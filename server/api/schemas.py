"""What the API takes and gives. Values of the contract pass as they are; rows never do."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from autograder.assignment import Argument, Case, LanePolicy, Limits
from autograder.contract import (
    FIRST_LANGUAGE,
    CaseResult,
    CompiledFor,
    Counted,
    DeviceKernel,
    Finding,
    GpuFacts,
    Lane,
    Language,
    Measurement,
    Mode,
    Phase,
    PhaseTime,
    RequirementResult,
    Review,
    State,
    StudentError,
    Verdict,
)
from autograder.profile_changes import Group, Unit
from autograder.profiles import Profile
from autograder.sanitizer import Sanitized
from server.courses.courses import AssignmentDetail, Membership
from server.leaderboard.comparands import Comparison
from server.leaderboard.steps import Opened, Step
from server.models import ApiToken, Line, Role, Submission, TokenScope, User
from server.submissions.submissions import SubmissionView


class Read(BaseModel):
    """What the API gives."""

    model_config = ConfigDict(from_attributes=True)


class Create(BaseModel):
    """What the API takes; an unknown key is refused, so that a typing error is no silent default."""

    model_config = ConfigDict(extra="forbid")


class ErrorRead(Read):
    """Every error of the API."""

    error: Annotated[str, Field(description="A name that programs can compare.", examples=["NotFoundError"])]
    message: Annotated[str, Field(description="A sentence for the reader.", examples=["There is no such course."])]
    field: Annotated[str, Field(description="The part of the input that is wrong; empty where it is none.")]


PublicKey = Annotated[str, Field(description="Ed25519, base64 of 32 bytes.", max_length=44)]
BrokerHash = Annotated[str, Field(description="SHA-256, in hex, of the node's password at the broker.", max_length=64)]


class NodeJoin(Create):
    """A machine asks to be a node. The key signs this request."""

    name: Annotated[str, Field(description="The node that the code was made for.", max_length=100)]
    code: Annotated[str, Field(description="Made by staff for this name; good once, for a day.", max_length=100)]
    public_key: PublicKey
    broker_hash: BrokerHash


class NodeJoined(Read):
    """What the machine has to know to be it."""

    name: str
    broker_url: Annotated[
        str, Field(description="Where its queue is, as which user; the password follows from its private key.")
    ]


class NodeOwnRead(Read):
    """What staff let a node grade."""

    name: str
    lanes: list[Lane]
    courses: Annotated[list[str] | None, Field(description="Slugs; null for every course.")]


class NodeKeyReplace(Create):
    """A node's new key; the old one signs this request."""

    public_key: PublicKey
    broker_hash: BrokerHash
    consent: Annotated[str, Field(description="The new key's signature: it is to replace the old.", max_length=100)]


class TokenCreate(Create):
    """Log in from a program."""

    email: str
    password: str
    name: Annotated[str, Field(description="What the token is for, such as the machine's name.")] = "command line"
    days: Annotated[
        int | None, Field(description="How long it lives; without it as long as is usual here.", examples=[30])
    ] = None
    scopes: Annotated[list[TokenScope], Field(description="What it opens; every token reads.", max_length=10)] = [
        TokenScope.read,
        TokenScope.submit,
    ]
    code: Annotated[
        str, Field(description="Of the second factor, or a recovery code; for the scope `staff`.", max_length=100)
    ] = ""


class TokenRead(Read):
    """A new token."""

    id: int
    name: str
    token: Annotated[str, Field(description="Shown this once.")]
    expires_at: datetime
    scopes: list[TokenScope]

    @classmethod
    def of(cls, token: ApiToken, text: str) -> TokenRead:
        """The row with the text that it does not keep."""
        return cls(
            id=token.id,
            name=token.name,
            token=text,
            expires_at=token.expires_at,
            scopes=[TokenScope(word) for word in token.scopes.split()],
        )


class MeRead(Read):
    """Who the token or the login belongs to."""

    id: int
    email: str
    name: str
    handle: Annotated[str, Field(description="The pseudonym that leaderboards show.")]
    is_admin: bool

    @classmethod
    def of(cls, user: User) -> MeRead:
        """The row without its secrets."""
        return cls.model_validate(user)


class CourseRead(Read):
    """A course that the caller is in."""

    slug: str
    title: str
    timezone: str
    role: Annotated[Role, Field(description="What the caller is in it.")]

    @classmethod
    def of(cls, membership: Membership) -> CourseRead:
        """The course with the member's role."""
        course = membership.course
        return cls(slug=course.slug, title=course.title, timezone=course.timezone, role=membership.role)


class PointsRead(Read):
    """What an assignment is worth."""

    correctness: float
    speed: float
    quiz: float


class AssignmentSummary(Read):
    """One line of the list of assignments."""

    slug: str
    title: str
    rung: int
    summary: str
    techniques: tuple[str, ...]
    prerequisites: tuple[str, ...]
    languages: tuple[Language, ...]
    lanes: tuple[Lane, ...]
    points: PointsRead
    version: Annotated[int, Field(description="Counts what the files said; submissions keep the one they met.")]
    open_at: datetime | None
    due_at: datetime | None
    late_until: datetime | None
    published: bool

    @classmethod
    def of(cls, detail: AssignmentDetail) -> AssignmentSummary:
        """The row with its manifest."""
        return cls.model_validate(_summary(detail))


class AssignmentRead(AssignmentSummary):
    """One assignment with everything that is public about it."""

    entry: str
    signature: Annotated[str, Field(examples=["vector_add(x, y, out, n)"])]
    arguments: tuple[Argument, ...]
    cases: tuple[Case, ...]
    limits: Limits
    policies: dict[str, LanePolicy]
    bundle: Annotated[str, Field(description="Content hash of the files that grade it.")]
    handout: Annotated[str, Field(description="Markdown.")]
    starters: Annotated[dict[str, str], Field(description="Language to the source of the file to start from.")]
    reading: Annotated[str, Field(description="The starter in plain PyTorch, to read; empty where there is none.")]

    @classmethod
    def of(cls, detail: AssignmentDetail) -> AssignmentRead:
        """The row with its manifest, handout and starters."""
        spec = detail.spec
        return cls.model_validate(
            _summary(detail)
            | {
                "entry": spec.entry,
                "signature": spec.signature(),
                "arguments": spec.arguments,
                "cases": spec.cases,
                "limits": spec.limits,
                "policies": spec.lanes,
                "bundle": detail.version.bundle_hash,
                "handout": detail.handout,
                "starters": detail.starters,
                "reading": detail.reading,
            }
        )


class StepRead(Read):
    """A published milestone: a kernel on the road to the reference."""

    name: str
    language: Language
    filename: str
    about: Annotated[str, Field(description="What it does, in a sentence.")]
    ratios: Annotated[dict[Lane, float], Field(description="Its time over the reference's, where it was graded.")]
    opened: Annotated[
        Opened | None,
        Field(description="Why its source is here: the caller has beaten it, it was due, or they are staff."),
    ]
    source: Annotated[str, Field(description="Empty while it is closed.")]

    @classmethod
    def of(cls, step: Step) -> StepRead:
        """The milestone as the caller may see it."""
        return cls.model_validate(step)


class SubmissionCreate(Create):
    """A source to grade."""

    mode: Annotated[
        Mode,
        Field(description="`run` uses the public cases; `profile` and `sanitize` look at one. None affects the grade."),
    ]
    case: Annotated[
        str,
        Field(
            max_length=120,
            description="To profile (empty: the ranked one with the most work) or sanitize (a small one).",
        ),
    ] = ""
    lane: Lane = Lane.cpu
    language: Language = FIRST_LANGUAGE
    filename: Annotated[str, Field(max_length=1000, description="Shown in tracebacks.")] = ""
    source: str


class PhaseRead(Read):
    """A phase and the time it began, in seconds since the epoch."""

    phase: Phase
    at: float


class ScoreRead(Read):
    """Points, and what there was to get."""

    correctness: float
    correctness_max: float
    speed: float
    speed_max: float
    counted: bool
    total: float
    maximum: float


class SubmissionSummary(Read):
    """One line of the history."""

    public_id: str
    number: int
    mode: Mode
    assignment: str
    lane: Lane
    language: Language
    filename: str
    source_hash: str
    author: str
    user: Annotated[int, Field(description="The author's number.")]
    uploaded_at: datetime
    state: State
    verdict: Verdict | None
    review: Review
    points: float | None
    ratio: float | None
    finished_at: datetime | None

    @classmethod
    def of(cls, submission: Submission) -> SubmissionSummary:
        """The row with its assignment, user and result, which have to be loaded."""
        return cls(
            **{name: getattr(submission, name) for name in cls.model_fields if name not in _ELSEWHERE},
            assignment=submission.assignment.slug,
            author=submission.user.name,
            user=submission.user_id,
            ratio=submission.result.ratio if submission.result else None,
        )


_ELSEWHERE = frozenset({"assignment", "author", "user", "ratio"})


class WaitRead(Read):
    """How long one that waits will take to its result: four of five such intervals hold what comes."""

    has_node: Annotated[bool, Field(description="Whether anything grades its lane now; without it there is no time.")]
    measured: Annotated[bool, Field(description="Whether the times behind it are measured; else they are a guess.")]
    low_s: float | None
    likely_s: float | None
    high_s: float | None
    approximate: Annotated[bool, Field(description="The queue was too long to work through all of it.")]


class SubmissionRead(Read):
    """One submission, as its page shows it. Students get of hidden cases the category and the verdict only."""

    public_id: Annotated[str, Field(description="The receipt number.")]
    number: Annotated[int, Field(description="Counts per student, assignment and mode.")]
    mode: Mode
    course: str
    assignment: str
    title: str
    version: int
    author: str
    lane: Lane
    language: Language
    filename: str
    source_hash: str
    trace: str
    uploaded_at: datetime
    is_late: bool
    state: State
    phase: Phase | None
    phases: tuple[PhaseRead, ...]
    verdict: Verdict | None
    review: Review
    explanation: str
    told_case: Annotated[str, Field(description="The public case that it is about; empty where it is about none.")]
    score: ScoreRead | None
    line: Annotated[Line, Field(description="Where in the queue it stands, or stood last.")]
    position: Annotated[
        int | None, Field(description="How many are before it; null once it runs, and for a moment after it came.")
    ]
    wait: WaitRead | None
    superseded_by: Annotated[int | None, Field(description="The number of the newer one that took its place.")]
    attempts_made: int
    cases: tuple[CaseResult, ...]
    cases_passed: Annotated[
        bool, Field(description="It still runs, but all its cases passed: the kernel is looked at, or times are taken.")
    ]
    error: StudentError | None
    log: str
    measurements: tuple[Measurement, ...]
    phase_times: tuple[PhaseTime, ...]
    findings: Annotated[tuple[Finding, ...], Field(description="Staff only.")]
    environment: dict[str, str]
    promises: tuple[str, ...]
    node: Annotated[str, Field(description="Which one graded it; empty until there is a result.")]
    gpu: Annotated[GpuFacts | None, Field(description="What its node read of the GPU meanwhile; samples: staff only.")]
    device_kernels: Annotated[tuple[DeviceKernel, ...], Field(description="Staff only.")]
    compiled: Annotated[
        tuple[CompiledFor, ...], Field(description="The kernels as compiled without a device; not measured.")
    ]
    counted: tuple[Counted, ...]
    requirements: tuple[RequirementResult, ...]
    profile: Profile | None
    sanitized: Sanitized | None
    settled: Annotated[bool, Field(description="False while its times have to be taken again before they count.")]
    pooled_attempts: Annotated[int, Field(description="Of how many attempts its samples are.")]
    confirmations: Annotated[int, Field(description="How often it was graded once more and passed.")]
    finished_at: datetime | None
    trouble: Annotated[str, Field(description="What of ours failed; empty where nothing did.")]
    revision: int
    is_final: bool

    @classmethod
    def of(cls, view: SubmissionView) -> SubmissionRead:
        """The view as it is; what may be seen was decided when it was made."""
        values = {name: getattr(view, name) for name in cls.model_fields if name != "phases"}
        return cls.model_validate({**values, "phases": [{"phase": phase, "at": at} for phase, at in view.phases]})


class ComparandRead(Read):
    """Something to hold a profile against."""

    key: Annotated[str, Field(description="`last`, `best`, or the file of a milestone or of the staff's kernel.")]
    title: str
    profiled: bool


class FigureRead(Read):
    """One figure of two profiles; null where it was not counted."""

    group: Group
    name: str
    unit: Annotated[Unit, Field(description="`times` is of the least possible.")]
    now: float | None
    before: float | None
    change: str


class ChangesRead(Read):
    """A profile held against another."""

    against: str
    offered: list[ComparandRead]
    closed: Annotated[int, Field(description="So many milestones are not open to the caller.")]
    why_not: Annotated[str, Field(description="Why the two cannot be compared; empty where they can.")]
    headline: Annotated[str, Field(description="What became of the device's time.")]
    sentences: Annotated[list[str], Field(description="The largest other differences, largest first.")]
    notes: list[str]
    figures: list[FigureRead]

    @classmethod
    def of(cls, found: Comparison) -> ChangesRead:
        """The comparison as the caller may see it."""
        made = found.changes
        return cls(
            against=found.chosen.key,
            offered=[ComparandRead(key=one.key, title=one.title, profiled=bool(one.made)) for one in found.offered],
            closed=found.closed,
            why_not=found.why_not,
            headline=made.headline if made else "",
            sentences=list(made.sentences) if made else [],
            notes=list(made.notes) if made else [],
            figures=[FigureRead.model_validate(row) for row in made.rows] if made else [],
        )


class AttemptRead(Read):
    """What a node may know of an attempt."""

    live: Annotated[bool, Field(description="The node has it, and no result of it is recorded.")]


class ArtefactRead(Read):
    """A file that an attempt left."""

    name: str
    size: Annotated[int, Field(description="In bytes.")]
    sha256: Annotated[str, Field(description="Of its content, as hex.")]
    created_at: datetime


class HealthRead(Read):
    """The server works."""

    status: Annotated[str, Field(examples=["ok"])]
    lanes: Annotated[list[Lane], Field(description="Where something can be graded now.")]


def _summary(detail: AssignmentDetail) -> dict[str, object]:
    spec, row = detail.spec, detail.row
    return {
        "slug": row.slug,
        "title": row.title,
        "rung": row.rung,
        "summary": spec.summary,
        "techniques": spec.techniques,
        "prerequisites": spec.prerequisites,
        "languages": spec.languages,
        "lanes": detail.lanes,
        "points": spec.points,
        "version": detail.version.number,
        "open_at": row.open_at,
        "due_at": detail.due_at,
        "late_until": detail.late_until,
        "published": row.published,
    }
