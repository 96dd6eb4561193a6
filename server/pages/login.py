"""Logging in, with a password or by an identity provider, and out."""

from __future__ import annotations

from functools import partial
from http import HTTPStatus
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse
from sqlalchemy.orm import Session
from starlette.responses import Response

from server.accounts import accounts, second_factor, sso
from server.accounts.oidc import Relying
from server.accounts.places import Place
from server.config import Config
from server.errors import ForbiddenError, InvalidInputError, LadderError, TooManyError, UnauthenticatedError
from server.http.identity import (
    Anyone,
    Identity,
    Someone,
    challenge_cookie,
    clear_login_cookie,
    client_address,
    keep_device,
    outside_cookie,
    place_to_keep,
    set_challenge_cookie,
    set_login_cookie,
    set_outside_cookie,
)
from server.http.outside import asking, party_of, providers_of
from server.http.work import Settings, Work, config_of
from server.models import LoginSession, User
from server.pages.forms import back
from server.pages.rendering import Slot, local_path, render, with_wait, write

router = APIRouter(include_in_schema=False)


@router.get("/login")
def login_page(
    request: Request,
    who: Anyone,
    next: str = "/",  # noqa: A002  # the name in the address
    set: str = "",  # noqa: A002  # as above
) -> Response:
    """The form, and the ways to log in elsewhere."""
    if who is not None:
        return RedirectResponse(local_path(next), status_code=HTTPStatus.SEE_OTHER)
    return _page(request, target=next, was_set=bool(set))


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
    agent, place = request.headers.get("user-agent", ""), place_to_keep(request)

    def act(session: Session) -> tuple[LoginSession | None, str]:
        return second_factor.log_in(session, email=email, password=password, place=place, agent=agent, config=config)

    try:
        login, token = write(request, act)
    except (UnauthenticatedError, TooManyError) as error:
        return _page(request, target=next, email=email, error=error)
    if login is not None:
        return _logged_in(config, token, place, next)
    asked = _to("/second-factor", next)
    set_challenge_cookie(asked, config, token)
    return asked


@router.get("/second-factor")
def second_factor_page(request: Request, work: Work, next: str = "/") -> Response:  # noqa: A002  # as above
    """Asks for the code, of whoever gave their password a moment ago."""
    try:
        second_factor.challenged(work, request.cookies.get(challenge_cookie(config_of(request)), ""))
    except UnauthenticatedError:
        return _to("/login", next)
    return render(request, "second_factor_ask.html", next=local_path(next), error=None)


@router.post("/second-factor", dependencies=[Slot])
def answer_second_factor(
    *,
    request: Request,
    config: Settings,
    code: Annotated[str, Form()] = "",
    next: Annotated[str, Form()] = "/",  # noqa: A002  # as above
) -> Response:
    """Log in with the code."""
    agent, place = request.headers.get("user-agent", ""), place_to_keep(request)
    challenge = request.cookies.get(challenge_cookie(config), "")

    def act(session: Session) -> tuple[LoginSession, str]:
        return second_factor.answer(session, challenge, code, place=place, agent=agent, config=config)

    try:
        _, token = write(request, act)
    except UnauthenticatedError as error:
        return _page(request, target=next, error=error)
    except (InvalidInputError, TooManyError) as error:
        page = render(request, "second_factor_ask.html", status=error.status, next=local_path(next), error=error)
        return with_wait(page, error)
    response = _logged_in(config, token, place, next)
    set_challenge_cookie(response, config, "")
    return response


@router.get("/login/{provider}")
async def leave(request: Request, provider: str, next: str = "/") -> Response:  # noqa: A002  # the name in the address
    """Go to an identity provider to log in there."""
    party = party_of(request, provider)
    try:
        return await asking(request, partial(departure, request, party, target=local_path(next)))
    except LadderError as error:
        return _page(request, target=next, error=error)


