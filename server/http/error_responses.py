"""Errors as a response: JSON for the API, and for people whatever the pages registered.

{"error": "NotFoundError", "message": "There is no such course.", "field": ""}
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from sqlalchemy.exc import DataError, InterfaceError, OperationalError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from server.errors import InvalidInputError, LadderError, TooManyError
from server.http.edge import secure

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ErrorPage:
    """What a reader is told.

    Attributes:
        error: a name that programs can compare.
        field: the part of the input that is wrong, `""` where it is none.
        trace: the request's id, for a report.
    """

    status: int
    error: str
    message: str
    field: str = ""
    trace: str = ""
    retry_after_s: float | None = None


Renderer = Callable[[Request, ErrorPage], Response]
"""Makes the HTML of an error; the pages put theirs into `app.state.error_renderer`."""


def install(app: FastAPI) -> None:
    """Register the handlers."""
    app.state.error_renderer = None
    app.add_exception_handler(LadderError, _ladder_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(OperationalError, _database_error)
    app.add_exception_handler(InterfaceError, _database_error)
    app.add_exception_handler(DataError, _data_error)
    app.add_exception_handler(Exception, _our_error)


def render(request: Request, page: ErrorPage) -> Response:
    """The response, in the form that this client reads."""
    renderer: Renderer | None = request.app.state.error_renderer
    if renderer is not None and not request.url.path.startswith("/api/"):
        response = renderer(request, page)
    else:
        content = {"error": page.error, "message": page.message, "field": page.field}
        response = JSONResponse(content, status_code=page.status)
    if page.retry_after_s is not None:
        response.headers["retry-after"] = str(math.ceil(page.retry_after_s))
    if page.status == HTTPStatus.UNAUTHORIZED and request.url.path.startswith("/api/"):
        response.headers["www-authenticate"] = "Bearer"
    return response


def _page(request: Request, status: int, error: str, message: str, field: str = "") -> ErrorPage:
    return ErrorPage(status, error, message, field, trace=getattr(request.state, "trace", ""))


async def _ladder_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, LadderError)  # noqa: S101  # narrows Starlette's type; it is registered for this class only
    page = ErrorPage(
        error.status,
        type(error).__name__,
        error.message,
        field=error.field if isinstance(error, InvalidInputError) else "",
        trace=getattr(request.state, "trace", ""),
        retry_after_s=error.retry_after_s if isinstance(error, TooManyError) else None,
    )
    return render(request, page)


async def _validation_error(request: Request, error: Exception) -> Response:
    """The first thing that does not fit; what was sent is never sent back."""
    assert isinstance(error, RequestValidationError)  # noqa: S101  # as above
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"][1:])
    message = f"{field}: {first['msg']}." if field else f"{first['msg']}."
    return render(request, _page(request, 422, InvalidInputError.__name__, message, field))


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101  # as above
    if error.status_code == HTTPStatus.BAD_REQUEST:
        # The body is neither JSON nor a form, or not UTF-8; FastAPI says so in the middle of reading it.
        message = "The body of this request cannot be read."
        return render(request, _page(request, 422, InvalidInputError.__name__, message))
    names = {404: "NotFoundError", 405: "MethodNotAllowedError", 413: "TooLargeError"}
    messages = {
        404: "There is nothing here.",
        405: "This address does not accept that method.",
        413: "The request is too large.",
    }
    page = _page(
        request,
        error.status_code,
        names.get(error.status_code, "HttpError"),
        messages.get(error.status_code, HTTPStatus(error.status_code).phrase + "."),
    )
    response = render(request, page)
    response.headers.update(error.headers or {})
    return response


async def _database_error(request: Request, error: Exception) -> Response:
    logger.error("the database does not answer trace=%s", getattr(request.state, "trace", ""), exc_info=error)
    message = "The database does not answer. Nothing was changed; try again in a moment."
    return render(request, _page(request, 503, "UnavailableError", message))


async def _data_error(request: Request, error: Exception) -> Response:
    """PostgreSQL refuses to look for a zero byte; such a text names nothing.

    Anybody can send one, so it is one line in the log, without what they sent.
    """
    logger.warning(
        "the database refused a value: %s trace=%s", type(error).__name__, getattr(request.state, "trace", "")
    )
    message = "This request contains a value that cannot be stored or searched for, such as a zero byte."
    return render(request, _page(request, 422, InvalidInputError.__name__, message))


async def _our_error(request: Request, _error: Exception) -> Response:
    # Starlette answers this one outside of the middleware, and raises the error again for the server's log.
    page = _page(request, 500, "InternalError", "The server failed. It is not your fault, and the error was logged.")
    response = render(request, page)
    secure(response.headers, request.app.state.config)
    return response
