"""`scripts.pins` against a registry on loopback: what is behind is said, and written where that is asked for."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from scripts import pins

ROOT = Path(__file__).parents[2]
NEW, OLD = ("sha256:" + digit * 64 for digit in "ab")


class FakeRegistry:
    """Two pages of tags, and a token that it sends everybody for."""

    def __init__(self) -> None:
        self.tags = {name: [] for name in ("redis", "postgres", "nginx", "python")}
        self.digest = NEW
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_HEAD(self) -> None:
                self._answer()

            def do_GET(self) -> None:
                self._answer()

            def _answer(self) -> None:
                status, headers, body = registry.answer(self.path, self.headers.get("authorization"))
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = Thread(target=self._server.serve_forever)
        self._thread.start()

    def answer(self, path: str, authorization: str | None) -> tuple[int, dict[str, str], bytes]:
        if path.startswith("/token"):
            return 200, {}, json.dumps({"token": "anybody"}).encode()
        if authorization != "Bearer anybody":
            return 401, {"www-authenticate": f'Bearer realm="{self.url}/token",service="here"'}, b""
        _, _, _, name, kind, *_ = path.split("/")
        if kind == "manifests":
            return 200, {"docker-content-digest": self.digest}, b""
        later = "last=" in path
        tags = self.tags[name][1::2] if later else self.tags[name][::2]
        links = {} if later else {"link": f'</v2/library/{name}/tags/list?n=1000&last=x>; rel="next"'}
        return 200, links, json.dumps({"tags": tags}).encode()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    made = FakeRegistry()
    yield made
    made.close()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "deploy").mkdir()
    for name in pins._FILES:
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def _look(registry: FakeRegistry, checkout: Path, *more: str) -> int:
    return pins.main(["--registry", registry.url, "--root", str(checkout), *more])


def test_every_image_of_an_installation_is_looked_at() -> None:
    found = {pin.name for name in pins._FILES for pin in pins.pins_in((ROOT / name).read_text())}
    assert found == {"redis", "postgres", "nginx", "python"}


def test_what_is_behind_is_written_with_its_digest_and_is_current_then(
    registry: FakeRegistry, checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    registry.tags["redis"] = ["7.2.99-bookworm", "7.2.100-bookworm", "7.4.1-bookworm", "7.2.101-alpine", "7.2.x", "7"]
    assert _look(registry, checkout) == 1
    said = capsys.readouterr().out
    assert "behind: 7.2.100-bookworm is out" in said
    assert "has no digest" in said
    assert _look(registry, checkout, "--write") == 1
    assert f"redis:7.2.100-bookworm@{NEW}}}" in (checkout / "docker-compose.yml").read_text()
    assert (checkout / "deploy/up.sh").read_text().count(f"@{NEW}") == 1
    assert _look(registry, checkout) == 0
    registry.digest = OLD
    assert _look(registry, checkout) == 1
    assert "was built anew" in capsys.readouterr().out


def test_a_registry_that_does_not_answer_is_said_and_nothing_is_written(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (checkout / "docker-compose.yml").read_bytes()
    assert pins.main(["--registry", "http://127.0.0.1:1", "--root", str(checkout), "--write"]) == 2
    assert "not known" in capsys.readouterr().out
    assert (checkout / "docker-compose.yml").read_bytes() == before


ELSE = ("15-bookworm", "15.x-bookworm", "16.99-bookworm", "15.99.1-bookworm", "15.99-trixie")


@pytest.mark.parametrize("tags", [(), ELSE])
def test_only_the_same_line_and_ending_is_later(tags: tuple[str, ...]) -> None:
    assert pins.newest(pins.Pin("postgres", (15, 18), "bookworm"), tags) == (15, 18)
