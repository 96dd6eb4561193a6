"""The quiz of an assignment: read it, and answer its questions."""

from __future__ import annotations

from datetime import datetime
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from pydantic import Field

from autograder.quiz import LANGUAGES, MAX_OPTIONS, QuestionKind
from autograder.quiz import Response as Given
from server import quizzes
from server.api.responses import errors
from server.api.schemas import Create, Read
from server.courses import courses
from server.db import now
from server.http.identity import Someone
from server.http.work import Work, arrived_at
from server.quizzes import QuestionView, QuizView, Standing

router = APIRouter(tags=["quizzes"])
_PATH = "/courses/{course}/assignments/{slug}/quiz"
QuestionName = Annotated[str, Path(max_length=40)]


class AnswerCreate(Create):
    """An answer: `value` to a numeric question, `options` to the others."""

    value: Annotated[float | None, Field(allow_inf_nan=False)] = None
    options: Annotated[tuple[str, ...], Field(max_length=MAX_OPTIONS, description="Names of the chosen options.")] = ()


class AnswerRead(Read):
    """One of one's own answers."""

    number: Annotated[int, Field(description="Which try it was, from 1.")]
    value: float | None
    options: tuple[str, ...]
    right: bool
    uploaded_at: datetime


class KeyRead(Read):
    """The right answer; given to who may read it."""

    value: float | None
    tolerance: float
    options: tuple[str, ...]
    explanation: Annotated[str, Field(description="Markdown.")]


class QuestionRead(Read):
    """One question with one's own answers."""

    number: int
    name: str
    kind: QuestionKind
    text: Annotated[str, Field(description="Markdown.")]
    unit: str
    code: str
    language: Annotated[str, Field(description=f"Of the code: {', '.join(LANGUAGES)}.")]
    options: Annotated[dict[str, str], Field(description="Name to Markdown, in the order in which they are shown.")]
    standing: Standing
    tries_allowed: int
    tries_left: int
    points: float
    maximum: float
    answers: list[AnswerRead]
    key: Annotated[
        KeyRead | None,
        Field(
            description="Present once it was answered right, or once the due date is over and no points are left "
            "to gain."
        ),
    ]

    @classmethod
    def of(cls, view: QuestionView) -> QuestionRead:
        """The question as this person sees it."""
        asked = view.question
        return cls(
            number=view.number, name=asked.name, kind=asked.kind, text=asked.text, unit=asked.unit, code=asked.code,
            language=asked.language, options=asked.options, standing=view.standing,
            tries_allowed=asked.tries_allowed, tries_left=view.tries_left, points=view.points, maximum=view.maximum,
            answers=[_answer(view, index) for index in range(len(view.answers))],
            key=KeyRead.model_validate(view.key) if view.key else None,
        )  # fmt: skip


class QuizRead(Read):
    """A quiz as one person sees it."""

    course: str
    assignment: str
    title: str
    points: Annotated[float, Field(description="Before any charge for lateness.")]
    maximum: float
    is_late: bool
    is_closed: bool
    due_at: datetime | None
    late_until: datetime | None
    questions: list[QuestionRead]


@router.get(_PATH, responses=errors(401, 404), summary="Quiz")
def read_quiz(course: str, slug: str, who: Someone, work: Work) -> QuizRead:
    """The questions, one's own answers, and explanations of what one may read."""
    member = courses.membership(work, who.user, course)
    detail = courses.assignment_of(work, member, slug)
    shown = quizzes.view(work, member, detail, now(work))
    return QuizRead(
        course=course, assignment=slug, title=detail.title, points=shown.points, maximum=shown.maximum,
        is_late=shown.is_late, is_closed=shown.is_closed, due_at=detail.due_at, late_until=detail.late_until,
        questions=[QuestionRead.of(question) for question in shown.questions],
    )  # fmt: skip


@router.post(
    f"{_PATH}/{{question}}/answers",
    status_code=HTTPStatus.CREATED,
    responses={
        200: {"description": "The same answer was given before; it uses no try."},
        **errors(401, 403, 404, 409, 422),
    },
    summary="Answer a question",
)
def answer(
    *,
    course: str,
    slug: str,
    question: QuestionName,
    body: AnswerCreate,
    request: Request,
    response: Response,
    who: Someone,
    work: Work,
) -> QuestionRead:
    """Store an answer: 201 means that it is stored and marked. The same again is 200 and stores nothing."""
    member = courses.membership(work, who.user, course)
    at = arrived_at(request, work)
    detail = courses.assignment_of(work, member, slug, at)
    _row, is_new = quizzes.answer(
        work,
        member=member,
        detail=detail,
        question=question,
        response=Given(body.value, body.options),
        now=at,
        trace=request.state.trace,
    )
    if not is_new:
        response.status_code = HTTPStatus.OK
    return QuestionRead.of(_named(quizzes.view(work, member, detail, at), question))


def _named(shown: QuizView, name: str) -> QuestionView:
    return next(view for view in shown.questions if view.question.name == name)


def _answer(view: QuestionView, index: int) -> AnswerRead:
    row = view.answers[index]
    given = view.response(row)
    return AnswerRead(
        number=row.number, value=given.value, options=given.options, right=row.right, uploaded_at=row.uploaded_at
    )
