"""The front page, logging in and out, and the ladder of a course."""

from __future__ import annotations

from datetime import UTC, datetime
from http import HTTPStatus
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse
from sqlalchemy.orm import Session
from starlette.responses import Response

from server.accounting import service as accounting
from server.accounts import service as accounts
from server.courses import service as courses
from server.errors import TooManyError, UnauthenticatedError
from server.http.identity import Anyone, Someone, clear_login_cookie, client_address, set_login_cookie
from server.http.work import Settings, Work
from server.models import LoginSession
from server.pages.pictures import staircase
from server.pages.progress import climb
from server.pages.rendering import Slot, local_path, render, write

router = APIRouter(include_in_schema=False)


@router.get("/")
def front(request: Request, who: Anyone, work: Work) -> Response:
    """Straight to the course of whoever is in one, a list for whoever is in several."""
    if who is None:
        return RedirectResponse("/login", status_code=HTTPStatus.SEE_OTHER)
    found = courses.courses_of(work, who.user)
    if len(found) == 1:
        return RedirectResponse(f"/courses/{quote(found[0].course.slug)}", status_code=HTTPStatus.SEE_OTHER)
    return render(request, "courses.html", memberships=found)


@router.get("/login")
def login_page(request: Request, who: Anyone, next: str = "/") -> Response:  # noqa: A002  # the name in the address
    """The form."""
    if who is not None:
        return RedirectResponse(local_path(next), status_code=HTTPStatus.SEE_OTHER)
    return render(request, "login.html", email="", next=local_path(next), problem="")


@router.post("/login", dependencies=[Slot])
def log_in(
    *,
    request: Request,
    config: Settings,
    email: Annotated[str, Form()] = "",
    password: Annotated[str, Form()] = "",
    next: Annotated[str, Form()] = "/",  # noqa: A002  # the field's name
) -> Response:
    """Log in and go where one wanted to; a refusal keeps the address that was typed."""
    agent = request.headers.get("user-agent", "")

    def act(session: Session) -> tuple[LoginSession, str]:
        return accounts.log_in(
            session, email=email, password=password, address=client_address(request), agent=agent, config=config
        )

    try:
        _, token = write(request, act)
    except (UnauthenticatedError, TooManyError) as error:
        return render(
            request, "login.html", status=error.status, email=email, next=local_path(next), problem=error.message
        )
    response = RedirectResponse(local_path(next), status_code=HTTPStatus.SEE_OTHER)
    set_login_cookie(response, config, token)
    return response


@router.post("/logout")
def log_out(who: Someone, work: Work, config: Settings) -> Response:
    """End the login that this browser has."""
    if who.login is not None:
        accounts.log_out(work, who.login)
    response = RedirectResponse("/login", status_code=HTTPStatus.SEE_OTHER)
    clear_login_cookie(response, config)
    return response


@router.get("/courses/{course}")
def course_page(request: Request, course: str, who: Someone, work: Work) -> Response:
    """The ladder: every rung that the viewer sees, how far they are, and what is due next."""
    now = datetime.now(UTC)
    member = courses.membership(work, who.user, course)
    rungs = climb(work, member, courses.assignments_of(work, member, now), now)
    return render(
        request,
        "course.html",
        member=member,
        course=member.course,
        rungs=rungs,
        steps=staircase([rung.share for rung in rungs]),
        total=sum(rung.points for rung in rungs),
        maximum=sum(rung.maximum for rung in rungs),
        accounts=accounting.last_check(work, member.course.id),
        accounted=accounting,
        due_next=min((rung for rung in rungs if rung.is_due), key=lambda rung: rung.due_at, default=None),
    )
