"""Errors as pages: what happened, whose fault it is, and the next step."""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import quote

from fastapi import Request
from fastapi.responses import RedirectResponse
from starlette.responses import Response

from server.errors import SecondFactorError
from server.http.error_responses import ErrorPage
from server.http.work import SAFE_METHODS
from server.pages.rendering import render

_TITLES = {
    401: "Log in first",
    403: "You may not do that",
    404: "There is nothing here",
    405: "This address does not accept that",
    409: "That is not possible right now",
    413: "That is too large",
    422: "That was not accepted",
    429: "Too many requests",
    502: "Another service does not answer",
    503: "The database does not answer",
}
_NEXT_STEPS = {
    # A new login has a new token for its forms: the old page's form would be refused.
    401: "Log in in another tab, then go back and reload the page. The editor has kept what you wrote.",
    403: "If you think you should be allowed to, ask the staff of your course.",
    404: "The address may be wrong, or you may not be in the course that it belongs to.",
    409: "Go back, reload the page and see what changed.",
    413: "Go back: your text is still there. Make it smaller and send it again.",
    422: "Go back: what you wrote is still there. Change it and send it again.",
    429: "Wait a moment; what you wrote is still there.",
    502: "Nothing was changed. Try again in a moment, or log in another way.",
    503: "Nothing was changed. Go back and try again in a moment.",
}
_PASSING = frozenset({429, 503})
"""What is over in a moment."""
_OURS = "Nothing you did caused this. If it happens again, give the staff of your course the number below."


def render_error(request: Request, page: ErrorPage) -> Response:
    """The error's page; a stranger who only wanted to look goes to the log-in page and comes back."""
    if page.status == HTTPStatus.UNAUTHORIZED and request.method in SAFE_METHODS and _reads_pages(request):
        return RedirectResponse(f"/login?next={quote(_address(request), safe='/')}", status_code=HTTPStatus.SEE_OTHER)
    if page.error == SecondFactorError.__name__ and request.method in SAFE_METHODS and _reads_pages(request):
        return RedirectResponse("/account/second-factor", status_code=HTTPStatus.SEE_OTHER)
    is_ours = page.status >= HTTPStatus.INTERNAL_SERVER_ERROR
    return render(
        request,
        "error.html",
        status=page.status,
        title=_TITLES.get(page.status, "The server failed" if is_ours else "That did not work"),
        error=page,
        next_step=_NEXT_STEPS.get(page.status, _OURS if is_ours else ""),
        is_ours=is_ours,
        again=_address(request) if page.status in _PASSING and request.method in SAFE_METHODS else "",
    )


def _address(request: Request) -> str:
    return request.url.path + (f"?{request.url.query}" if request.url.query else "")


def _reads_pages(request: Request) -> bool:
    """Whether the client shows what it gets; a stream that is led to a page would only fail later."""
    return "text/event-stream" not in request.headers.get("accept", "")
