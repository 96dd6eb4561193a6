"""How far somebody has climbed: what counts of each assignment, what they last handed in, and what is open to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy import case, func, select
from sqlalchemy.orm import Session, joinedload

from autograder.scores import NextPoint, next_point
from server import quizzes
from server.courses.courses import AssignmentDetail, Membership
from server.gradebook import queries as gradebook
from server.gradebook.queries import Line, Standing
from server.grading.grades import earns_speed
from server.groups import groups
from server.models import Assignment, Mode, Submission, Verdict
from server.submissions import prerequisites


class Hold(StrEnum):
    """What somebody can do on a rung."""

    passed = "passed"
    open = "open"
    locked = "locked"
    """Its prerequisites come first."""
    closed = "closed"
    """It takes no more submissions, and was not passed."""


HOLDS: Mapping[Hold, str] = {
    Hold.passed: "passed",
    Hold.open: "open",
    Hold.locked: "locked",
    Hold.closed: "closed",
}


@dataclass(frozen=True)
class Rung:
    """One assignment on somebody's ladder.

    Attributes:
        points: what it comes to for them so far, lateness counted.
        maximum: what it can give in all.
        latest: the newest submission (not run), theirs or their group's; `None` before the first.
        counts: the submission that `points` are of.
        chosen: they said that it counts; otherwise it is the best.
        late_days: that it uses.
        missing: the prerequisites that they have to pass first.
        binding: until then it takes no submissions; otherwise that is advice.
        next_point: how far the next speed point of what counts is.
    """

    detail: AssignmentDetail
    points: float
    maximum: float
    passed: bool
    latest: Submission | None
    counts: Submission | None
    chosen: bool
    late_days: int
    quiz_right: int
    """Questions of the quiz that they answered right."""
    missing: tuple[Assignment, ...]
    binding: bool
    next_point: NextPoint | None
    closed: bool

    @property
    def share(self) -> float:
        """Of the points, 0 to 1."""
        return min(1.0, self.points / self.maximum) if self.maximum else 0.0

    @property
    def hold(self) -> Hold:
        """What they can do here."""
        if self.passed:
            return Hold.passed
        if self.closed:
            return Hold.closed
        return Hold.locked if self.missing and self.binding else Hold.open

    def is_due(self, now: datetime) -> bool:
        """Due in the future and not passed yet."""
        due_at = self.detail.due_at
        return due_at is not None and due_at > now and not self.passed

    @property
    def due_at(self) -> datetime:
        """The due date of a rung that has one."""
        assert self.detail.due_at is not None  # noqa: S101  # asked of rungs that are due
        return self.detail.due_at


@dataclass(frozen=True)
class _HandedIn:
    """What somebody and their group submitted to one assignment."""

    newest: int
    passed: bool


def climb(
    session: Session,
    member: Membership,
    details: Sequence[AssignmentDetail],
    now: datetime,
    standing: Standing | None = None,
) -> list[Rung]:
    """The member's own ladder, in the order of `details`.

    Args:
        standing: theirs, where the caller has it already.
    """
    standing = standing or gradebook.standing(session, member.course, member.user.id)
    lines = {line.detail.row.id: line for line in standing.lines}
    handed_in = _handed_in(session, member, [detail.row.id for detail in details])
    shown = {detail.row.id for detail in details}
    counting = {
        line.outcome.submission_id
        for line in standing.lines
        if line.outcome.submission_id and line.detail.row.id in shown
    }
    rows = _rows(session, {one.newest for one in handed_in.values()} | counting)
    right = _right(session, details, member)
    missing = prerequisites.missing(session, member, details, now)

    def rung(detail: AssignmentDetail) -> Rung:
        line, tried = lines.get(detail.row.id), handed_in.get(detail.row.id)
        counts = rows.get(line.outcome.submission_id or 0) if line else None
        return Rung(
            detail=detail,
            points=line.outcome.points if line else 0.0,
            maximum=detail.maximum_points,
            passed=tried is not None and tried.passed,
            latest=rows.get(tried.newest) if tried else None,
            counts=counts,
            chosen=line is not None and line.outcome.chosen,
            late_days=line.outcome.late_days if line else 0,
            quiz_right=right.get(detail.row.id, 0),
            missing=missing.get(detail.row.id, ()),
            binding=member.course.locks_rungs,
            next_point=_next_point(detail, counts, line),
            closed=detail.is_closed(now),
        )

    return [rung(detail) for detail in details]


def _handed_in(session: Session, member: Membership, assignment_ids: Sequence[int]) -> Mapping[int, _HandedIn]:
    together = groups.groups_in(session, member.course.id, [member.user.id])
    people = {member.user.id, *(one for group in together.values() for one in group.member_ids)}
    query = (
        select(
            Submission.assignment_id,
            Submission.user_id,
            func.max(Submission.id),
            func.max(case((Submission.verdict == Verdict.passed, 1), else_=0)),
        )
        .where(
            Submission.user_id.in_(people),
            Submission.assignment_id.in_(assignment_ids),
            Submission.mode == Mode.submission,
        )
        .group_by(Submission.assignment_id, Submission.user_id)
    )
    found: dict[int, _HandedIn] = {}
    for assignment_id, user_id, newest, passed in session.execute(query):
        group = together.get((member.user.id, assignment_id))
        if user_id != member.user.id and (group is None or user_id not in group.member_ids):
            continue
        before = found.get(assignment_id, _HandedIn(0, passed=False))
        found[assignment_id] = _HandedIn(max(before.newest, newest), before.passed or bool(passed))
    return found


def _rows(session: Session, ids: Iterable[int]) -> Mapping[int, Submission]:
    query = select(Submission).where(Submission.id.in_(sorted(ids))).options(joinedload(Submission.result))
    return {row.id: row for row in session.scalars(query.execution_options(populate_existing=True))}


def _right(session: Session, details: Sequence[AssignmentDetail], member: Membership) -> Mapping[int, int]:
    found: dict[int, int] = {}
    for one in quizzes.earned(session, details, member.user.id):
        found[one.assignment_id] = found.get(one.assignment_id, 0) + 1
    return found


def _next_point(detail: AssignmentDetail, counts: Submission | None, line: Line | None) -> NextPoint | None:
    """Where being faster would bring more: all passed, the lane gives speed points, and nobody withholds them."""
    result = counts.result if counts else None
    if counts is None or line is None or result is None or result.ratio is None or counts.verdict is not Verdict.passed:
        return None
    if not earns_speed(counts, result):
        return None
    return next_point(detail.spec, counts.lane, result.ratio, step=step_of(detail))


def step_of(detail: AssignmentDetail) -> float:
    """In which steps speed points are spoken of: halves where there are few, so that the next is never far."""
    return 0.5 if detail.spec.points.speed <= _FEW else 1.0


_FEW = 20.0


def late_days(standing: Standing) -> tuple[int, int]:
    """Late days left, and of how many."""
    return standing.left, max(0, standing.budget + standing.granted)
