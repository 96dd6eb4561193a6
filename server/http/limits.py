"""How long a body may be: refused by what it declares before a byte is read, and counted while it arrives."""

from __future__ import annotations

from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from server.http.error_responses import ErrorPage, render


class BodyLimit:
    """Middleware; nothing behind it reads more than `max_bytes` of one request."""

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif self._declares_too_much(scope):
            await self._refuse(scope, receive, send)
        else:
            await self._app(scope, self._counted(receive), send)

    def _declares_too_much(self, scope: Scope) -> bool:
        declared = Headers(scope=scope).get("content-length", "")
        return declared.isdecimal() and int(declared) > self._max_bytes

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        message = f"That is too large: at most {self._max_bytes:,} bytes are read."
        page = ErrorPage(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "TooLargeError", message, trace=request.state.trace)
        await render(request, page)(scope, receive, send)

    def _counted(self, receive: Receive) -> Receive:
        total = 0

        async def receive_some() -> Message:
            nonlocal total
            message = await receive()
            total += len(message.get("body", b""))
            if total > self._max_bytes:
                # FastAPI turns any other exception here into "there was an error parsing the body".
                raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return message

        return receive_some
