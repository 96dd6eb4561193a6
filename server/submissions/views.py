"""What both fronts show of a submission, for staff and, redacted, for its student."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import inspect, select
from sqlalchemy.orm import Session, undefer

from autograder import codec
from autograder.contract import (
    CaseResult,
    CompiledFor,
    Counted,
    DeviceKernel,
    Finding,
    GpuFacts,
    GradeResult,
    Language,
    Measurement,
    PhaseTime,
    RequirementResult,
    StudentError,
    Verdict,
    Visibility,
)
from autograder.counters import doubt_of
from autograder.profiles import Profile
from autograder.samples import PooledCase, counted
from autograder.sanitizer import Sanitized
from server.config import Config
from server.courses import courses
from server.courses.deadlines import Deadlines, deadlines_of, own_dates, with_extension
from server.grading.forecast import Wait
from server.grading.grades import earns_speed
from server.models import (
    Assignment,
    AssignmentVersion,
    Attempt,
    AttemptState,
    Course,
    Extension,
    Lane,
    Line,
    Mode,
    Node,
    Phase,
    Result,
    Review,
    State,
    Submission,
    User,
    Work,
)

WAITING = frozenset({State.received, State.queued, State.superseded})
FINAL = frozenset({State.done, State.cancelled, State.failed})


@dataclass(frozen=True)
class _Context:
    course: Course
    assignment: Assignment
    version: AssignmentVersion
    author: str
    dates: Deadlines


@dataclass(frozen=True)
class Score:
    """The points of a submission and what there was to get; a lane without speed points has `speed_max` 0.

    Attributes:
        counted: counters give the speed points, as no lane of the course gives them for times.
    """

    correctness: float
    correctness_max: float
    speed: float
    speed_max: float
    counted: bool = False

    @property
    def total(self) -> float:
        """Everything got."""
        return self.correctness + self.speed

    @property
    def maximum(self) -> float:
        """Everything there was to get."""
        return self.correctness_max + self.speed_max


@dataclass(frozen=True)
class SubmissionView:
    """One submission as a page, the API or the command line shows it.

    Attributes:
        author: the student's name.
        phases: of the newest attempt, each with the time it began.
        verdict: `None` until there is a result.
        explanation: the answer in a few sentences, `""` until there is one.
        told_case: the name of the public case that it is about, `""` where it is about none.
        section: the anchor of the handout's section that an author names for it, `""` where none is named.
        score: `None` for a run, which counts for nothing, and until there is a result.
        line: where in the queue it stands, or stood last.
        work: what its attempt does, or the next one.
        wait: what one that waits can be told of its turn; `None` once it runs, and for a moment after it came.
        superseded_by: the number of the newer submission that took its place in the queue.
        cases: live ones while it runs, those of the result then.
        measurements: with the numbers that count, which are the pool's; the samples are this result's own.
        findings, device_kernels, held_reason, remeasure: staff only.
        node: which one graded it.
        profile: of a profile, once it was made.
        sanitized: the same of a sanitizer run.
        settled: false while its times have to be taken again before they count.
        pooled_attempts: of how many attempts the samples are that its speed is worked out from.
        confirmations: how often it was graded once more and passed.
        trouble: one sentence if our side failed, `""` otherwise.
        phase_times: of the result, with durations.
        revision: grows with every change that a watcher should see.
        for_staff: whether hidden cases and findings are in it.
    """

    id: int
    public_id: str
    number: int
    mode: Mode
    course: str
    course_title: str
    assignment: str
    title: str
    version: int
    user_id: int
    author: str
    lane: Lane
    language: Language
    filename: str
    source_hash: str
    trace: str
    uploaded_at: datetime
    due_at: datetime | None
    """For who handed it in: their extension applied."""
    is_late: bool
    """It was uploaded after that; queue time never makes it late."""
    state: State
    phase: Phase | None
    phases: tuple[tuple[Phase, float], ...]
    verdict: Verdict | None
    review: Review
    explanation: str
    told_case: str
    section: str
    score: Score | None
    line: Line
    work: Work
    wait: Wait | None
    superseded_by: int | None
    attempts_made: int
    cases: tuple[CaseResult, ...]
    error: StudentError | None
    log: str
    measurements: tuple[Measurement, ...]
    phase_times: tuple[PhaseTime, ...]
    findings: tuple[Finding, ...]
    held_reason: str
    remeasure: str
    environment: Mapping[str, str]
    promises: tuple[str, ...]
    node: str
    gpu: GpuFacts | None
    device_kernels: tuple[DeviceKernel, ...]
    compiled: tuple[CompiledFor, ...]
    requirements: tuple[RequirementResult, ...]
    counted: tuple[Counted, ...]
    profile: Profile | None
    sanitized: Sanitized | None
    settled: bool
    pooled_attempts: int
    confirmations: int
    finished_at: datetime | None
    trouble: str
    revision: int
    for_staff: bool

    @property
    def is_final(self) -> bool:
        """Whether nothing will change any more, unless staff regrade it."""
        return self.state in FINAL

    @property
    def is_waiting(self) -> bool:
        """Whether its turn in the queue is still to come."""
        return self.state in WAITING

    @property
    def position(self) -> int | None:
        """How many have their turn before it; `None` once it runs, and for a moment after it came."""
        return self.wait.ahead if self.wait is not None and self.is_waiting else None

    @property
    def waits_for_times(self) -> bool:
        """Whether its verdict is there and its speed is still to be measured."""
        return self.line is Line.measuring and self.verdict is not None and not self.is_final

    @property
    def cases_passed(self) -> bool:
        """Whether it runs, all its cases are behind it and passed: what follows looks at the kernel, or takes times."""
        after = self.phase in {Phase.measuring, Phase.profiling, Phase.reporting} and self.verdict is None
        passed = bool(self.cases) and all(case.verdict is Verdict.passed for case in self.cases)
        return self.state is State.running and after and passed

    @property
    def is_confirmed_now(self) -> bool:
        """Whether it has its grade and is, or waits to be, graded once more."""
        once_more = self.line is Line.confirm or (self.line is Line.regrade and self.score is not None)
        return once_more and not self.is_final and not self.mode.inspects

    @property
    def withholds_speed(self) -> bool:
        """Whether speed points and its place on the leaderboard wait, or are gone."""
        return self.review in {Review.held, Review.rejected} or (not self.settled and self.review is not Review.cleared)

    @property
    def has_grade(self) -> bool:
        """Whether there is a receipt of a grade."""
        return self.mode is Mode.submission and self.verdict is not None and self.score is not None

    def for_student(self) -> SubmissionView:
        """The same without anything of a hidden case beyond its category and verdict, and without findings."""
        if not self.for_staff:
            return self
        hidden = {case.name for case in self.cases if case.visibility is Visibility.hidden}
        blamed = next((case for case in self.cases if case.verdict not in {None, Verdict.passed}), None)
        about_hidden = blamed is not None and blamed.visibility is Visibility.hidden
        return dataclasses.replace(
            self,
            cases=tuple(case.for_student() for case in self.cases),
            # The judge words both for students already; that they say nothing of a hidden case is seen to here as well.
            error=None if about_hidden else self.error,
            explanation=_hidden_explanation(blamed) if blamed and about_hidden else self.explanation,
            # Why something is held says where the thresholds are.
            measurements=tuple(
                dataclasses.replace(item, held="", remeasure="")
                for item in self.measurements
                if item.case not in hidden
            ),
            phase_times=(),
            findings=(),
            device_kernels=(),
            # Looks at the GPU come at fixed times: their number would tell how long hidden cases took.
            gpu=dataclasses.replace(self.gpu, samples=()) if self.gpu else None,
            held_reason="",
            counted=tuple(dataclasses.replace(one, doubt="") for one in self.counted),
            remeasure="",
            for_staff=False,
        )


def view(
    session: Session,
    submission: Submission,
    *,
    staff: bool,
    max_attempts: int = Config.max_attempts,
    wait: Wait | None = None,
) -> SubmissionView:
    """Everything to show of a submission; needs no relationship of it loaded.

    Args:
        staff: show hidden cases and findings.
        max_attempts: after so many attempts it fails; only the sentence about our failures says it.
        wait: of `server.grading.snapshots`, which looks at a lane once for everybody.
    """
    context = _context(session, submission)
    attempt = _newest_attempt(session, submission)
    result = _result(session, submission)
    graded = codec.from_json(GradeResult, result.payload) if result is not None else None
    full = SubmissionView(
        **_of_row(submission),
        **_of_context(context, submission.uploaded_at),
        **_of_attempt(attempt),
        **_of_result(submission, result, graded, context),
        cases=graded.cases if graded else _live_cases(attempt),
        node=_node(session, result),
        wait=wait,
        superseded_by=_superseded_by(session, submission),
        trouble=_trouble(session, submission, context.course, max_attempts),
        for_staff=True,
    )
    return full if staff else full.for_student()


def _of_row(submission: Submission) -> dict[str, Any]:
    names = (
        "id", "public_id", "number", "mode", "user_id", "lane", "language", "filename", "source_hash", "trace",
        "uploaded_at", "state", "phase", "verdict", "review", "line", "attempts_made", "finished_at", "revision",
        "confirmations", "work",
    )  # fmt: skip
    return {name: getattr(submission, name) for name in names}


def _context(session: Session, submission: Submission) -> _Context:
    """What stands around it: what was just handed in brings it along, of others it is asked for at once."""
    if not {"assignment", "version", "user"} & inspect(submission).unloaded:
        course = session.get_one(Course, submission.course_id)
        dates = deadlines_of(session, submission.assignment, submission.user_id)
        return _Context(course, submission.assignment, submission.version, submission.user.name, dates)
    course, assignment, version, author, extension = session.execute(
        select(Course, Assignment, AssignmentVersion, User.name, Extension)
        .select_from(Submission)
        .join(Course, Course.id == Submission.course_id)
        .join(Assignment, Assignment.id == Submission.assignment_id)
        .join(AssignmentVersion, AssignmentVersion.id == Submission.version_id)
        .join(User, User.id == Submission.user_id)
        .outerjoin(
            Extension,
            (Extension.assignment_id == Submission.assignment_id)
            & (Extension.user_id == Submission.user_id)
            & Extension.withdrawn_at.is_(None),
        )
        .where(Submission.id == submission.id)
    ).one()
    dates = with_extension(own_dates(assignment, course.slack_s), extension)
    return _Context(course, assignment, version, author, dates)


def _of_context(context: _Context, uploaded_at: datetime) -> dict[str, Any]:
    return {
        "course": context.course.slug,
        "course_title": context.course.title,
        "assignment": context.assignment.slug,
        "title": context.assignment.title,
        "due_at": context.dates.due_at,
        "is_late": context.dates.is_late(uploaded_at),
        "version": context.version.number,
        "author": context.author,
    }


def _newest_attempt(session: Session, submission: Submission) -> Attempt | None:
    if submission.state is State.queued and submission.revision <= 1:
        # It was handed in a moment ago: nothing has happened to it yet.
        return None
    query = select(Attempt).where(Attempt.submission_id == submission.id).order_by(Attempt.fence.desc()).limit(1)
    return session.scalar(query)


def _of_attempt(attempt: Attempt | None) -> dict[str, Any]:
    phases = attempt.phases if attempt is not None else []
    return {"phases": tuple((Phase(item["phase"]), float(item["at"])) for item in phases)}


def _live_cases(attempt: Attempt | None) -> tuple[CaseResult, ...]:
    items = attempt.live_cases if attempt is not None else []
    return tuple(codec.from_json(CaseResult, item) for item in items)


def _result(session: Session, submission: Submission) -> Result | None:
    if submission.result_id is None:
        return None
    return session.scalar(select(Result).where(Result.id == submission.result_id).options(undefer(Result.payload)))


def _of_result(
    submission: Submission, result: Result | None, graded: GradeResult | None, context: _Context
) -> dict[str, Any]:
    return {
        "explanation": graded.explanation if graded else "",
        "told_case": graded.told_case if graded else "",
        "section": graded.section if graded else "",
        "score": _score(submission, result, context) if result and submission.mode is Mode.submission else None,
        "error": graded.error if graded else None,
        "log": graded.log if graded else "",
        "measurements": _measurements(result, graded) if result and graded else (),
        "gpu": graded.gpu if graded else None,
        "device_kernels": graded.device_kernels if graded else (),
        "compiled": graded.compiled if graded else (),
        "requirements": graded.requirements if graded else (),
        "counted": graded.counted if graded else (),
        "profile": graded.profile if graded else None,
        "sanitized": graded.sanitized if graded else None,
        "settled": result.settled if result else True,
        "pooled_attempts": result.pooled_attempts if result else 0,
        "phase_times": graded.phases if graded else (),
        "findings": graded.findings if graded else (),
        "held_reason": graded.held_reason or doubt_of(graded) if graded else "",
        "remeasure": graded.remeasure if graded else "",
        "environment": graded.environment if graded else {},
        "promises": graded.promises if graded else (),
    }


def _measurements(result: Result, graded: GradeResult) -> tuple[Measurement, ...]:
    pool = {item["case"]: codec.from_json(PooledCase, item) for item in result.pooled}
    return tuple(counted(item, pool[item.case]) if item.case in pool else item for item in graded.measurements)


def _node(session: Session, result: Result | None) -> str:
    if result is None:
        return ""
    query = select(Node.name).join(Attempt, Attempt.node_id == Node.id).where(Attempt.id == result.attempt_id)
    return session.scalars(query).one()


def _score(submission: Submission, result: Result, context: _Context) -> Score:
    spec = courses.spec_of(context.version)
    counted = courses.is_counted(context.assignment, context.version, submission.lane)
    policy = spec.policy(submission.lane)
    return Score(
        correctness=result.correctness_points,
        correctness_max=spec.points.correctness,
        speed=result.speed_points if earns_speed(submission, result) else 0.0,
        speed_max=spec.points.speed if (policy is not None and policy.speed_points) or counted else 0.0,
        counted=counted,
    )


def _superseded_by(session: Session, submission: Submission) -> int | None:
    if submission.superseded_by_id is None:
        return None
    return session.scalar(select(Submission.number).where(Submission.id == submission.superseded_by_id))


def _trouble(session: Session, submission: Submission, course: Course, max_attempts: int) -> str:
    """What of ours failed since it was last put in the queue for new work, and what that cost: nothing."""
    if submission.state is State.failed:
        return (
            f"Grading failed {submission.attempts_made} times on our side, not in your code. It used no quota and no "
            "late days. The staff were told and can grade it again."
        )
    failed = submission.attempts_made - (0 if submission.state in WAITING else 1)
    if failed < 1 or submission.state is State.cancelled:
        return ""
    when = _last_failure(session, submission, course.timezone)
    if submission.state in FINAL:
        return (
            f"Our node failed{when}; it cost you nothing. Attempt {submission.attempts_made} of {max_attempts} gave "
            "this result."
        )
    return (
        f"Our node failed{when}. Your place, your quota and your late days were kept. "
        f"Attempt {failed + 1} of {max_attempts}{' comes next' if submission.state in WAITING else ''}."
    )


def _last_failure(session: Session, submission: Submission, zone: str) -> str:
    """` at 22:14`, on the course's clock; with the day if that was another one than today's upload."""
    query = (
        select(Attempt.finished_at)
        .where(Attempt.submission_id == submission.id, Attempt.state.in_((AttemptState.lost, AttemptState.failed)))
        .order_by(Attempt.fence.desc())
        .limit(1)
    )
    ended = session.scalar(query)
    if ended is None:
        return ""
    at, uploaded = ended.astimezone(ZoneInfo(zone)), submission.uploaded_at.astimezone(ZoneInfo(zone))
    return f" at {at:%H:%M}" if at.date() == uploaded.date() else f" on {at.day} {at:%B} at {at:%H:%M}"


def _hidden_explanation(case: CaseResult) -> str:
    return f"A hidden case failed ({case.category}): {case.for_student().message}"
