"""How far somebody has climbed: what counts of each assignment, and what they last handed in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from server.courses.service import AssignmentDetail, Membership
from server.models import Mode, State, Submission, Verdict
from server.quizzes import service as quizzes
from server.quizzes.service import Earned


@dataclass(frozen=True)
class Rung:
    """One assignment on somebody's ladder.

    Attributes:
        points: of their best submission, the one that counts, and of the quiz.
        maximum: what a lane with speed points can give in all, and the quiz.
        latest: their newest submission (not run), `None` before the first.
        best: the submission that `points` are of.
    """

    detail: AssignmentDetail
    points: float
    maximum: float
    passed: bool
    latest: Submission | None
    best: Submission | None
    quiz_right: int
    """Questions of the quiz that they answered right."""
    is_due: bool
    """Due in the future and not passed yet."""

    @property
    def share(self) -> float:
        """Of the points, 0 to 1."""
        return self.points / self.maximum if self.maximum else 0.0

    @property
    def speed_maximum(self) -> float:
        """What a lane with speed points gives for speed."""
        return speed_points(self.detail)

    @property
    def due_at(self) -> datetime:
        """The due date of a rung that has one."""
        assert self.detail.row.due_at is not None  # noqa: S101  # asked of rungs that are due
        return self.detail.row.due_at


def speed_points(detail: AssignmentDetail) -> float:
    """What there is for speed; nothing where none of its lanes gives speed points."""
    return detail.spec.points.speed if any(policy.speed_points for policy in detail.spec.lanes.values()) else 0.0


def maximum_points(detail: AssignmentDetail) -> float:
    """Correctness, speed if any of its lanes gives speed points, and the quiz if it has one."""
    return detail.spec.points.correctness + speed_points(detail) + detail.quiz_points


def climb(session: Session, member: Membership, details: Sequence[AssignmentDetail], now: datetime) -> list[Rung]:
    """The member's own ladder, in the order of `details`."""
    mine = _submissions(session, member)
    earned: dict[int, list[Earned]] = {}
    for one in quizzes.earned(session, details, member.user.id):
        earned.setdefault(one.assignment_id, []).append(one)
    return [_rung(detail, mine.get(detail.row.id, []), earned.get(detail.row.id, []), now) for detail in details]


def _submissions(session: Session, member: Membership) -> Mapping[int, list[Submission]]:
    """Their submissions by assignment, newest first."""
    query = (
        select(Submission)
        .where(
            Submission.course_id == member.course.id,
            Submission.user_id == member.user.id,
            Submission.mode == Mode.submission,
        )
        .order_by(Submission.id.desc())
    )
    found: dict[int, list[Submission]] = {}
    for submission in session.scalars(query):
        found.setdefault(submission.assignment_id, []).append(submission)
    return found


def _rung(detail: AssignmentDetail, submissions: Sequence[Submission], earned: Sequence[Earned], now: datetime) -> Rung:
    best = best_of(submissions)
    passed = any(item.verdict is Verdict.passed for item in submissions)
    due_at = detail.row.due_at
    return Rung(
        detail=detail,
        points=(best.points or 0.0 if best else 0.0) + sum(one.points for one in earned),
        maximum=maximum_points(detail),
        passed=passed,
        latest=submissions[0] if submissions else None,
        best=best,
        quiz_right=len(earned),
        is_due=due_at is not None and due_at > now and not passed,
    )


def best_of(submissions: Iterable[Submission]) -> Submission | None:
    """The one with the most points, the earliest of equals; resubmitting never hurts."""
    graded = [item for item in submissions if item.points is not None and item.state is State.done]
    return max(graded, key=lambda item: (item.points or 0.0, -item.id), default=None)
