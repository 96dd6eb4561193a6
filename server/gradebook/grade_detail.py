"""One grade of the gradebook in full: what was handed in, what counts and why, what staff decided, what happened."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from server import audit
from server.audit import Entry
from server.courses.courses import AssignmentDetail, Membership
from server.courses.deadlines import Deadlines
from server.errors import NotFoundError
from server.gradebook import extensions, overrides
from server.gradebook import grade_inputs as facts_of
from server.gradebook.compute import Outcome, outcomes
from server.gradebook.points import plain
from server.gradebook.queries import grade_of
from server.groups import groups
from server.models import Enrolment, Extension, Grade, GradeOverride, Mode, Role, Submission, User

MOST_SUBMISSIONS = 200
MOST_ENTRIES = 30


@dataclass(frozen=True)
class HandedInView:
    """A submission of theirs, or of their group.

    Attributes:
        days_late: by this student's own dates.
        counts: it is the one.
        too_late: it was uploaded after the end.
        by: who handed it in, where that was a partner; otherwise `None`.
    """

    row: Submission
    days_late: int
    counts: bool
    too_late: bool
    by: User | None


@dataclass(frozen=True)
class CellView:
    """One grade in full.

    Attributes:
        computed: what it would come to without what staff set.
        late_days_left: of the student, over the whole term.
        left_out: so many more submissions are not listed.
    """

    student: User
    enrolment: Enrolment
    detail: AssignmentDetail
    grade: Grade
    computed: Outcome
    dates: Deadlines
    late_days: int
    late_days_left: int
    most_each: int | None
    penalty: float
    submissions: Sequence[HandedInView]
    left_out: int
    overrides: Sequence[GradeOverride]
    extensions: Sequence[Extension]
    history: Sequence[Entry]

    @property
    def override(self) -> GradeOverride | None:
        """What staff have set now."""
        return next((row for row in self.overrides if row.undone_at is None), None)

    @property
    def extension(self) -> Extension | None:
        """What holds now."""
        return next((row for row in self.extensions if row.withdrawn_at is None), None)


def cell(session: Session, member: Membership, user_id: int, slug: str) -> CellView:
    """A student's grade in an assignment.

    Raises:
        NotFoundError: there is no such student or assignment in this course.
    """
    course_id = member.course.id
    student, enrolment = _student(session, course_id, user_id)
    facts = facts_of.read(session, course_id, [user_id])
    detail = next((one for one in facts.details if one.slug == slug), None)
    grade = grade_of(session, user_id, detail.row.id) if detail else None
    if detail is None or grade is None:
        raise NotFoundError("There is no such grade.")
    place, found = (user_id, detail.row.id), outcomes(facts, user_id)
    without = dataclasses.replace(
        facts, overrides={where: value for where, value in facts.overrides.items() if where != place}
    )
    dates = facts.deadlines(user_id, detail)
    rows = _submissions(session, detail.row.id, user_id)
    views = [_view(row, grade, dates, user_id) for row in rows[:MOST_SUBMISSIONS]]
    days = facts.policy(user_id).days
    return CellView(
        student=student,
        enrolment=enrolment,
        detail=detail,
        grade=grade,
        computed=next(one for one in outcomes(without, user_id) if one.assignment_id == detail.row.id),
        dates=dates,
        late_days=days,
        late_days_left=days - sum(one.late_days for one in found),
        most_each=facts.most_each,
        penalty=facts.penalty,
        submissions=views,
        left_out=max(0, len(rows) - MOST_SUBMISSIONS),
        overrides=overrides.history(session, detail.row.id, user_id),
        extensions=extensions.of_course(session, course_id, user_id=user_id, assignment_id=detail.row.id),
        history=audit.log_of(session, course_id, about_id=user_id, assignment_id=detail.row.id, limit=MOST_ENTRIES),
    )


def why_counts(shown: CellView) -> list[str]:
    """How the grade comes about, in sentences."""
    if shown.grade.override_points is not None:
        return [f"Staff set {plain(shown.grade.override_points)} points. Later submissions do not change them."]
    outcome = shown.computed
    said = [_which(shown)]
    if outcome.quiz_points:
        said.append(f"The quiz gives {plain(outcome.quiz_points)} points.")
    said += _lateness(shown)
    if outcome.rubric_points:
        said.append(f"The rubric gives {plain(outcome.rubric_points)} points; lateness costs none of them.")
    return said


def _which(shown: CellView) -> str:
    counting = next((one for one in shown.submissions if one.counts), None)
    if counting is None:
        return "No submission counts: none was on time and graded."
    why = "the student chose it" if shown.grade.chosen else "it gives the most points after lateness"
    points = plain(shown.computed.submission_points)
    return f"Submission {counting.row.number} counts with {points} points: {why}."


def _lateness(shown: CellView) -> list[str]:
    outcome = shown.computed
    if not outcome.days_late and not outcome.late_penalty and not outcome.late_days:
        return ["Nothing that counts is late."]
    said = [f"It came {_days(outcome.days_late)} late and uses {_days(outcome.late_days, 'late day')}."]
    if outcome.late_penalty:
        share = f"{100 * shown.penalty:g} %"
        said.append(
            f"Lateness not covered by late days costs {share} of the points a day: {plain(outcome.late_penalty)}."
        )
    said.append(f"{_days(shown.late_days_left, 'late day')} of {shown.late_days} are left over the whole term.")
    return said


def _days(count: int, word: str = "day") -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"


def _student(session: Session, course_id: int, user_id: int) -> tuple[User, Enrolment]:
    query = (
        select(User, Enrolment)
        .join(Enrolment, Enrolment.user_id == User.id)
        .where(Enrolment.course_id == course_id, Enrolment.role == Role.student, User.id == user_id)
    )
    found = session.execute(query).one_or_none()
    if found is None:
        raise NotFoundError("There is no such student in this course.")
    return found[0], found[1]


def _submissions(session: Session, assignment_id: int, user_id: int) -> Sequence[tuple[Submission, User]]:
    """The newest first; one more than are shown says that there are more."""
    together = groups.together(session, assignment_id, user_id)
    query = (
        select(Submission, User)
        .join(User, User.id == Submission.user_id)
        .where(
            Submission.assignment_id == assignment_id,
            Submission.user_id.in_(together),
            Submission.mode == Mode.submission,
        )
        .order_by(Submission.id.desc())
    )
    return [(row, user) for row, user in session.execute(query)]


def _view(found: tuple[Submission, User], grade: Grade, dates: Deadlines, user_id: int) -> HandedInView:
    row, by = found
    return HandedInView(
        row=row,
        days_late=dates.days_late(row.uploaded_at),
        counts=row.id == grade.submission_id,
        too_late=dates.is_closed(row.uploaded_at),
        by=by if by.id != user_id else None,
    )
