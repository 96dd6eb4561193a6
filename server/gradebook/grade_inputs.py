"""Everything that the grades of some students in one course follow from, read with one query for each kind of thing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from server import db, quizzes
from server.courses.courses import AssignmentDetail, details_of
from server.courses.deadlines import Deadlines, deadlines_in, own_dates
from server.gradebook.latedays import LatePolicy
from server.groups import groups
from server.models import (
    ActiveChoice,
    Assignment,
    Course,
    GradeOverride,
    LateDayGrant,
    Mode,
    RubricSheet,
    Submission,
)
from server.quizzes import Earned

Place = tuple[int, int]
"""A student and an assignment: (user id, assignment id)."""
T = TypeVar("T")
MANY = 20
"""Of more people everybody's answers are read, not theirs alone."""


@dataclass(frozen=True)
class HandedIn:
    """A submission that has points."""

    id: int
    points: float
    uploaded_at: datetime


@dataclass(frozen=True)
class Facts:
    """Of some students in one course.

    Attributes:
        slack_s: of the course.
        extended: dates that an extension has moved; otherwise the assignment's own hold.
        submissions: in the order in which they were uploaded; in a group everybody's count for everybody.
        days: late days of each for the term, with what staff granted.
    """

    details: Sequence[AssignmentDetail]
    slack_s: int
    late_days: int
    most_each: int | None
    penalty: float
    extended: Mapping[Place, Deadlines]
    submissions: Mapping[Place, Sequence[HandedIn]]
    answers: Mapping[Place, Sequence[Earned]]
    chosen: Mapping[Place, int]
    overrides: Mapping[Place, float]
    rubric: Mapping[Place, float]
    granted: Mapping[int, int]

    def deadlines(self, user_id: int, detail: AssignmentDetail) -> Deadlines:
        """When the assignment is due and closes for this student."""
        return self.extended.get((user_id, detail.row.id)) or own_dates(detail.row, self.slack_s)

    def policy(self, user_id: int) -> LatePolicy:
        """What lateness costs this student."""
        return LatePolicy(max(0, self.late_days + self.granted.get(user_id, 0)), self.most_each, self.penalty)


def read(session: Session, course_id: int, user_ids: Collection[int] | None = None) -> Facts:
    """The facts about these students as the database has them now; `None`: about everybody."""
    slack_s, late_days, most_each, penalty = session.execute(
        select(Course.slack_s, Course.late_days, Course.late_days_per_assignment, Course.late_penalty).where(
            Course.id == course_id
        )
    ).one()
    details = details_of(session, course_id)
    people = None if user_ids is None else sorted(user_ids)
    return Facts(
        details=details,
        slack_s=slack_s,
        late_days=late_days,
        most_each=most_each,
        penalty=penalty,
        extended=deadlines_in(session, course_id, people),
        submissions=_submissions(session, course_id, people),
        answers=_answers(session, details, people),
        chosen=_chosen(session, course_id, people),
        overrides=_overrides(session, course_id, people),
        rubric=_rubric(session, course_id, people),
        granted=_granted(session, course_id, people),
    )


def _submissions(session: Session, course_id: int, people: Sequence[int] | None) -> Mapping[Place, list[HandedIn]]:
    """By whom they count for, the first first."""
    together = groups.groups_in(session, course_id, people)
    query = select(
        Submission.id,
        func.coalesce(Submission.points, 0.0),
        Submission.uploaded_at,
        Submission.user_id,
        Submission.assignment_id,
    )
    query = query.where(Submission.mode == Mode.submission, Submission.points.is_not(None))
    if people is None:
        query = query.where(Submission.course_id == course_id)
    else:
        # By assignment, not by course: so the index of a person's own submissions is used.
        partners = {member for group in together.values() for member in group.member_ids}
        rungs = select(Assignment.id).where(Assignment.course_id == course_id)
        query = query.where(Submission.user_id.in_(partners | set(people)), Submission.assignment_id.in_(rungs))
    wanted = None if people is None else set(people)
    found: dict[Place, list[HandedIn]] = {}
    rows = db.plain_rows(session, query.order_by(Submission.id))
    for submission_id, points, uploaded_at, user_id, assignment_id in rows:
        group = together.get((user_id, assignment_id))
        for member in group.member_ids if group else (user_id,):
            if wanted is None or member in wanted:
                found.setdefault((member, assignment_id), []).append(HandedIn(submission_id, points, uploaded_at))
    return found


def _answers(
    session: Session, details: Sequence[AssignmentDetail], people: Sequence[int] | None
) -> Mapping[Place, list[Earned]]:
    if people is None or len(people) > MANY:
        earned = quizzes.earned(session, details)
    else:
        earned = [one for person in people for one in quizzes.earned(session, details, person)]
    found: dict[Place, list[Earned]] = {}
    for one in earned:
        found.setdefault((one.user_id, one.assignment_id), []).append(one)
    return found


def _chosen(session: Session, course_id: int, people: Sequence[int] | None) -> Mapping[Place, int]:
    query = select(ActiveChoice.user_id, ActiveChoice.assignment_id, ActiveChoice.submission_id).where(
        ActiveChoice.course_id == course_id, ActiveChoice.withdrawn_at.is_(None)
    )
    return _by_place(session, query if people is None else query.where(ActiveChoice.user_id.in_(people)))


def _overrides(session: Session, course_id: int, people: Sequence[int] | None) -> Mapping[Place, float]:
    query = select(GradeOverride.user_id, GradeOverride.assignment_id, GradeOverride.points).where(
        GradeOverride.course_id == course_id, GradeOverride.undone_at.is_(None)
    )
    return _by_place(session, query if people is None else query.where(GradeOverride.user_id.in_(people)))


def _rubric(session: Session, course_id: int, people: Sequence[int] | None) -> Mapping[Place, float]:
    query = (
        select(RubricSheet.user_id, RubricSheet.assignment_id, RubricSheet.points)
        .join(Assignment, Assignment.id == RubricSheet.assignment_id)
        .where(Assignment.course_id == course_id)
    )
    return _by_place(session, query if people is None else query.where(RubricSheet.user_id.in_(people)))


def _by_place(session: Session, query: Select[int, int, T]) -> Mapping[Place, T]:
    return {(user_id, assignment_id): value for user_id, assignment_id, value in session.execute(query)}


def _granted(session: Session, course_id: int, people: Sequence[int] | None) -> Mapping[int, int]:
    query = select(LateDayGrant.user_id, func.sum(LateDayGrant.days)).where(LateDayGrant.course_id == course_id)
    query = query if people is None else query.where(LateDayGrant.user_id.in_(people))
    return {user_id: int(days) for user_id, days in session.execute(query.group_by(LateDayGrant.user_id))}
