"""The quiz of an assignment: questions, one's own answers, and what they teach."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse
from markupsafe import Markup
from sqlalchemy.orm import Session
from starlette.responses import Response

from autograder.quiz import AnswerError, Question, QuestionKind, read_number
from autograder.quiz import Response as Given
from server import db, quizzes
from server.courses import courses
from server.errors import InvalidInputError, LadderError, NotFoundError
from server.http.identity import Someone
from server.http.work import Work, arrived_at, database_of
from server.models import User
from server.pages.highlight import highlight
from server.pages.markdown import handout_html
from server.pages.rendering import Slot, render, write

router = APIRouter(include_in_schema=False)
PATH = "/courses/{course}/assignments/{slug}/quiz"


@dataclass(frozen=True)
class Refusal:
    """An answer that was not taken: to which question, why, and what was typed."""

    question: str
    message: str
    value: str
    options: tuple[str, ...]


@router.get(PATH)
def quiz_page(request: Request, course: str, slug: str, who: Someone, work: Work) -> Response:
    """The page."""
    return _page(request, work, who.user, course, slug)


@router.post(PATH + "/{question}", dependencies=[Slot])
def answer(
    *,
    request: Request,
    course: str,
    slug: str,
    question: str,
    who: Someone,
    value: Annotated[str, Form()] = "",
    option: Annotated[list[str], Form()] = [],  # noqa: B006  # FastAPI copies a form's default
) -> Response:
    """Store an answer and go back to its question; what cannot be taken comes back with the reason."""

    def act(session: Session) -> None:
        member = courses.membership(session, who.user, course)
        now = arrived_at(request, session)
        detail = courses.assignment_of(session, member, slug, now)
        quizzes.answer(
            session,
            member=member,
            detail=detail,
            question=question,
            response=_response(detail.questions, question, value, option),
            now=now,
            trace=request.state.trace,
        )

    try:
        write(request, act)
    except NotFoundError:
        raise
    except LadderError as error:
        refusal = Refusal(question, error.message, value[:100], tuple(option))
        with database_of(request).reading() as session:
            return _page(request, session, who.user, course, slug, refusal=refusal, status=error.status)
    return RedirectResponse(f"{request.url.path.rpartition('/')[0]}#{question}", status_code=HTTPStatus.SEE_OTHER)


def _response(questions: tuple[Question, ...], name: str, value: str, options: list[str]) -> Given:
    asked = next((question for question in questions if question.name == name), None)
    if asked is None or asked.kind is not QuestionKind.numeric:
        return Given(options=tuple(options))
    try:
        return Given(read_number(value))
    except AnswerError as error:
        raise InvalidInputError(str(error), field="value") from None


def _page(
    request: Request,
    session: Session,
    user: User,
    course: str,
    slug: str,
    *,
    refusal: Refusal | None = None,
    status: int = HTTPStatus.OK,
) -> Response:
    member = courses.membership(session, user, course)
    detail = courses.assignment_of(session, member, slug)
    shown = quizzes.view(session, member, detail, db.now(session))
    return render(
        request,
        "quiz.html",
        status=status,
        member=member,
        course=member.course,
        detail=detail,
        quiz=shown,
        refusal=refusal,
        markdown=handout_html,
        code=_code,
    )


def _code(question: Question) -> Markup:
    return highlight(question.code.strip("\n"), question.language)
