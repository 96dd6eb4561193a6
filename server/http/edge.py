"""What every response gets: security headers, the request's id, and one line in the log."""

from __future__ import annotations

import logging
import time

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from broker.logs import follow
from server import ids
from server.config import Config

logger = logging.getLogger("server.requests")

POLICY = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
"""No inline script, no inline style, nothing from elsewhere, nobody's frame."""
TRACE_HEADER = "x-request-id"


class Edge:
    """The outermost middleware."""

    def __init__(self, app: ASGIApp, config: Config) -> None:
        self._app = app
        self._config = config

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        trace, status, began = ids.trace_id(), 500, time.perf_counter()
        state = scope.setdefault("state", {})
        state.update(trace=trace, arrived=time.monotonic())

        async def receive_on() -> Message:
            message = await receive()
            if message["type"] == "http.request" and not message.get("more_body", False):
                # Here with its last byte: whoever opens a request before a deadline and sends it after is late.
                state["arrived"] = time.monotonic()
            return message

        async def send_on(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers[TRACE_HEADER] = trace
                secure(headers, self._config)
            await send(message)

        with follow(trace):
            try:
                await self._app(scope, receive_on, send_on)
            finally:
                took_ms = (time.perf_counter() - began) * 1000
                logger.info("%s %s %d %.1f ms trace=%s", scope["method"], scope["path"], status, took_ms, trace)


def secure(headers: MutableHeaders, config: Config) -> None:
    """Add what keeps browsers from being used against their owner; a header that is there already stays."""
    headers.setdefault("content-security-policy", POLICY)
    headers.setdefault("x-content-type-options", "nosniff")
    headers.setdefault("x-frame-options", "DENY")
    # Not `no-referrer`: browsers then send `Origin: null` with our own forms.
    headers.setdefault("referrer-policy", "same-origin")
    headers.setdefault("cross-origin-opener-policy", "same-origin")
    headers.setdefault("permissions-policy", "camera=(), microphone=(), geolocation=()")
    # What somebody sees depends on who they are; static files say otherwise themselves.
    headers.setdefault("cache-control", "no-store")
    if config.public_url.startswith("https://"):
        headers.setdefault("strict-transport-security", "max-age=31536000")
