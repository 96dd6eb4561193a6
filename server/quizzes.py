"""Take answers to an assignment's questions, and show a person their quiz.

An answer is stored, whatever it is, and never changed. The key to a question leaves this module in one place,
`_explained`: to staff, to who answered right, and to who can win nothing more there and whose due date is over.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy import case, func, select
from sqlalchemy.orm import Session

from autograder import codec
from autograder import quiz as quizzes
from autograder.quiz import AnswerError, Key, Question, Response
from server import dirty_grades
from server.accounts import accounts
from server.courses import courses
from server.courses.courses import AssignmentDetail, Membership
from server.errors import ConflictError, InvalidInputError, NotFoundError
from server.models import Assignment, Enrolment, Quiz, QuizAnswer, Role, User


class Standing(StrEnum):
    """What a person can do about a question."""

    open = "open"
    right = "right"
    used_up = "used_up"
    """No try is left."""
    closed = "closed"
    """The assignment takes no answers any more."""


@dataclass(frozen=True)
class QuestionView:
    """One question as one person sees it.

    Attributes:
        number: its place in the quiz, from 1.
        answers: theirs, oldest first.
        points: what they have for it; `maximum` what it is worth.
        key: the right answer and its explanation; `None` while they may not read it.
        tried, solved: how many students answered, and how many of them right; for staff, otherwise `None`.
    """

    number: int
    question: Question
    standing: Standing
    answers: tuple[QuizAnswer, ...]
    tries_left: int
    points: float
    maximum: float
    key: Key | None
    tried: int | None = None
    solved: int | None = None

    def response(self, answer: QuizAnswer) -> Response:
        """What was answered."""
        return codec.from_json(Response, answer.response)


@dataclass(frozen=True)
class QuizView:
    """An assignment's quiz as one person sees it."""

    questions: tuple[QuestionView, ...]
    is_late: bool
    is_closed: bool

    @property
    def points(self) -> float:
        """What they have, before any charge for lateness."""
        return sum(question.points for question in self.questions)

    @property
    def maximum(self) -> float:
        """What there is to get."""
        return sum(question.maximum for question in self.questions)

    @property
    def solved(self) -> int:
        """How many questions they answered right."""
        return sum(question.standing is Standing.right for question in self.questions)


@dataclass(frozen=True)
class Earned:
    """The points of one right answer, the first to its question.

    Attributes:
        uploaded_at: decides its lateness, as a submission's.
    """

    user_id: int
    assignment_id: int
    question: str
    points: float
    uploaded_at: datetime


def view(session: Session, member: Membership, detail: AssignmentDetail, now: datetime) -> QuizView:
    """The quiz as this member sees it now."""
    given = _given(session, member.user, detail)
    keys = _keys(session, detail)
    counts = _counts(session, member, detail) if member.is_staff else {}
    closed = detail.is_closed(now) and not member.is_staff
    views = []
    for number, question in enumerate(detail.questions, start=1):
        answers = given.get(question.name, ())
        standing = _standing(question, answers, closed=closed)
        explained = member.is_staff or _explained(standing, detail, now)
        tried, solved = counts.get(question.name, (0, 0)) if member.is_staff else (None, None)
        shown = QuestionView(
            number=number,
            question=question,
            standing=standing,
            answers=answers,
            tries_left=_tries_left(question, answers),
            points=detail.question_points if standing is Standing.right else 0.0,
            maximum=detail.question_points,
            key=keys[question.name] if explained else None,
            tried=tried,
            solved=solved,
        )
        views.append(shown)
    return QuizView(tuple(views), is_late=detail.is_late(now), is_closed=closed)


def answer(
    session: Session,
    *,
    member: Membership,
    detail: AssignmentDetail,
    question: str,
    response: Response,
    now: datetime,
    trace: str,
) -> tuple[QuizAnswer, bool]:
    """Store an answer and mark it; the same answer again uses up no try and stores nothing.

    Args:
        question: its name.
        now: the time of the upload; it decides lateness.
        trace: the request's id.

    Returns:
        The stored answer, and whether it is a new one.

    Raises:
        NotFoundError: there is no such question.
        InvalidInputError: it is no answer to this question, or the assignment is closed.
        ConflictError: it was answered right before, or no try is left.
    """
    user = accounts.lock_user(session, member.user)
    detail = _as_it_stays(session, member, detail, now)
    asked = _question(detail, question)
    try:
        response = quizzes.check_response(asked, response)
    except AnswerError as error:
        raise InvalidInputError(str(error), field="answer") from None
    given = _given(session, user, detail).get(question, ())
    # Before anything that changes with time: what was accepted stays accepted, however late its request comes again.
    if same := next((row for row in given if codec.from_json(Response, row.response) == response), None):
        return same, False
    _check_open(asked, given, member, detail, now)
    key = _keys(session, detail)[question]
    row = QuizAnswer(
        course_id=member.course.id,
        assignment_id=detail.row.id,
        quiz_id=detail.row.quiz_id,
        user_id=user.id,
        question=question,
        number=len(given) + 1,
        response=codec.to_json(response),
        right=quizzes.is_right(asked, key, response),
        remarked_at=None,
        trace=trace,
        uploaded_at=now,
    )
    session.add(row)
    session.flush()
    dirty_grades.grades(session, member.course.id, user.id)
    return row, True


