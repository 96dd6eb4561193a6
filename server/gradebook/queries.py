"""What pages, API, commands and other services ask of grades."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from server import dirty_grades
from server.courses.courses import AssignmentDetail, Membership
from server.courses.deadlines import Deadlines
from server.db import now
from server.gradebook import choices
from server.gradebook import grade_inputs as facts_of
from server.gradebook.compute import Outcome, outcomes
from server.gradebook.grade_inputs import Facts, HandedIn
from server.models import ActiveChoice, Assignment, Course, Grade, Submission

__all__ = [
    "Charge",
    "Line",
    "Standing",
    "choose_active",
    "facts_for",
    "grade_of",
    "is_published",
    "refresh",
    "standing",
    "standing_of",
    "would_charge",
]


@dataclass(frozen=True)
class Line:
    """One assignment of a student's grades.

    Attributes:
        outcome: as the student may read it: points that staff set only once they are published.
        submission: the one that counts, `None` where none does.
        published: staff have published it.
        closed: nothing can be handed in any more.
    """

    detail: AssignmentDetail
    outcome: Outcome
    submission: Submission | None
    dates: Deadlines
    published: bool
    closed: bool

    @property
    def is_final(self) -> bool:
        """It is published, and nothing that is handed in can change it."""
        return self.published and self.closed

    @property
    def is_empty(self) -> bool:
        """There is nothing yet that could give points."""
        outcome = self.outcome
        return self.submission is None and not (outcome.quiz_points or outcome.points)


@dataclass(frozen=True)
class Standing:
    """Where a student stands in the term.

    Attributes:
        budget: late days that everybody has; `granted`: what staff gave besides, or took (below 0).
        used: by the submissions that count now, in assignments that are not open any more too.
    """

    lines: tuple[Line, ...]
    budget: int
    granted: int
    used: int
    most_each: int | None
    penalty: float

    @property
    def left(self) -> int:
        """Late days that nothing uses so far."""
        return max(0, self.budget + self.granted) - self.used

    @property
    def points(self) -> float:
        """What it comes to so far, as the assignments weigh."""
        return sum(line.outcome.points * line.detail.row.weight for line in self.lines)

    @property
    def possible(self) -> float:
        """What all assignments can give, as they weigh."""
        return sum(line.outcome.possible * line.detail.row.weight for line in self.lines)


@dataclass(frozen=True)
class Charge:
    """What a submission uploaded at some time would use.

    Attributes:
        days_late: how many days late it would be.
        charged: late days that it would use if it came to count with full points.
        left: what would be left then.
        uncovered: days for which there is no late day; each costs `penalty` of the points.
        refused: why it would not be taken; `""` where it would.
    """

    days_late: int
    charged: int
    left: int
    uncovered: int
    penalty: float
    refused: str


def refresh(session: Session, course_id: int, user_id: int | None = None) -> None:
    """Have a student's grades worked out anew before the transaction is committed; `None`: everybody's.

    Whoever needs them within the transaction calls `server.dirty_grades.settle` then.
    """
    dirty_grades.grades(session, course_id, user_id)


def grade_of(session: Session, user_id: int, assignment_id: int) -> Grade | None:
    """The grade as it is stored; `None` for who is no student."""
    query = select(Grade).where(Grade.user_id == user_id, Grade.assignment_id == assignment_id)
    return session.scalar(query.execution_options(populate_existing=True))


def is_published(_session: Session, assignment: Assignment, user_id: int | None = None) -> bool:  # noqa: ARG001
    """Whether students read the grades of this assignment as final, this student's among them."""
    return assignment.grades_published_at is not None


def choose_active(
    session: Session,
    member: Membership,
    assignment: Assignment,
    submission: Submission | None,
    *,
    at: datetime | None = None,
) -> ActiveChoice | None:
    """Let this submission count for the member, whatever the others have; `None`: the best one again."""
    return choices.choose(session, member, assignment, submission, now=at or now(session))


def standing(session: Session, course: Course, user_id: int) -> Standing:
    """A student's grades and late days, as they may read them."""
    return standing_of(session, facts_for(session, course, user_id), user_id)


def facts_for(session: Session, course: Course, user_id: int) -> Facts:
    """All that a student's grades follow from: also what is not open to them, or not published."""
    return facts_of.read(session, course.id, [user_id])


def standing_of(session: Session, facts: Facts, user_id: int) -> Standing:
    """What all these facts come to for a student, as they are or as they might be, and as the student may read it.

    Late days are spent over the whole term. What is published is the grade that staff have, and of days as many are
    left as the next submission will find, whatever of that staff set where grades are not published.
    """
    at = now(session)
    found, readable = outcomes(facts, user_id), _published(facts)
    unpublished = found if readable == facts else outcomes(readable, user_id)
    read = [
        (detail, outcome if detail.row.grades_published_at is not None else other)
        for detail, outcome, other in zip(facts.details, found, unpublished, strict=True)
        if detail.is_visible(at, staff=False)
    ]
    submissions = _submissions(session, [outcome for _, outcome in read])
    lines = tuple(
        Line(
            detail,
            outcome,
            submissions.get(outcome.submission_id or 0),
            (dates := facts.deadlines(user_id, detail)),
            detail.row.grades_published_at is not None,
            dates.is_closed(at),
        )
        for detail, outcome in read
    )
    used = sum(outcome.late_days for outcome in found)
    granted = facts.granted.get(user_id, 0)
    return Standing(lines, facts.late_days, granted, used, facts.most_each, facts.penalty)


def would_charge(facts: Facts, assignment: Assignment, user_id: int, at: datetime) -> Charge:
    """What a submission uploaded at `at` would use, if it came to count with full points; nothing is stored.

    Args:
        facts: all of them (`facts_for`).
    """
    detail = next(one for one in facts.details if one.row.id == assignment.id)
    dates, policy = facts.deadlines(user_id, detail), facts.policy(user_id)
    late = dates.days_late(at)
    found = outcomes(_with_upload(facts, user_id, detail, at), user_id)
    charged = next(one.late_days for one in found if one.assignment_id == assignment.id)
    left = policy.days - sum(one.late_days for one in found)
    refused = f"{detail.title} accepts no more submissions." if dates.is_closed(at) else ""
    return Charge(late, charged, left, max(0, late - charged), policy.penalty, refused)


def _with_upload(facts: Facts, user_id: int, detail: AssignmentDetail, at: datetime) -> Facts:
    """As if there were one more submission, with full points, and it were to count."""
    place = (user_id, detail.row.id)
    submissions = {**facts.submissions, place: [HandedIn(-1, detail.submission_points, at)]}
    overrides = {where: value for where, value in facts.overrides.items() if where != place}
    return dataclasses.replace(facts, submissions=submissions, chosen={}, overrides=overrides)


def _published(facts: Facts) -> Facts:
    """Without what students may not read yet: what staff set or gave in assignments whose grades are not published."""
    open_ = {detail.row.id for detail in facts.details if detail.row.grades_published_at is not None}
    return dataclasses.replace(
        facts,
        overrides={place: value for place, value in facts.overrides.items() if place[1] in open_},
        rubric={place: value for place, value in facts.rubric.items() if place[1] in open_},
    )


def _submissions(session: Session, found: Sequence[Outcome]) -> Mapping[int, Submission]:
    wanted = [one.submission_id for one in found if one.submission_id]
    return {row.id: row for row in session.scalars(select(Submission).where(Submission.id.in_(wanted)))}
