"""Everything that a submission's page shows, worked out once for the page and for each of its live parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session, joinedload

from autograder.assignment import Assignment
from autograder.contract import CaseResult, Counted, Lane, Measurement, Phase, State, StudentError, Verdict, Visibility
from autograder.counters import told
from autograder.scores import NextPoint, next_point
from server.courses import courses
from server.grading import appeals
from server.grading.forecast import Wait
from server.leaderboard.milestones import baselines
from server.models import Assignment as Row
from server.models import (
    AssignmentVersion,
    ChangeReason,
    GradeChange,
    Regrade,
    RegradeItem,
    Result,
    Submission,
    User,
)
from server.nodes import nodes
from server.pages.advice import Advice, advise
from server.pages.help import Section, section_for
from server.pages.labels import MODES, PHASES, Label, status_label
from server.pages.points_note import beyond_note
from server.pages.roofline import Roofline, last_before, roofline
from server.pages.spread import Spread, spreads
from server.pages.svg_geometry import DamageMap, Interval, RatioScale, damage_map, ratio_scale
from server.submissions import submissions
from server.submissions.submissions import SubmissionView

MOST_MILESTONES = 6


@dataclass(frozen=True)
class PhaseRow:
    """One phase of the newest attempt: how long it took, or has taken so far if it is the current one."""

    name: str
    seconds: float
    is_current: bool


@dataclass(frozen=True)
class Failure:
    """A case that did not pass, with its picture."""

    case: CaseResult
    map: DamageMap | None


@dataclass(frozen=True)
class Speed:
    """The ratio over all ranked cases, with its interval."""

    ratio: float
    low: float
    high: float


@dataclass(frozen=True)
class PointsChange:
    """One change of a submission's points, and why.

    Attributes:
        said: of a regrade, the reason that staff gave for it.
    """

    at: datetime
    reason: ChangeReason
    before: float | None
    after: float | None
    said: str = ""


@dataclass(frozen=True)
class Said:
    """An appeal that nobody has answered yet."""

    text: str
    at: datetime


@dataclass(frozen=True)
class Sheet:
    """What the templates of a submission print.

    Attributes:
        own: the viewer handed it in.
        zone: the course's, for its times.
        sizes: of each public case, by its name, `n=1,000`, and its type.
        failures: cases that did not pass and of which there is more to say than their row does, the one
            that the explanation is about first.
        error: what to mark in the source: of the load, or of the first case that raised.
        practice: its lane gives no speed points: times are for practice.
        measured: every ranked case with its place on `scale`.
        counted: what was counted of calls, each with title, sentence and value of its counters.
        roofline: the public ranked cases against the device's limits; `None` on a lane without a data sheet.
        spreads: the samples of the public ranked cases.
        advice: what to try next; `None` where nothing was measured against limits.
        section: of the handout, that helps with what went wrong.
        changes: of its points, in order.
        appeal: against what was decided about its speed, while it is open; for staff.
        points_note: what else its assignment gives points for; empty where it can have them all, or is not final.
        has_board: its lane has a leaderboard.
        has_quiz: its assignment has a quiz; false where it is not final.
    """

    view: SubmissionView
    own: bool
    zone: str
    label: Label
    phases: tuple[PhaseRow, ...]
    elapsed_s: float
    sizes: dict[str, tuple[str, str]]
    failures: tuple[Failure, ...]
    error: StudentError | None
    passed: int
    practice: bool
    speed: Speed | None
    next_point: NextPoint | None
    measured: tuple[tuple[Measurement, Interval], ...]
    scale: RatioScale
    counted: tuple[tuple[Counted, list[tuple[str, str, int]]], ...]
    roofline: Roofline | None
    spreads: tuple[Spread, ...]
    advice: Advice | None
    section: Section | None
    changes: tuple[PointsChange, ...]
    appeal: Said | None
    points_note: str
    has_board: bool
    has_quiz: bool

    @property
    def pairs(self) -> int:
        """How many pairs of this result's own are shown."""
        return sum(len(item.pairs) for item, _ in self.measured)

    @property
    def measuring_clocks(self) -> str:
        """The range of the GPU's clock while it measured, `1,950–1,980 MHz`; empty where nobody looked."""
        gpu = self.view.gpu
        seen = [item.sm_mhz for item in gpu.samples if item.phase is Phase.measuring] if gpu else []
        if not seen:
            return self.view.environment.get("gpu clocks", "")
        return f"{min(seen):,} MHz" if min(seen) == max(seen) else f"{min(seen):,}–{max(seen):,} MHz"

    @property
    def title(self) -> str:
        """For the browser's tab: the answer first."""
        return f"{self.label.word} · {self.name} · {self.view.title}"

    @property
    def may_cancel(self) -> bool:
        """Whether its student can still take it out of the queue: it has not started and has no verdict."""
        return self.own and self.view.is_waiting and self.view.verdict is None

    @property
    def name(self) -> str:
        """`Submission 3`."""
        return f"{MODES[self.view.mode]} {self.view.number}"


