"""What this web tier measures of itself: how long requests took, by route, and how many watch.

`ladder web` with several processes gives them a folder in common (`PROMETHEUS_MULTIPROC_DIR`): whichever of them is
asked answers for all. prometheus_client decides at its import whether it writes there.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from fastapi.routing import iter_route_contexts
from prometheus_client import CollectorRegistry, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SHARED = "PROMETHEUS_MULTIPROC_DIR"
BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
NO_ROUTE = "none"

registry = CollectorRegistry()
"""Of this process; with several, their folder's is read instead."""
requests = Histogram(
    "ladder_http_request_seconds",
    "Time until a response began, by route template; the time that a stream stays open is none of it.",
    ("method", "route", "status"),
    buckets=BUCKETS_S,
    registry=registry,
)
watchers = Gauge("ladder_live_watchers", "Open streams of changes.", registry=registry, multiprocess_mode="livesum")


class Measured:
    """Middleware: one observation per request. Paths never become labels: they hold receipt numbers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, took_s, status = time.perf_counter(), None, 500

        async def send_on(message: Message) -> None:
            nonlocal took_s, status
            if message["type"] == "http.response.start":
                took_s, status = time.perf_counter() - began, message["status"]
            await send(message)

        try:
            await self._app(scope, receive, send_on)
        finally:
            if took_s is None:
                took_s = time.perf_counter() - began
            method = scope["method"] if scope["method"] in _METHODS else "other"
            requests.labels(method, route_of(scope), str(status)).observe(took_s)


def route_of(scope: Scope) -> str:
    """The template of the route that took the request; `none` where none did."""
    app, endpoint = scope.get("app"), scope.get("endpoint")
    if app is None or endpoint is None:
        return NO_ROUTE
    templates: dict[object, str] | None = getattr(app.state, "route_templates", None)
    if templates is None:
        templates = app.state.route_templates = {}
    if endpoint not in templates:
        templates[endpoint] = _template(app.routes, endpoint)
    return templates[endpoint]


def _template(routes: Sequence[BaseRoute], endpoint: object) -> str:
    """A route that FastAPI included under a prefix does not know its whole path itself.

    FastAPI works such paths out when it first looks at them, and in order: what comes after this one is left alone.
    """
    for route in iter_route_contexts(routes):
        one = route.original_route
        if endpoint == (getattr(one, "endpoint", None) or getattr(one, "app", None)) and route.path is not None:
            return route.path
    return NO_ROUTE


def exposition() -> bytes:
    """What was measured here, or by all processes that share a folder, as Prometheus reads it."""
    folder = os.environ.get(SHARED)
    if folder is None:
        return generate_latest(registry)
    _forget_dead(Path(folder))
    shared = CollectorRegistry()
    MultiProcessCollector(shared, path=folder)
    return generate_latest(shared)


def share(folder: Path) -> None:
    """Have the processes that this one will start measure together; what earlier ones left is removed."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, mode=0o700)
    os.environ[SHARED] = str(folder)


def _forget_dead(folder: Path) -> None:
    """A process that was killed watches nobody any more."""
    for path in folder.glob("gauge_live*_*.db"):
        pid = int(path.stem.rpartition("_")[2])
        if not Path(f"/proc/{pid}").exists():
            mark_process_dead(pid, path=str(folder))
