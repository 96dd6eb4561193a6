"""A forgotten password, and the link that sets another one."""

from __future__ import annotations

import math
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from sqlalchemy.orm import Session
from starlette.responses import RedirectResponse, Response

from server.accounts import links
from server.accounts.passwords import MAX_CHARS, MIN_CHARS
from server.errors import InvalidInputError, LadderError, NotFoundError, TooManyError
from server.http.identity import client_address, keep_device, place_to_keep
from server.http.work import Work, config_of, database_of
from server.pages.rendering import Slot, render, write

router = APIRouter(include_in_schema=False)


@router.get("/password/forgotten")
def forgotten_page(request: Request, email: str = "") -> Response:
    """The form."""
    return _forgotten(request, email=email[:254])


@router.post("/password/forgotten", dependencies=[Slot])
def forgotten(request: Request, email: Annotated[str, Form()] = "") -> Response:
    """Send a link, and say the same whether or not anybody has this address."""

    def act(session: Session) -> None:
        links.request_reset(session, email=email, address=client_address(request))

    try:
        write(request, act)
    except TooManyError as error:
        response = _forgotten(request, email=email, error=error)
        response.headers["retry-after"] = str(math.ceil(error.retry_after_s))
        return response
    return RedirectResponse("/password/sent", status_code=HTTPStatus.SEE_OTHER)


@router.get("/password/sent")
def sent_page(request: Request) -> Response:
    """What happens next; it knows nothing of who asked."""
    return render(request, "password_sent.html")


@router.get("/password")
def password_page(request: Request, work: Work, token: str = "") -> Response:
    """The form that a mail's link leads to."""
    return _password(request, work, token)


@router.post("/password", dependencies=[Slot])
def set_password(
    request: Request,
    token: Annotated[str, Form()] = "",
    password: Annotated[str, Form()] = "",
    again: Annotated[str, Form()] = "",
) -> Response:
    """Set it; the link is used up."""
    place = place_to_keep(request)

    def act(session: Session) -> None:
        if password != again:
            raise InvalidInputError("The two passwords differ.", field="again")
        links.set_password(session, token, password, place=place)

    try:
        write(request, act)
    except (InvalidInputError, NotFoundError) as error:
        with database_of(request).reading() as session:
            return _password(request, session, token, error=error)
    response = RedirectResponse("/login?set=1", status_code=HTTPStatus.SEE_OTHER)
    keep_device(response, config_of(request), place)
    return response


def _forgotten(request: Request, *, email: str, error: LadderError | None = None) -> Response:
    status = error.status if error else HTTPStatus.OK
    return render(
        request, "password_forgotten.html", status=status, email=email, problem=error.message if error else ""
    )


def _password(request: Request, session: Session, token: str, *, error: LadderError | None = None) -> Response:
    given: dict[str, Any] = {"token": token, "least": MIN_CHARS, "most": MAX_CHARS, "error": error}
    try:
        found = links.opened(session, token)
    except NotFoundError as gone:
        return render(request, "password.html", status=gone.status, **given, link=None, gone=gone.message)
    return render(
        request, "password.html", status=error.status if error else HTTPStatus.OK, **given, link=found, gone=""
    )
