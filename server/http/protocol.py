"""What a connection may ask of uvicorn before the application hears of it: so large a head, so soon.

A proxy in front refuses both, too; `ladder web` alone has none. httptools limits nothing itself.
"""

from __future__ import annotations

from asyncio import TimerHandle, Transport

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

MAX_HEAD_BYTES = 32 * 1024
"""Of the address and all headers; nginx takes as much."""
MAX_HEADERS = 100
REQUEST_S = 30.0
"""In which a head has to be here, and in which something of a body has to come."""
_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: text/plain; charset=utf-8\r\n"
    b"content-length: 40\r\nconnection: close\r\n\r\nThe headers of this request are too long"
)


class Protocol(HttpToolsProtocol):
    """uvicorn's, with limits."""

    request_s = REQUEST_S
    _head_bytes = 0
    _raw_bytes = 0
    _in_head = True
    _refused = False
    _timer: TimerHandle | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        """Whoever connects has to ask for something soon."""
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """There is nothing more to wait for."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, unless this request was refused."""
        if self._refused:
            return
        began_in_head = self._in_head
        super().data_received(data)
        if began_in_head and self._in_head and not self.transport.is_closing():
            # Of a field that does not end the parser says nothing.
            self._count(len(data), raw=True)
        cycle: RequestResponseCycle | None = self.cycle  # None before the first request, whatever uvicorn says.
        is_idle = self._timer is None and (cycle is None or cycle.response_complete)
        if not self._in_head or is_idle:
            self._wait()

    def on_message_begin(self) -> None:
        """Another request on this connection."""
        self._in_head, self._head_bytes, self._raw_bytes = True, 0, 0
        if self._timer is None:
            self._wait()
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Part of the address."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header."""
        self._count(len(name) + len(value) + 4)
        super().on_header(name, value)
        if len(self.headers) > MAX_HEADERS:
            self._refuse()

    def on_headers_complete(self) -> None:
        """The application is told, if there is anything to tell it."""
        self._in_head = False
        if not self._refused:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Part of a body."""
        if not self._refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """All of it is here: what follows is ours to do."""
        self._stop_waiting()
        self._in_head = True
        if not self._refused:
            super().on_message_complete()

    def _count(self, size: int, *, raw: bool = False) -> None:
        if raw:
            self._raw_bytes += size
        else:
            self._head_bytes += size
        if max(self._head_bytes, self._raw_bytes) > MAX_HEAD_BYTES:
            self._refuse()

    def _refuse(self) -> None:
        if not self._refused:
            self._refused = True
            self._stop_waiting()
            self.transport.write(_TOO_LARGE)
            self.transport.close()

    def _wait(self) -> None:
        self._stop_waiting()
        self._timer = self.loop.call_later(self.request_s, self._too_slow)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_slow(self) -> None:
        """Half a request holds a connection, and nothing else: there is nobody to tell."""
        self._timer = None
        if self.flow.read_paused:
            # It is we who do not read on.
            self._wait()
        elif not self.transport.is_closing():
            self.transport.close()
