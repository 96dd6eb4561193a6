"""`/metrics`: for a Prometheus that has the installation's token, and for nobody where none is configured.

It is no person's: the route stands outside of what finds out who is asking.
"""

from __future__ import annotations

import secrets
from http import HTTPStatus

from fastapi import FastAPI, Request
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4
from sqlalchemy.exc import InterfaceError, OperationalError
from starlette.responses import Response

from server.http import metrics
from server.http.work import config_of
from server.operations.metrics import Figures, silence

PATH = "/metrics"


def install(app: FastAPI) -> None:
    """Add the route, and the middleware that measures all others."""
    app.state.figures = Figures(app.state.database)
    app.add_middleware(metrics.Measured)
    app.router.add_route(PATH, read, methods=["GET"], include_in_schema=False)


def read(request: Request) -> Response:
    """What this web tier and the database have to say; 404 without a configured token, 401 for another one."""
    token = config_of(request).metrics_token
    if not token:
        return Response(status_code=HTTPStatus.NOT_FOUND)
    scheme, _, sent = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not secrets.compare_digest(sent.strip().encode(), token.encode()):
        return Response(status_code=HTTPStatus.UNAUTHORIZED, headers={"www-authenticate": "Bearer"})
    return Response(metrics.exposition() + _figures(request), media_type=CONTENT_TYPE_PLAIN_0_0_4)


def _figures(request: Request) -> bytes:
    figures: Figures = request.app.state.figures
    try:
        return figures.exposition()
    except (OperationalError, InterfaceError):
        return silence()
