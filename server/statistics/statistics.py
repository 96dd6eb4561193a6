"""One assignment and a whole course in numbers. Every number is one query, however many handed in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from server.courses.courses import AssignmentDetail, Membership
from server.models import (
    Assignment,
    Enrolment,
    Grade,
    Lane,
    Language,
    Mode,
    Role,
    Submission,
    User,
    Verdict,
)
from server.statistics import parts
from server.statistics.numbers import Bin, Summary, histogram, summary
from server.statistics.parts import Hour, LaneTimes

POINT_BINS = 20


@dataclass(frozen=True)
class AssignmentStatistics:
    """One assignment of a course.

    Attributes:
        students: enrolled and not dropped; `tried`: of those, with a submission or a run; `handed_in`; `passed`.
        grades, points: what they have now, of all students with a grade row; `possible` is the most.
        attempts: submissions until the first that passed → students; of those who never passed, `never`.
        late_days: late days used → students.
        hours: by hour, the oldest first, without gaps.
    """

    students: int
    tried: int
    handed_in: int
    passed: int
    points: tuple[Bin, ...]
    point_summary: Summary | None
    possible: float
    lanes: tuple[LaneTimes, ...]
    attempts: Mapping[int, int]
    never: int
    verdicts: Mapping[Verdict, int]
    languages: Mapping[Language, int]
    late_days: Mapping[int, int]
    hours: tuple[Hour, ...]
    submissions: int
    runs: int


@dataclass(frozen=True)
class Row:
    """An assignment among all of a course."""

    assignment: Assignment
    tried: int
    handed_in: int
    passed: int
    submissions: int
    runs: int
    points: Summary | None
    possible: float


@dataclass(frozen=True)
class CourseStatistics:
    """A whole course."""

    students: int
    rows: tuple[Row, ...]
    totals: tuple[Bin, ...]
    total_summary: Summary | None
    total_possible: float


def of_course(session: Session, member: Membership) -> CourseStatistics:
    """Every assignment in a line, and the sums of points.

    Raises:
        ForbiddenError: to a student.
    """
    member.require_staff()
    course_id = member.course.id
    assignments = session.scalars(
        select(Assignment).where(Assignment.course_id == course_id).order_by(Assignment.rung, Assignment.slug)
    ).all()
    counts = parts.counts_of(session, course_id)
    points, possible, totals = parts.points_of_all(session, course_id)
    rows = tuple(
        Row(
            one,
            **vars(counts.get(one.id, parts.Counts(0, 0, 0, 0, 0))),
            points=summary(points.get(one.id, [])),
            possible=possible.get(one.id, 0.0),
        )
        for one in assignments
    )
    most = sum(possible.values())
    return CourseStatistics(
        parts.students(session, course_id), rows, histogram(totals, 0.0, most, POINT_BINS), summary(totals), most
    )


def of_assignment(session: Session, member: Membership, detail: AssignmentDetail) -> AssignmentStatistics:
    """One assignment.

    Raises:
        ForbiddenError: to a student.
    """
    member.require_staff()
    course_id, row = member.course.id, detail.row
    counts = parts.counts_of(session, course_id, row.id).get(row.id, parts.Counts(0, 0, 0, 0, 0))
    grades = session.execute(
        select(Grade.points, Grade.possible, Grade.late_days).where(
            Grade.assignment_id == row.id, Grade.user_id.in_(parts.student_ids(course_id))
        )
    ).all()
    points, possible = [grade.points for grade in grades], max((grade.possible for grade in grades), default=0.0)
    attempts, never = parts.attempts_of(session, course_id, row.id)
    verdicts, languages = parts.mix_of(session, course_id, row.id)
    return AssignmentStatistics(
        students=parts.students(session, course_id),
        **vars(counts),
        points=histogram(points, 0.0, max([possible, *points], default=0.0), POINT_BINS),
        point_summary=summary(points),
        possible=possible,
        lanes=parts.lanes_of(session, row.id),
        attempts=attempts,
        never=never,
        verdicts=verdicts,
        languages=languages,
        late_days=dict(sorted(Counter(grade.late_days for grade in grades if grade.late_days).items())),
        hours=parts.hours_of(session, row.id),
    )


def export(session: Session, member: Membership, detail: AssignmentDetail) -> list[tuple[object, ...]]:
    """One line for each student of what the statistics are made of: a table for other programs.

    Columns: `EXPORT_COLUMNS`.
    """
    member.require_staff()
    row, course_id = detail.row, member.course.id
    people = session.execute(
        select(User.id, User.name, User.email, Enrolment.section, Grade.points, Grade.possible, Grade.late_days)
        .join(Enrolment, Enrolment.user_id == User.id)
        .outerjoin(Grade, (Grade.user_id == User.id) & (Grade.assignment_id == row.id))
        .where(Enrolment.course_id == course_id, Enrolment.role == Role.student, Enrolment.dropped_at.is_(None))
        .order_by(User.name, User.id)
    ).all()
    made = {
        found.user_id: found
        for found in session.execute(
            select(
                Submission.user_id,
                func.sum(parts.one(Submission.mode == Mode.submission)).label("submissions"),
                func.sum(parts.one(Submission.mode == Mode.run)).label("runs"),
                func.sum(parts.one(parts.PASSED)).label("passed"),
                func.max(Submission.uploaded_at).label("last"),
            )
            .where(Submission.assignment_id == row.id)
            .group_by(Submission.user_id)
        )
    }
    best = parts.best_ratios(session, row.id)
    return [
        (
            name, email, section, points, possible, late_days,
            int(made[user_id].submissions) if user_id in made else 0,
            int(made[user_id].runs) if user_id in made else 0,
            bool(user_id in made and made[user_id].passed),
            made[user_id].last if user_id in made else None,
            *(best.get((user_id, lane)) for lane in Lane),
        )
        for user_id, name, email, section, points, possible, late_days in people
    ]  # fmt: skip


EXPORT_COLUMNS = (
    "name", "email", "section", "points", "possible", "late days", "submissions", "runs", "passed", "last handed in",
    *(f"best ratio {lane.value}" for lane in Lane),
)  # fmt: skip
