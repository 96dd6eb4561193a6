"""One's own second factor: set it up, make other recovery codes, turn it off."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Annotated, Any

import segno
from fastapi import APIRouter, Form, Request
from markupsafe import Markup
from sqlalchemy.orm import Session
from starlette.responses import Response

from server.accounts import accounts, second_factor
from server.accounts.second_factor import Begun
from server.errors import InvalidInputError, LadderError, TooManyError, UnauthenticatedError
from server.http.identity import Identity, Someone, place_of
from server.http.outside import providers_of
from server.http.work import Settings, Work, config_of, database_of
from server.models import LoginSession, User
from server.pages.forms import WhatWasDone, back
from server.pages.rendering import Slot, render, with_wait, write

router = APIRouter(include_in_schema=False)

PATH = "/account/second-factor"
DONE = {"off": "Your second factor is off: you log in with your password alone."}
_QR_SCALE = 5
_QR_TITLE = "QR code for an authenticator app"


@router.get(PATH)
def second_factor_page(request: Request, who: Someone, work: Work, done: WhatWasDone) -> Response:
    """The page."""
    return _page(request, work, who, said=done.said(DONE))


@router.post(f"{PATH}/begin", dependencies=[Slot])
def begin(*, request: Request, who: Someone, config: Settings, password: Annotated[str, Form()] = "") -> Response:
    """Make a secret; whoever only sits at somebody's browser does not know the password."""

    def act(session: Session) -> None:
        user = session.get_one(User, who.user.id)
        if user.password_hash is not None:
            _check_password(session, user, password, request)
        second_factor.begin(session, user, config=config)

    try:
        write(request, act)
    except (InvalidInputError, TooManyError) as error:
        return _again(request, who, error, form="begin")
    return back(PATH)


@router.post(f"{PATH}/confirm", dependencies=[Slot])
def confirm(*, request: Request, who: Someone, config: Settings, code: Annotated[str, Form()] = "") -> Response:
    """Turn it on; this answer is the only place where the recovery codes ever stand."""

    def act(session: Session) -> list[str]:
        login, user = _login(session, who), session.get_one(User, who.user.id)
        return second_factor.confirm(session, user, code, login=login, place=place_of(request), config=config)

    return _with_codes(request, who, act, form="confirm")


@router.post(f"{PATH}/codes", dependencies=[Slot])
def renew_codes(*, request: Request, who: Someone, config: Settings, code: Annotated[str, Form()] = "") -> Response:
    """Make other recovery codes."""

    def act(session: Session) -> list[str]:
        return second_factor.renew_codes(session, who.user, code, place=place_of(request), config=config)

    return _with_codes(request, who, act, form="codes")


@router.post(f"{PATH}/remove", dependencies=[Slot])
def remove(*, request: Request, who: Someone, config: Settings, code: Annotated[str, Form()] = "") -> Response:
    """Turn it off."""

    def act(session: Session) -> None:
        second_factor.remove(session, who.user, code, place=place_of(request), config=config)

    try:
        write(request, act)
    except (InvalidInputError, TooManyError) as error:
        return _again(request, who, error, form="remove")
    return back(PATH, "off")


def _check_password(session: Session, user: User, password: str, request: Request) -> None:
    try:
        accounts.authenticate(
            session, email=user.email, password=password, place=place_of(request), config=config_of(request)
        )
    except UnauthenticatedError:
        raise InvalidInputError("That is not your password.", field="password") from None


def _login(session: Session, who: Identity) -> LoginSession:
    if who.login is None:
        raise UnauthenticatedError("To set up a second factor, log in with a browser.")
    return session.get_one(LoginSession, who.login.id)


def _with_codes(request: Request, who: Identity, act: Callable[[Session], list[str]], *, form: str) -> Response:
    try:
        codes = write(request, act)
    except (InvalidInputError, TooManyError) as error:
        return _again(request, who, error, form=form)
    with database_of(request).reading() as session:
        return _page(request, session, who, codes=codes)


def _again(request: Request, who: Identity, error: LadderError, *, form: str) -> Response:
    with database_of(request).reading() as session:
        return with_wait(_page(request, session, who, status=error.status, error=error, form=form), error)


def _page(request: Request, session: Session, who: Identity, *, status: int = HTTPStatus.OK, **given: Any) -> Response:
    config = config_of(request)
    standing = second_factor.standing(session, who.user)
    begun = None if standing.since else second_factor.begun(session, who.user, config=config)
    return render(
        request,
        "second_factor.html",
        status=status,
        **{"said": "", "error": None, "form": "", "codes": [], **given},
        standing=standing,
        begun=begun,
        qr=_qr(begun) if begun else "",
        is_staff=second_factor.is_staff(session, who.user),
        is_required=config.staff_second_factor == "required",
        has_password=who.user.password_hash is not None,
        providers=providers_of(request),
    )


def _qr(begun: Begun) -> Markup:
    """An SVG element, dark on light whatever the theme: not every app reads the other way round."""
    drawn = segno.make(begun.uri, error="m")
    return Markup(drawn.svg_inline(scale=_QR_SCALE, light="#fff", title=_QR_TITLE))  # noqa: S704  # of our own making