@router.get("/login/{provider}/callback")
async def come_back(request: Request, provider: str, who: Anyone) -> Response:
    """Whoever comes back is logged in, or what they are there is linked with the account that asked for it."""
    party = party_of(request, provider)
    try:
        return await asking(request, partial(_arrival, request, party, who))
    except LadderError as error:
        response = _page(request, target="/", error=error)
        set_outside_cookie(response, config_of(request), "", max_age=0)
        return response


@router.post("/logout")
def log_out(who: Someone, work: Work, config: Settings) -> Response:
    """End the login that this browser has."""
    if who.login is not None:
        accounts.log_out(work, who.login)
    response = RedirectResponse("/login", status_code=HTTPStatus.SEE_OTHER)
    clear_login_cookie(response, config)
    return response


def departure(request: Request, party: Relying, *, target: str, link_to: User | None = None) -> Response:
    """To the provider, with a cookie that says which browser left.

    Raises:
        ProviderError, TooManyError: nobody can be sent there now.
    """

    def act(session: Session) -> tuple[sso.Departure, str]:
        gone = sso.depart(session, party.provider, target=target, address=client_address(request), link_to=link_to)
        return gone, party.address(state=gone.state, nonce=gone.nonce, verifier=gone.verifier)

    party.look()  # What has to be asked over the network, before there is a transaction.
    gone, url = write(request, act)
    # A form's answer must not lead to another site (`form-action`); a page that a form led to may.
    response: Response = (
        RedirectResponse(url, status_code=HTTPStatus.SEE_OTHER)
        if link_to is None
        else render(request, "leaving.html", url=url, provider=party.provider)
    )
    set_outside_cookie(response, config_of(request), gone.browser, max_age=int(sso.BACK_WITHIN.total_seconds()))
    return response


def _arrival(request: Request, party: Relying, who: Identity | None) -> Response:
    given, config = request.query_params, config_of(request)
    browser = request.cookies.get(outside_cookie(config), "")
    begun = write(request, partial(sso.arrive, provider=party.provider, state=given.get("state", ""), browser=browser))
    if given.get("iss", party.provider.issuer) != party.provider.issuer:
        raise UnauthenticatedError("That answer came from a different provider than the one that was asked.")
    if not given.get("code"):
        raise UnauthenticatedError(f"{party.provider.name} did not log you in.")
    person = party.person(code=given["code"], nonce=begun.nonce, verifier=begun.verifier)
    if begun.user_id is not None:
        if who is None or who.login is None or who.user.id != begun.user_id:
            raise ForbiddenError(
                "You are no longer logged in as the person who asked for this. Log in and link it again."
            )
        write(request, lambda session: sso.link(session, party.provider, person, session.merge(who.user)))
        return _without_cookie(back("/account", "linked", anchor="identities"), request)

    place = place_to_keep(request)

    def act(session: Session) -> tuple[LoginSession, str]:
        user = sso.account_of(session, party.provider, person)
        agent = request.headers.get("user-agent", "")
        return accounts.start_login(session, user, place=place, agent=agent, config=config, is_strong=True)

    _, token = write(request, act)
    return _without_cookie(_logged_in(config, token, place, begun.target), request)


def _logged_in(config: Config, token: str, place: Place, target: str) -> Response:
    response = RedirectResponse(local_path(target), status_code=HTTPStatus.SEE_OTHER)
    set_login_cookie(response, config, token)
    keep_device(response, config, place)
    return response


def _to(path: str, target: str) -> Response:
    """To a page of a log-in, which leads on to `target`."""
    return RedirectResponse(f"{path}?next={quote(local_path(target), safe='/')}", status_code=HTTPStatus.SEE_OTHER)


def _without_cookie(response: Response, request: Request) -> Response:
    set_outside_cookie(response, config_of(request), "", max_age=0)
    return response


def _page(
    request: Request, *, target: str, email: str = "", error: LadderError | None = None, was_set: bool = False
) -> Response:
    response = render(
        request,
        "login.html",
        status=error.status if error else HTTPStatus.OK,
        email=email,
        next=local_path(target),
        problem=error.message if error else "",
        providers=providers_of(request),
        was_set=was_set,
    )
    return with_wait(response, error)
