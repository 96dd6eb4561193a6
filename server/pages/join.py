"""The page that an invitation's link opens: for who is logged in, and for who has no account yet."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Form, Request
from sqlalchemy.orm import Session
from starlette.responses import Response

from server import db
from server.errors import InvalidInputError, TooManyError
from server.http.identity import Anyone, Someone, client_address
from server.http.work import Work, database_of
from server.pages import forms
from server.pages.rendering import Slot, render, write
from server.roster import invites

router = APIRouter(include_in_schema=False)


@router.get("/join")
def join_page(request: Request, _who: Anyone, work: Work, token: str = "") -> Response:
    """What one is invited to."""
    return _page(request, work, token)


@router.post("/join", dependencies=[Slot])
def join(request: Request, who: Someone, token: Annotated[str, Form()] = "") -> Response:
    """Go into the course with one's account."""

    def act(session: Session) -> str:
        return invites.accept(session, who.user, token, now=db.now(session)).course.slug

    return forms.back(forms.course_path(write(request, act)))


@router.post("/join/account", dependencies=[Slot])
def sign_up(
    *,
    request: Request,
    _who: Anyone,
    token: Annotated[str, Form()] = "",
    email: Annotated[str, Form()] = "",
    name: Annotated[str, Form()] = "",
) -> Response:
    """Ask for an account; the answer is the same whether there was one."""

    def act(session: Session) -> None:
        invites.sign_up(session, token, email=email, name=name, address=client_address(request), now=db.now(session))

    typed = {"email": email, "name": name}
    try:
        write(request, act)
    except (InvalidInputError, TooManyError) as error:
        with database_of(request).reading() as session:
            return _page(request, session, token, typed=typed, problem=error)
    return render(request, "join.html", title="Check your mailbox", sent=email, course=None)


def _page(
    request: Request,
    session: Session,
    token: str,
    *,
    typed: dict[str, str] | None = None,
    problem: InvalidInputError | TooManyError | None = None,
) -> Response:
    row = invites.opened(session, token, now=db.now(session))
    field = problem.field if isinstance(problem, InvalidInputError) else ""
    return render(
        request,
        "join.html",
        status=problem.status if problem else HTTPStatus.OK,
        title=f"Join {row.course.title}",
        course=row.course,
        invite=row,
        token=token,
        back_here=quote(f"/join?token={token}", safe=""),
        sent="",
        typed=typed or {"email": "", "name": ""},
        problems={field: problem.message} if problem else {},
    )