def sheet_of(session: Session, submission: Submission, viewer: User, *, wait: Wait | None, max_attempts: int) -> Sheet:
    """The submission as `viewer`, who may see it, sees it; its assignment and course have to be loaded."""
    staff = submissions.is_staff_of(session, viewer, submission)
    view = submissions.view(session, submission, staff=staff, max_attempts=max_attempts, wait=wait)
    version = session.get_one(AssignmentVersion, submission.version_id)
    spec = courses.spec_of(version)
    limits = _limits(session, submission, spec, view)
    now = datetime.now(UTC)
    speed = _speed(session, submission)
    policy, whole = spec.policy(submission.lane), _with_its_quiz(session, submission, version, view)
    scale = ratio_scale([(item.ratio_low, item.ratio, item.ratio_high) for item in view.measurements])
    return Sheet(
        view=view,
        own=submission.user_id == viewer.id,
        zone=submission.assignment.course.timezone,
        label=status_label(view.state, view.verdict, view.phase, view.line, view.mode),
        phases=_phases(view, now),
        elapsed_s=max(0.0, ((view.finished_at or now) - view.uploaded_at).total_seconds()),
        sizes=_sizes(spec),
        failures=tuple(_failures(_told_first(view))),
        error=view.error or next((case.error for case in view.cases if case.error), None),
        passed=sum(case.verdict is Verdict.passed for case in view.cases),
        practice=policy is None or not policy.speed_points,
        speed=speed,
        next_point=next_point(spec, submission.lane, speed.ratio) if speed and _earns_speed(view) else None,
        measured=tuple(zip(view.measurements, scale.intervals, strict=True)),
        scale=scale,
        roofline=limits,
        counted=tuple((item, told(item)) for item in view.counted),
        spreads=spreads(view.measurements, [case.name for case in spec.cases]),
        advice=advise(limits, view.compiled, spec.techniques) if limits and not view.withholds_speed else None,
        section=_section(version, view),
        changes=_changes(session, submission),
        appeal=_appeal(session, submission) if staff else None,
        points_note=_points_note(session, whole, view) if whole else "",
        has_board=policy is not None and policy.ranks,
        has_quiz=whole is not None and bool(whole.questions),
    )


def _with_its_quiz(
    session: Session, submission: Submission, version: AssignmentVersion, view: SubmissionView
) -> courses.AssignmentDetail | None:
    """Of what is final only: until then every change of it makes a sheet for each viewer, and this asks more."""
    if view.score is None or not view.is_final:
        return None
    query = select(Row).where(Row.id == submission.assignment_id).options(joinedload(Row.quiz))
    return courses.AssignmentDetail(session.scalars(query).one(), version)


def _points_note(session: Session, detail: courses.AssignmentDetail, view: SubmissionView) -> str:
    most = view.score.maximum if view.score else 0.0
    in_service: frozenset[Lane] = frozenset()
    if most < detail.submission_points:
        in_service = nodes.lanes_in_service(session, now=datetime.now(UTC), course_id=detail.row.course_id)
    return beyond_note(detail, most, in_service)


