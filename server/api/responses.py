"""Which errors a route may give, for the OpenAPI description."""

from __future__ import annotations

from typing import Any

from server.api.schemas import ErrorRead

_MEANINGS = {
    401: "The caller is not logged in, or the token is not valid.",
    403: "The caller may know of it, but may not do this.",
    404: "It does not exist, or the caller may not see it.",
    409: "It conflicts with the current state.",
    413: "The request has too many bytes.",
    422: "The input is not valid; `field` names the part.",
    429: "A rate limit or a quota; `Retry-After` says when.",
    503: "The database does not answer.",
}


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The `responses` of a route that may answer with these."""
    return {status: {"model": ErrorRead, "description": _MEANINGS[status]} for status in statuses}
