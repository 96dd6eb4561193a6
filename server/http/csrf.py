"""Whether an unsafe request comes from our own page. It guards every route; none has to ask for it.

    bearer token       nothing: a browser never adds one by itself
    login's cookie     the login's synchroniser token, as the form field `csrf_token` or the header `X-CSRF-Token`
    stranger's form    the value of the form's own cookie in the same field: a log-in, a new password, an account
    stranger's JSON    nothing: there is nothing of theirs to abuse

And for all but bearers: an `Origin`, where the browser sends one, that is ours.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Request
from starlette.datastructures import UploadFile

from server.errors import ForbiddenError, InvalidInputError, UnauthenticatedError
from server.http.identity import Identity, form_cookie, login_cookie, recognised
from server.http.work import SAFE_METHODS, config_of

FIELD = "csrf_token"
HEADER = "x-csrf-token"
_OUT_OF_DATE = "This form has expired. Go back, reload the page and send it again."
_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")


async def guard(request: Request, identity: Annotated[Identity | None, Depends(recognised)]) -> AsyncIterator[None]:
    """Refuse an unsafe request that another site made in somebody's name.

    Raises:
        ForbiddenError: it has another origin, or not the token that our page gave it.
        UnauthenticatedError: its login has ended.
        InvalidInputError: there is a zero byte in what it looks for.
    """
    if any("\0" in text for pair in request.query_params.multi_items() for text in pair):
        # PostgreSQL refuses to look for one; SQLite ends the text there and finds too much.
        raise InvalidInputError("This address contains a zero byte, which no name has.")
    try:
        if request.method not in SAFE_METHODS and "authorization" not in request.headers:
            _check_origin(request)
            await _check_page(request, identity)
        yield
    finally:
        # The form's files, where it was read to look for the token.
        await request.close()


async def _check_page(request: Request, identity: Identity | None) -> None:
    if identity is not None:
        _check_token(await _sent_token(request), identity.csrf_token)
        return
    config = config_of(request)
    strangers = request.cookies.get(form_cookie(config), "")
    # The cookie of a login that has ended must not keep anybody from the log-in page's form.
    if _is_form(request) and _is_token(await _sent_token(request), strangers):
        return
    if request.cookies.get(login_cookie(config)):
        raise UnauthenticatedError("Your session has ended. Log in again.")
    if _is_form(request):
        raise ForbiddenError(_OUT_OF_DATE)


def _check_origin(request: Request) -> None:
    origin = request.headers.get("origin")
    if origin is None:
        return
    ours = {urlsplit(config_of(request).public_url).netloc, request.headers.get("host", "")}
    if urlsplit(origin).netloc not in ours:
        raise ForbiddenError("This request came from another site.")


def _check_token(sent: str, expected: str) -> None:
    if not _is_token(sent, expected):
        raise ForbiddenError(_OUT_OF_DATE)


def _is_token(sent: str, expected: str) -> bool:
    return bool(expected) and secrets.compare_digest(sent.encode(), expected.encode())


async def _sent_token(request: Request) -> str:
    header = request.headers.get(HEADER)
    if header is not None or not _is_form(request):
        return header or ""
    value = (await request.form()).get(FIELD, "")
    return "" if isinstance(value, UploadFile) else value


def _is_form(request: Request) -> bool:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() in _FORMS
