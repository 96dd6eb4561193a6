"""One's own account: password, ways to log in, where one is, tokens, and the name on leaderboards."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse
from sqlalchemy.orm import Session
from starlette.responses import Response

from server.accounts import accounts, second_factor, sso
from server.accounts.passwords import MAX_CHARS, MIN_CHARS
from server.config import Config
from server.courses import courses
from server.errors import InvalidInputError, LadderError, TooManyError, UnauthenticatedError
from server.http.identity import Identity, Someone, clear_login_cookie, place_of
from server.http.outside import asking, party_of, providers_of
from server.http.work import RowId, Settings, Work, config_of, database_of
from server.models import ApiToken, LoginSession, TokenScope
from server.pages.forms import WhatWasDone, back
from server.pages.login import departure
from server.pages.rendering import Slot, render, with_wait, write

router = APIRouter(include_in_schema=False)

TOKEN_DAYS = (7, 30, 90, 180, 365)
"""How long a new token may live, as far as the configuration allows."""
TOKEN_SCOPES = {"submit": "submit, run and answer quizzes", "staff": "do what staff may do in my courses"}
"""What a new token may do besides reading."""
DONE = {
    "password": "Your password is changed. All other sessions are logged out and all tokens are revoked.",
    "others": "All other browsers are logged out and all tokens are revoked.",
    "linked": "You can now log in with it.",
    "unlinked": "It can no longer log in to your account.",
}


@router.get("/account")
def account_page(request: Request, who: Someone, work: Work, done: WhatWasDone) -> Response:
    """The page."""
    return _page(request, work, who, said=done.said(DONE))


@router.post("/account/password", dependencies=[Slot])
def change_password(
    *,
    request: Request,
    who: Someone,
    config: Settings,
    current: Annotated[str, Form()] = "",
    password: Annotated[str, Form()] = "",
    again: Annotated[str, Form()] = "",
) -> Response:
    """Change one's password; this browser stays logged in, all others do not."""

    def act(session: Session) -> None:
        if who.login is None:
            raise UnauthenticatedError("To change the password, log in with a browser.")
        if password != again:
            raise InvalidInputError("The two passwords differ.", field="again")
        accounts.change_password(
            session,
            session.get_one(LoginSession, who.login.id),
            current=current,
            password=password,
            place=place_of(request),
            config=config,
        )

    try:
        write(request, act)
    except (InvalidInputError, TooManyError) as error:
        return _again(request, who, error, form="password")
    return back("/account", "password", anchor="password")


@router.post("/account/tokens", dependencies=[Slot])
def create_token(
    *,
    request: Request,
    who: Someone,
    config: Settings,
    name: Annotated[str, Form()] = "",
    days: Annotated[str, Form()] = "",
    scope: Annotated[list[str] | None, Form()] = None,
) -> Response:
    """Make a token; this answer is the only place where its text ever stands."""

    def act(session: Session) -> tuple[ApiToken, str]:
        if days and days not in _days(config):
            raise InvalidInputError("Choose how long it is valid.", field="days")
        ends = accounts.token_end(config, int(days) if days else None)
        chosen = [TokenScope(word) for word in given if word in TOKEN_SCOPES]
        strong = who.login is not None and who.login.is_strong
        if TokenScope.staff in chosen and second_factor.owes(session, who.user, is_strong=strong, config=config):
            raise InvalidInputError("Staff need a second factor here to make such a token.", field="scope")
        return accounts.create_token(session, who.user, name=name, expires_at=ends, scopes=chosen, is_strong=strong)

    given = scope or []

    try:
        _, text = write(request, act)
    except InvalidInputError as error:
        return _again(request, who, error, form="token", name=name, days=days, scopes=given)
    with database_of(request).reading() as session:
        return _page(request, session, who, status=HTTPStatus.CREATED, secret=text)


@router.post("/account/tokens/{token_id}/revoke")
def revoke_token(token_id: RowId, who: Someone, work: Work) -> Response:
    """End one of one's own tokens."""
    accounts.revoke_token(work, who.user, token_id)
    return back("/account", anchor="tokens")


@router.post("/account/sessions/revoke-others")
def revoke_other_sessions(who: Someone, work: Work) -> Response:
    """End all of one's own logins but this one, and all tokens."""
    accounts.end_everywhere(work, who.user, keep=who.login)
    return back("/account", "others", anchor="sessions")


@router.post("/account/sessions/{session_id}/revoke")
def revoke_session(session_id: RowId, who: Someone, work: Work, config: Settings) -> Response:
    """End one of one's own logins; ending this one logs out."""
    accounts.revoke_session(work, who.user, session_id)
    if who.login is None or who.login.id != session_id:
        return back("/account", anchor="sessions")
    response = RedirectResponse("/login", status_code=HTTPStatus.SEE_OTHER)
    clear_login_cookie(response, config)
    return response


@router.post("/account/identities/{provider}")
async def link_identity(request: Request, provider: str, who: Someone) -> Response:
    """Go to an identity provider; who one is there then logs in here too."""
    party = party_of(request, provider)
    return await asking(request, lambda: departure(request, party, target="/account", link_to=who.user))


@router.post("/account/identities/{identity_id}/unlink")
def unlink_identity(identity_id: RowId, who: Someone, work: Work) -> Response:
    """Let it log in no more."""
    sso.unlink(work, who.user, identity_id)
    return back("/account", "unlinked", anchor="identities")


@router.post("/account/courses/{course}/name")
def set_shown_name(course: str, who: Someone, work: Work, shown: Annotated[str, Form()] = "") -> Response:
    """Stand on a course's leaderboards by name, or by the pseudonym."""
    courses.set_show_name(work, courses.membership(work, who.user, course), show=shown == "name")
    return back("/account", anchor="names")


def _days(config: Config) -> dict[str, str]:
    """What the form offers: the usual ones up to the bound, the bound itself, and what is taken if nobody chooses."""
    most = config.token_days_most
    offered = {days for days in TOKEN_DAYS if days <= most} | {most, min(config.token_days, most)}
    return {str(days): "1 day" if days == 1 else f"{days} days" for days in sorted(offered)}


def _again(request: Request, who: Identity, error: LadderError, **given: Any) -> Response:
    """The page with what was refused, and why."""
    with database_of(request).reading() as session:
        return with_wait(_page(request, session, who, status=error.status, error=error, **given), error)


def _page(request: Request, session: Session, who: Identity, *, status: int = HTTPStatus.OK, **given: Any) -> Response:
    providers, identities = providers_of(request), sso.identities_of(session, who.user)
    linked = {identity.issuer for identity in identities}
    return render(
        request,
        "account.html",
        status=status,
        **{"secret": "", "error": None, "form": "", "name": "", "days": "", "scopes": ["submit"], "said": "", **given},
        token_days=_days(config_of(request)),
        usual_days=str(min(config_of(request).token_days, config_of(request).token_days_most)),
        token_scopes=TOKEN_SCOPES,
        least=MIN_CHARS,
        most=MAX_CHARS,
        has_password=who.user.password_hash is not None,
        second_factor=second_factor.standing(session, who.user),
        is_staff=second_factor.is_staff(session, who.user),
        tokens=accounts.tokens_of(session, who.user),
        sessions=accounts.sessions_of(session, who.user),
        current=who.login.id if who.login else None,
        identities=identities,
        provider_names=sso.named(identities, providers),
        unlinked=[provider for provider in providers if provider.issuer not in linked],
        memberships=[member for member in courses.courses_of(session, who.user) if member.enrolment is not None],
    )
