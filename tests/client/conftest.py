"""The command as a student has it: a configuration folder of its own, and the real application on a real port."""

from __future__ import annotations

import dataclasses
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import uvicorn
from click.testing import CliRunner, Result

from client.main import main
from server.app import create_app
from server.config import Config, load_config
from server.courses import demo
from server.db import Database

PASSWORD = "a long enough password"
REPOSITORY = Path(__file__).resolve().parents[2]

Ladder = Callable[..., Result]


@pytest.fixture(autouse=True)
def _own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LADDER_SERVER", "LADDER_TOKEN", "LADDER_COURSE", "LADDER_HOME", "LADDER_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "configuration"))
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    (tmp_path / "desk").mkdir()
    monkeypatch.chdir(tmp_path / "desk")


@pytest.fixture
def ladder() -> Ladder:
    """Run the command; returns its exit code and what it printed."""

    def run(*arguments: str, text: str | None = None) -> Result:
        return CliRunner().invoke(main, list(arguments), input=text)

    return run


@pytest.fixture
def config(sqlite_url: str, tmp_path: Path) -> Config:
    """The repository's own rungs, a private database, the demo course in it."""
    made = dataclasses.replace(
        load_config({"LADDER_HOME": str(tmp_path / "home")}),
        database_url=sqlite_url,
        assignments=REPOSITORY / "assignments",
        reference=REPOSITORY / "reference",
        poll_s=0.02,
    )
    database = Database(sqlite_url)
    with database.transaction() as session:
        demo.seed(session, made, password=PASSWORD, renew=False)
    database.dispose()
    return made


@pytest.fixture
def server(config: Config) -> Iterator[str]:
    """The application's address; it serves in a thread until the test ends."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        web = uvicorn.Server(uvicorn.Config(create_app(config), log_level="error", timeout_graceful_shutdown=1))
        thread = threading.Thread(target=web.run, args=([listening],))
        thread.start()
        # Until it listens, the port refuses.
        while thread.is_alive() and not web.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        web.should_exit = True
        thread.join(20)


@pytest.fixture
def alice(server: str, ladder: Ladder) -> str:
    """The server's address, with Alice logged in."""
    done = ladder("login", server, "--email", "alice@example.org", "--password-stdin", text=f"{PASSWORD}\n")
    assert done.exit_code == 0, done.output
    return server