def _earns_speed(view: SubmissionView) -> bool:
    """Whether being faster would give it points: only where everything about it is correct."""
    return view.score is not None and view.score.correctness >= view.score.correctness_max


def _changes(session: Session, submission: Submission) -> tuple[PointsChange, ...]:
    """As values: parts of the live stream are made after the session has ended."""
    row = GradeChange
    query = (
        select(row.at, row.reason, row.before, row.after, func.coalesce(Regrade.reason, ""))
        .outerjoin(RegradeItem, (RegradeItem.submission_id == row.submission_id) & (RegradeItem.applied_at == row.at))
        .outerjoin(Regrade, (Regrade.id == RegradeItem.regrade_id) & row.reason.in_(_BY_REGRADE))
        .where(row.submission_id == submission.id)
        .order_by(row.id)
    )
    return tuple(PointsChange(*found) for found in session.execute(query))


def _appeal(session: Session, submission: Submission) -> Said | None:
    """As a value, for the same reason."""
    appeal = appeals.open_appeal(session, submission)
    return Said(appeal.text, appeal.created_at) if appeal else None


_BY_REGRADE = (ChangeReason.regraded, ChangeReason.rescored)


def _limits(session: Session, submission: Submission, spec: Assignment, view: SubmissionView) -> Roofline | None:
    if not view.measurements:
        return None
    last, known = last_before(session, submission), _milestones(session, submission)
    return roofline(spec, submission.lane, view.measurements, last=last, milestones=known)


def _milestones(session: Session, submission: Submission) -> list[tuple[str, float]]:
    """Names and ratios of those in its language; none where its version is graded otherwise than they were."""
    assignment = submission.assignment
    versions = (submission.version_id, assignment.version_id)
    hashes = {session.get_one(AssignmentVersion, number).grading_hash for number in versions if number is not None}
    if len(hashes) > 1:
        return []
    found = baselines(session, assignment, submission.lane, language=submission.language)
    return [(item.name, item.ratio) for item in found[:MOST_MILESTONES]]


def _section(version: AssignmentVersion, view: SubmissionView) -> Section | None:
    """That of the case which is told; a hidden one has no pattern to show, and its verdict says enough."""
    told = _told_first(view)
    pattern = next((case.mismatch.pattern for case in told if case.mismatch), None)
    return section_for(version.handout, view.verdict, pattern, named=view.section)


def _told_first(view: SubmissionView) -> list[CaseResult]:
    """The cases in order, but for the one that the explanation is about."""
    return sorted(view.cases, key=lambda case: case.name != view.told_case)


def _speed(session: Session, submission: Submission) -> Speed | None:
    result = session.get(Result, submission.result_id) if submission.result_id is not None else None
    if result is None or result.ratio is None or result.ratio_low is None or result.ratio_high is None:
        return None
    return Speed(result.ratio, result.ratio_low, result.ratio_high)


def _phases(view: SubmissionView, now: datetime) -> tuple[PhaseRow, ...]:
    """A phase lasts until the next one begins, the last one until the end."""
    end = (view.finished_at or now).timestamp()
    ends = [*(at for _, at in view.phases[1:]), end]
    running = view.state is State.running
    rows = zip(view.phases, ends, strict=False)
    return tuple(
        # A node's clock may be a little off ours.
        PhaseRow(PHASES[phase], max(0.0, ended - at), running and index == len(view.phases) - 1)
        for index, ((phase, at), ended) in enumerate(rows)
    )


def _sizes(spec: Assignment) -> dict[str, tuple[str, str]]:
    return {
        case.name: (", ".join(f"{name}={value:,}" for name, value in case.size.items()), case.dtype)
        for case in spec.cases
    }


def _failures(cases: Sequence[CaseResult]) -> list[Failure]:
    return [
        Failure(case, damage_map(case.mismatch) if case.mismatch else None)
        for case in cases
        if case.verdict not in {None, Verdict.passed}
        and (case.mismatch is not None or case.error is not None or case.visibility is Visibility.public)
    ]
