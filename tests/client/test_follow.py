"""Following a submission over a connection that breaks."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from client import api as module
from client.account import Account
from client.api import Api
from client.errors import ReachError


class _Breaking(ThreadingHTTPServer):
    """Tells one event a connection, then hangs up; ends the stream in the third."""

    def __init__(self, *, ends: bool) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.connections = 0
        self.ends = ends


class _Handler(BaseHTTPRequestHandler):
    server: _Breaking

    def do_GET(self) -> None:
        self.server.connections += 1
        if not self.server.ends and self.server.connections > 1:
            self.send_error(503)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        event = json.dumps({"revision": self.server.connections})
        self.wfile.write(f": comment\n\nevent: submission\ndata: {event}\n\n".encode())
        if self.server.connections == 3:
            self.wfile.write(b"event: end\ndata: {}\n\n")

    def log_message(self, *_arguments: object) -> None:
        pass


@pytest.fixture(params=[True, False], ids=["comes back", "stays away"])
def breaking(request: pytest.FixtureRequest) -> Iterator[_Breaking]:
    server = _Breaking(ends=request.param)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_broken_stream_is_opened_again_until_the_end_or_given_up(
    breaking: _Breaking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RECONNECTS", 4)
    seen = []
    with Api(Account(f"http://127.0.0.1:{breaking.server_port}", "x")) as api:
        if breaking.ends:
            seen.extend(event["revision"] for event in api.follow("X", pause_s=0))
            assert (seen, breaking.connections) == ([1, 2, 3], 3)
            return
        with pytest.raises(ReachError, match="ladder status X"):
            seen.extend(event["revision"] for event in api.follow("X", pause_s=0))
    assert breaking.connections > 4
