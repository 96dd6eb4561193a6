"""A connection that asks for too much, or too slowly, ends before the application hears of it."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http import HTTPStatus

import pytest
import uvicorn
from starlette.requests import Request
from starlette.responses import JSONResponse

from server.http.protocol import MAX_HEAD_BYTES, MAX_HEADERS, Protocol
from server.web import SETTINGS

HEAD = b"GET /%s HTTP/1.1\r\nhost: here\r\n"


async def app(scope, receive, send):
    body = await Request(scope, receive).body()
    await JSONResponse({"body": len(body)})(scope, receive, send)


class Prompt(Protocol):
    request_s = 0.3


@pytest.fixture
def address() -> Iterator[tuple[str, int]]:
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, lifespan="off", ws="none", http=Prompt, log_config=None))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield listener.getsockname()
    server.should_exit = True
    thread.join()
    listener.close()


def said(address: tuple[str, int], *parts: bytes, pause_s: float = 0.0) -> bytes:
    """Everything that comes back until the other end hangs up."""
    with socket.create_connection(address, timeout=20) as line:
        for part in parts:
            line.sendall(part)
            time.sleep(pause_s)
        answer = b""
        while data := _received(line):
            answer += data
        return answer


def _received(line: socket.socket) -> bytes:
    try:
        return line.recv(2**16)
    except ConnectionResetError:
        return b""  # It hung up with something of ours unread.


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


END = b"connection: close\r\n\r\n"


def test_what_we_serve_with_has_these_limits():
    assert SETTINGS["http"] is Protocol


@pytest.mark.parametrize(
    "parts",
    [
        [HEAD % b"", b"x: " + b"y" * 70_000 + b"\r\n", END],
        [HEAD % b"", *[b"x: %d\r\n" % number for number in range(10_000)], END],
        [HEAD % (b"y" * 70_000), END],
        [HEAD % b"", *[b"x%d: y\r\n" % number for number in range(MAX_HEADERS)], END],
        [HEAD % b"", b"x: ", *[b"y" * 1000] * (MAX_HEAD_BYTES // 1000 + 2)],
    ],
)
def test_a_head_that_is_too_large_is_refused_in_one_piece_or_in_many(address, parts):
    assert status(said(address, b"".join(parts))) == HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE


def test_what_browsers_send_is_taken_and_so_are_bodies(address):
    head = HEAD % b"" + b"cookie: " + b"y" * 8_000 + b"\r\n"
    body = b"z" * 200_000
    asked = head.replace(b"GET", b"POST") + b"content-length: 200000\r\n" + END + body
    assert json.loads(said(address, asked).rpartition(b"\r\n")[2]) == {"body": 200_000}
    first = HEAD % b"" + b"\r\n"
    assert said(address, first, first, head + END).count(b"200 OK") == 3


@pytest.mark.parametrize(
    "half", [b"", b"GET / HT", HEAD % b"", b"POST / HTTP/1.1\r\nhost: here\r\ncontent-length: 100\r\n\r\nhalf"]
)
def test_half_a_request_is_not_waited_for(address, half):
    assert b"200 OK" not in said(address, half)


def test_a_head_that_comes_byte_by_byte_is_not_waited_for_either(address):
    answer = b""
    with suppress(BrokenPipeError, ConnectionResetError):
        answer = said(address, *[bytes([byte]) for byte in HEAD % b""], pause_s=0.05)
    assert b"200 OK" not in answer


def test_nor_is_a_line_that_asks_for_nothing(address):
    assert said(address, HEAD % b"" + b"\r\n", b"\r\n", pause_s=0.1).count(b"200 OK") == 1


def test_a_body_that_goes_on_coming_is_waited_for(address):
    head = b"POST / HTTP/1.1\r\nhost: here\r\ncontent-length: 8\r\n" + END
    assert b"200 OK" in said(address, head, *[b"z"] * 8, pause_s=0.1)
