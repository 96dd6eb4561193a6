"""What both fronts show of a submission, for staff and, redacted, for its student."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, func, select, tuple_
from sqlalchemy.orm import Session, undefer

from autograder import assignment as rungs
from autograder import codec
from autograder.contract import (
    CaseResult,
    Finding,
    GradeResult,
    Language,
    Measurement,
    PhaseTime,
    StudentError,
    Verdict,
    Visibility,
)
from server.config import Config
from server.models import (
    Assignment,
    AssignmentVersion,
    Attempt,
    Course,
    Lane,
    Mode,
    Phase,
    Result,
    Review,
    State,
    Submission,
    User,
)

_Context = Row[Course, Assignment, AssignmentVersion, str]
WAITING = frozenset({State.received, State.queued, State.superseded})
FINAL = frozenset({State.done, State.cancelled, State.failed})


@dataclass(frozen=True)
class Score:
    """The points of a submission and what there was to get; a lane without speed points has `speed_max` 0."""

    correctness: float
    correctness_max: float
    speed: float
    speed_max: float

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
        explanation: the answer in one sentence, `""` until there is one.
        score: `None` for a run, which counts for nothing, and until there is a result.
        position: how many in the queue of its lane are before it; `None` once it runs.
        cases: live ones while it runs, those of the result then.
        findings: staff only.
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
    state: State
    phase: Phase | None
    phases: tuple[tuple[Phase, float], ...]
    verdict: Verdict | None
    review: Review
    explanation: str
    score: Score | None
    position: int | None
    attempts_made: int
    cases: tuple[CaseResult, ...]
    error: StudentError | None
    log: str
    measurements: tuple[Measurement, ...]
    phase_times: tuple[PhaseTime, ...]
    findings: tuple[Finding, ...]
    held_reason: str
    environment: Mapping[str, str]
    promises: tuple[str, ...]
    finished_at: datetime | None
    trouble: str
    revision: int
    for_staff: bool

    @property
    def is_final(self) -> bool:
        """Whether nothing will change any more, unless staff regrade it."""
        return self.state in FINAL

    @property
    def is_late(self) -> bool:
        """Whether it was uploaded after the due date; queue time never makes it late."""
        return self.due_at is not None and self.uploaded_at > self.due_at

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
            measurements=tuple(item for item in self.measurements if item.case not in hidden),
            phase_times=(),
            findings=(),
            held_reason="",
            for_staff=False,
        )


def view(
    session: Session, submission: Submission, *, staff: bool, max_attempts: int = Config.max_attempts
) -> SubmissionView:
    """Everything to show of a submission; needs no relationship of it loaded.

    Args:
        staff: show hidden cases and findings.
        max_attempts: after so many attempts it fails; only the sentence about our failures says it.
    """
    context = _context(session, submission)
    attempt = _newest_attempt(session, submission)
    result = _result(session, submission)
    graded = codec.from_json(GradeResult, result.payload) if result is not None else None
    full = SubmissionView(
        **_of_row(submission),
        **_of_context(context),
        **_of_attempt(attempt),
        **_of_result(submission, result, graded, context.AssignmentVersion),
        cases=graded.cases if graded else _live_cases(attempt),
        position=_position(session, submission),
        trouble=_trouble(submission, max_attempts),
        for_staff=True,
    )
    return full if staff else full.for_student()


def _of_row(submission: Submission) -> dict[str, Any]:
    names = (
        "id", "public_id", "number", "mode", "user_id", "lane", "language", "filename", "source_hash", "trace",
        "uploaded_at", "state", "phase", "verdict", "review", "attempts_made", "finished_at", "revision",
    )  # fmt: skip
    return {name: getattr(submission, name) for name in names}


def _context(session: Session, submission: Submission) -> _Context:
    return session.execute(
        select(Course, Assignment, AssignmentVersion, User.name.label("author"))
        .select_from(Submission)
        .join(Course, Course.id == Submission.course_id)
        .join(Assignment, Assignment.id == Submission.assignment_id)
        .join(AssignmentVersion, AssignmentVersion.id == Submission.version_id)
        .join(User, User.id == Submission.user_id)
        .where(Submission.id == submission.id)
    ).one()


def _of_context(context: _Context) -> dict[str, Any]:
    return {
        "course": context.Course.slug,
        "course_title": context.Course.title,
        "assignment": context.Assignment.slug,
        "title": context.Assignment.title,
        "due_at": context.Assignment.due_at,
        "version": context.AssignmentVersion.number,
        "author": context.author,
    }


def _newest_attempt(session: Session, submission: Submission) -> Attempt | None:
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
    submission: Submission, result: Result | None, graded: GradeResult | None, version: AssignmentVersion
) -> dict[str, Any]:
    return {
        "explanation": graded.explanation if graded else "",
        "score": _score(submission, result, version) if result and submission.mode is Mode.submission else None,
        "error": graded.error if graded else None,
        "log": graded.log if graded else "",
        "measurements": graded.measurements if graded else (),
        "phase_times": graded.phases if graded else (),
        "findings": graded.findings if graded else (),
        "held_reason": graded.held_reason if graded else "",
        "environment": graded.environment if graded else {},
        "promises": graded.promises if graded else (),
    }


def _score(submission: Submission, result: Result, version: AssignmentVersion) -> Score:
    spec = codec.from_json(rungs.Assignment, version.manifest)
    policy = spec.policy(submission.lane)
    withheld = submission.review in {Review.held, Review.rejected}
    return Score(
        correctness=result.correctness_points,
        correctness_max=spec.points.correctness,
        speed=0.0 if withheld else result.speed_points,
        speed_max=spec.points.speed if policy is not None and policy.speed_points else 0.0,
    )


def _position(session: Session, submission: Submission) -> int | None:
    """How many wait before it, in the dispatcher's order: priority, place, id."""
    if submission.state not in WAITING:
        return None
    return session.scalar(
        select(func.count())
        .select_from(Submission)
        .where(
            Submission.lane == submission.lane,
            Submission.state.in_(WAITING),
            tuple_(Submission.priority, Submission.place_at, Submission.id)
            < tuple_(submission.priority, submission.place_at, submission.id),
        )
    )


def _trouble(submission: Submission, max_attempts: int) -> str:
    if submission.state is State.failed:
        return "Our side failed, not your code; nothing was charged. The staff can grade it again."
    if submission.attempts_made > 1 and submission.state not in FINAL:
        return f"Our node failed; nothing was charged. This is attempt {submission.attempts_made} of {max_attempts}."
    if submission.attempts_made > 1:
        return f"Our node failed before; nothing was charged. Attempt {submission.attempts_made} gave this result."
    return ""


def _hidden_explanation(case: CaseResult) -> str:
    return f"A hidden case failed ({case.category}): {case.for_student().message}"