def earned(session: Session, details: Sequence[AssignmentDetail], user_id: int | None = None) -> list[Earned]:
    """The points that right answers gave in these assignments of one course: everybody's, or one person's.

    Points of a question that is no longer asked do not count.
    """
    worth = {
        (detail.row.id, question.name): detail.question_points for detail in details for question in detail.questions
    }
    if not worth:
        return []
    query = (
        select(QuizAnswer.user_id, QuizAnswer.assignment_id, QuizAnswer.question, func.min(QuizAnswer.uploaded_at))
        .where(QuizAnswer.course_id == details[0].row.course_id, QuizAnswer.right)
        .group_by(QuizAnswer.user_id, QuizAnswer.assignment_id, QuizAnswer.question)
    )
    if user_id is not None:
        query = query.where(QuizAnswer.user_id == user_id)
    return [
        Earned(person, assignment_id, question, worth[assignment_id, question], at)
        for person, assignment_id, question, at in session.execute(query)
        if (assignment_id, question) in worth
    ]


def _as_it_stays(session: Session, member: Membership, detail: AssignmentDetail, now: datetime) -> AssignmentDetail:
    """The assignment with the quiz that it has until this is committed: who corrects a key waits, and finds the answer.

    Raises:
        NotFoundError: a student may not know of it any more.
    """
    query = select(Assignment.quiz_id).where(Assignment.id == detail.row.id).with_for_update(read=True)
    if session.scalar(query) == detail.row.quiz_id:
        return detail
    # Loaded by a query of its own: one that has waited for the row sees of other tables what there was before.
    slug = detail.slug
    session.expire(detail.row)
    return courses.assignment_of(session, member, slug, now)


def _question(detail: AssignmentDetail, name: str) -> Question:
    for question in detail.questions:
        if question.name == name:
            return question
    raise NotFoundError("There is no such question.")


def _given(session: Session, user: User, detail: AssignmentDetail) -> Mapping[str, tuple[QuizAnswer, ...]]:
    """The person's answers by question, oldest first."""
    query = (
        select(QuizAnswer)
        .where(QuizAnswer.assignment_id == detail.row.id, QuizAnswer.user_id == user.id)
        .order_by(QuizAnswer.question, QuizAnswer.number)
    )
    found: dict[str, tuple[QuizAnswer, ...]] = {}
    for row in session.scalars(query):
        found[row.question] = (*found.get(row.question, ()), row)
    return found


def _keys(session: Session, detail: AssignmentDetail) -> Mapping[str, Key]:
    stored = session.scalar(select(Quiz.keys).where(Quiz.id == detail.row.quiz_id))
    return {key.question: key for key in (codec.from_json(Key, item) for item in stored or ())}


def _tries_left(question: Question, answers: Sequence[QuizAnswer]) -> int:
    return max(0, question.tries_allowed - len(answers))


def _standing(question: Question, answers: Iterable[QuizAnswer], *, closed: bool) -> Standing:
    answers = tuple(answers)
    if any(row.right for row in answers):
        return Standing.right
    if not _tries_left(question, answers):
        return Standing.used_up
    return Standing.closed if closed else Standing.open


def _explained(standing: Standing, detail: AssignmentDetail, now: datetime) -> bool:
    """Whether a student may read the key now.

    Not before the due date, unless they know it already; and not while they could still win the points late. Where
    nothing is ever due, it is as soon as they can win nothing more.
    """
    if standing is Standing.right:
        return True
    over = detail.due_at is None or detail.is_late(now)
    return over and standing is not Standing.open


def _check_open(
    question: Question, given: Sequence[QuizAnswer], member: Membership, detail: AssignmentDetail, now: datetime
) -> None:
    standing = _standing(question, given, closed=detail.is_closed(now) and not member.is_staff)
    if standing is Standing.right:
        raise ConflictError("You have already answered this question correctly; that answer counts.")
    if standing is Standing.used_up:
        raise ConflictError(f"All {question.tries_allowed} tries at this question are used.")
    if standing is Standing.closed:
        closed = detail.late_until
        raise InvalidInputError(f"{detail.title} closed on {closed:%d %B %Y at %H:%M} UTC.", field="answer")


def _counts(session: Session, member: Membership, detail: AssignmentDetail) -> Mapping[str, tuple[int, int]]:
    """How many students answered each question, and how many of them right."""
    each = (
        select(QuizAnswer.question, QuizAnswer.user_id, func.max(case((QuizAnswer.right, 1), else_=0)).label("right"))
        .join(Enrolment, (Enrolment.user_id == QuizAnswer.user_id) & (Enrolment.course_id == member.course.id))
        .where(
            QuizAnswer.assignment_id == detail.row.id, Enrolment.role == Role.student, Enrolment.dropped_at.is_(None)
        )
        .group_by(QuizAnswer.question, QuizAnswer.user_id)
        .subquery()
    )
    query = select(each.c.question, func.count(), func.sum(each.c.right)).group_by(each.c.question)
    return {question: (tried, int(solved)) for question, tried, solved in session.execute(query)}
