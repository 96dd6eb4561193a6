"""Which scope of a token each route of the API asks for: the one place that says so.

    read    looking at what a student of the course may look at; every token does
    submit  whatever a student may send: runs, submissions, drafts, answers, requests
    staff   everything else

A route that nobody named here is the staff's. Pages take no token at all.
"""

from __future__ import annotations

from fastapi import Request

from server.errors import ForbiddenError, UnauthenticatedError
from server.http.metrics import route_of
from server.http.work import SAFE_METHODS
from server.models import ApiToken, TokenScope

API = "/api/v1"
_COURSE = "/courses/{course}"
_RUNG = f"{_COURSE}/assignments/{{slug}}"
_SUBMISSION = "/submissions/{public_id}"
_REQUEST = f"{_COURSE}/regrade-requests/{{request_id}}"
_OWN = frozenset({"/tokens", "/tokens/current"})
"""A token is made with a password, and any token may end itself."""
FOR_STUDENTS = _OWN | {
    *("/me", "/courses", "/receipts/keys"),
    *(f"{_COURSE}/{name}" for name in ("assignments", "submissions", "standings", "standings.csv", "grades")),
    f"{_COURSE}/regrade-requests",
    _RUNG,
    *(f"{_RUNG}/{name}" for name in ("archive", "leaderboard", "leaderboard.csv", "milestones")),
    *(f"{_RUNG}/{name}" for name in ("submissions", "quiz", "drafts")),
    *(f"{_RUNG}/{name}" for name in ("quiz/{question}/answers", "drafts/{language}")),
    _SUBMISSION,
    *(f"{_SUBMISSION}/{name}" for name in ("source", "events", "cancel", "receipt", "regrade-request")),
    _REQUEST,
    *(f"{_REQUEST}/{name}" for name in ("messages", "reopen")),
}
"""Routes of the API that are not the staff's alone; a test compares them with who may do what."""
_MAY = {TokenScope.read: "read", TokenScope.submit: "submit anything", TokenScope.staff: "do what staff may do"}


def needed(method: str, route: str) -> TokenScope:
    """The scope that a route asks for, by its template with the API's prefix."""
    path = route.removeprefix(API)
    if path == "/healthz":
        return TokenScope.read
    if path not in FOR_STUDENTS:
        return TokenScope.staff
    return TokenScope.read if method in SAFE_METHODS or path in _OWN else TokenScope.submit


def check(request: Request, token: ApiToken, *, weak_staff: bool) -> None:
    """Refuse a person's token where it opens nothing, and take from its bearer what it leaves out.

    Args:
        weak_staff: the staff's scope may come from a password alone.

    Raises:
        UnauthenticatedError: this is a page.
        ForbiddenError: the route asks for a scope that the token does not have.
    """
    if not is_api(request):
        raise UnauthenticatedError("Pages do not accept tokens. Log in with a browser.")
    held = token.scopes.split()
    if TokenScope.staff in held and not (token.is_strong or weak_staff):
        held.remove(TokenScope.staff)
    token.user.acts_as_student = TokenScope.staff not in held
    scope = needed(request.method, route_of(request.scope))
    if scope not in held:
        advice = " --staff" if scope is TokenScope.staff else ""
        why = ": it was made without a second factor" if scope.value in token.scopes.split() else ""
        raise ForbiddenError(
            f"This token may not {_MAY[scope]}{why}. Make one with the scope {scope.value}: `ladder login{advice}`."
        )


def is_api(request: Request) -> bool:
    """Whether a program may ask for this; all else is for browsers."""
    return request.url.path.startswith(f"{API}/") or request.url.path == "/healthz"
