"""How a page is made: the templates, what every one of them is given, and the static files beside them."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import Any

from fastapi import Depends, Request
from fastapi.responses import HTMLResponse
from sqlalchemy.orm import Session
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from server.errors import LadderError, TooManyError
from server.http.identity import Identity, form_token, keep_form_token
from server.http.templates import Templates
from server.http.work import database_of, shown_at, writer_slot
from server.pages import formats, labels, navigation

_FILTERS: dict[str, Callable[..., Any]] = {
    "bytes": formats.byte_size,
    "agent": labels.agent_name,
    "count": formats.count,
    "duration": formats.duration,
    "figure": formats.figure,
    "microseconds": formats.microseconds,
    "moment": formats.moment,
    "number": formats.number,
    "ordinal": formats.ordinal,
    "percent": formats.percent,
    "plural": formats.plural,
    "points": formats.points,
    "ratio": formats.ratio,
    "relative": formats.relative,
    "ticks": formats.ticks,
    "when": formats.when,
}
Slot = Depends(writer_slot, scope="function")
"""For endpoints that `write`: their place among the writers."""
_FOREVER = "public, max-age=31536000, immutable"
_A_WHILE = "public, max-age=3600"


def templates_of(web: Path) -> Templates:
    """The templates in a web folder, with the pages' filters and words."""
    return Templates(
        web,
        filters=_FILTERS,
        names={
            "words": labels,
            "places": navigation,
            "interval": formats.interval,
            "estimate": formats.estimate,
            "share": formats.share,
            "rate": formats.rate,
            "amount": formats.amount,
            "percent": formats.percent,
        },
    )


def render(request: Request, name: str, /, *, status: int = 200, **context: Any) -> HTMLResponse:
    """A page for whoever is asking, with what `fragment` gives it and the token that its forms carry."""
    identity: Identity | None = getattr(request.state, "identity", None)
    html = fragment(request, name, csrf_token=form_token(request, identity), **context)
    response = HTMLResponse(html, status_code=status)
    keep_form_token(request, response)
    return response


def fragment(request: Request, name: str, /, **context: Any) -> str:
    """A template as text: a page, or a part of one that changed."""
    identity: Identity | None = getattr(request.state, "identity", None)
    templates: Templates = request.app.state.templates
    viewer = identity.user if identity else None
    given: dict[str, Any] = {"viewer": viewer, "now": shown_at(request) or datetime.now(UTC), "path": request.url.path}
    given["looking_as"] = identity.preview if identity else None
    return templates.render(name, {**given, "unread": identity.unread if identity else 0, **context})


def write(request: Request, act: Callable[[Session], Any]) -> Any:
    """Do `act` in a transaction that an error undoes before the caller renders that error.

    Forms use it instead of `Work`, whose transaction lasts until the response is made. They ask for `Slot` beside it.
    """
    with database_of(request).transaction() as session:
        return act(session)


def with_wait(response: Response, error: LadderError | None) -> Response:
    """The page of an error, with when to try again where it says so."""
    if isinstance(error, TooManyError):
        response.headers["retry-after"] = str(math.ceil(error.retry_after_s))
    return response


def local_path(target: str) -> str:
    """`target` if it leads to a page of ours, otherwise the front page: a link must not send people elsewhere."""
    is_ours = target.startswith("/") and not target.startswith(("//", "/\\")) and target.isprintable()
    return target if is_ours else "/"


class StaticFolder(StaticFiles):
    """Static files. A bundled one carries its content's hash in its name, so it is kept for good."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Serve a file with the time that it may be kept."""
        response = await super().get_response(path, scope)
        bundled = PurePath(path).parts[:1] == ("dist",) and not path.endswith(".json")
        response.headers["cache-control"] = _FOREVER if bundled else _A_WHILE
        return response
