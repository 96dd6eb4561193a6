"""One's own account: tokens for the command line, where one is logged in, and the name on leaderboards."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse
from sqlalchemy.orm import Session
from starlette.responses import Response

from server.accounts import service as accounts
from server.courses import service as courses
from server.errors import InvalidInputError
from server.http.identity import Identity, Someone, clear_login_cookie
from server.http.work import RowId, Settings, Work, database_of
from server.models import ApiToken
from server.pages.rendering import Slot, render, write

router = APIRouter(include_in_schema=False)


@router.get("/account")
def account_page(request: Request, who: Someone, work: Work) -> Response:
    """The page."""
    return _page(request, work, who)


@router.post("/account/tokens", dependencies=[Slot])
def create_token(*, request: Request, who: Someone, name: Annotated[str, Form()] = "") -> Response:
    """Make a token; this answer is the only place where its text ever stands."""

    def act(session: Session) -> tuple[ApiToken, str]:
        return accounts.create_token(session, who.user, name=name)

    try:
        _, text = write(request, act)
    except InvalidInputError as error:
        with database_of(request).reading() as session:
            return _page(request, session, who, status=error.status, problem=error.message, name=name)
    with database_of(request).reading() as session:
        return _page(request, session, who, status=HTTPStatus.CREATED, secret=text)


@router.post("/account/tokens/{token_id}/revoke")
def revoke_token(token_id: RowId, who: Someone, work: Work) -> Response:
    """End one of one's own tokens."""
    accounts.revoke_token(work, who.user, token_id)
    return _back("tokens")


@router.post("/account/sessions/{session_id}/revoke")
def revoke_session(session_id: RowId, who: Someone, work: Work, config: Settings) -> Response:
    """End one of one's own logins; ending this one logs out."""
    accounts.revoke_session(work, who.user, session_id)
    if who.login is None or who.login.id != session_id:
        return _back("sessions")
    response = RedirectResponse("/login", status_code=HTTPStatus.SEE_OTHER)
    clear_login_cookie(response, config)
    return response


@router.post("/account/courses/{course}/name")
def set_shown_name(course: str, who: Someone, work: Work, shown: Annotated[str, Form()] = "") -> Response:
    """Stand on a course's leaderboards by name, or by the pseudonym."""
    courses.set_show_name(work, courses.membership(work, who.user, course), show=shown == "name")
    return _back("names")


def _back(section: str) -> Response:
    return RedirectResponse(f"/account#{section}", status_code=HTTPStatus.SEE_OTHER)


def _page(request: Request, session: Session, who: Identity, *, status: int = HTTPStatus.OK, **given: Any) -> Response:
    return render(
        request,
        "account.html",
        status=status,
        **{"secret": "", "problem": "", "name": "", **given},
        tokens=accounts.tokens_of(session, who.user),
        sessions=accounts.sessions_of(session, who.user),
        current=who.login.id if who.login else None,
        memberships=[member for member in courses.courses_of(session, who.user) if member.enrolment is not None],
    )
