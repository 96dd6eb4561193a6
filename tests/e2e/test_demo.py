"""`ladder demo` and `ladder up` as a person types them: real processes, a home of the test's own."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from client.account import Account
from client.api import Api
from client.local.demo import STEPS
from client.local.home import Home

LADDER = [sys.executable, "-m", "client"]
PATIENCE_S = 240


def _environ(home: Path, **more: str) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LADDER_")}
    return clean | {"LADDER_HOME": str(home), "PYTHONUNBUFFERED": "1"} | more


def _port() -> str:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return str(unused.getsockname()[1])


def _ladder(home: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*LADDER, *arguments],
        env=_environ(home, **more),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def _processes_of(home: Path) -> list[str]:
    """The command lines of processes that know this home: by their arguments or by their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            said = (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
        except OSError:
            continue
        if os.fsencode(home) in said and int(folder.name) != os.getpid():
            found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return found


@contextmanager
def _up(home: Path, port: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`ladder up` with what it said until it was ready."""
    command = [*LADDER, "up"]
    with subprocess.Popen(command, env=_environ(home, LADDER_PORT=port), stdout=subprocess.PIPE, text=True) as process:
        said = ""
        for line in process.stdout or ():
            said += line
            if line.startswith("logs:"):
                break
        try:
            yield process, said
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
            process.wait(PATIENCE_S)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def demo(home: Path) -> subprocess.CompletedProcess[str]:
    return _ladder(home, "demo", LADDER_PORT=_port())


@pytest.mark.timeout(PATIENCE_S * 2)
def test_the_demo_gets_every_verdict_that_it_expects(demo: subprocess.CompletedProcess[str]) -> None:
    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert "Every verdict is the expected one." in demo.stdout
    assert demo.stdout.count("(submit to verdict:") == len(STEPS)


def test_the_demo_explains_what_it_shows(demo: subprocess.CompletedProcess[str]) -> None:
    for told in (
        "everything from index 2048 on",  # where the wrong kernel is wrong
        "missing 1 required positional argument",  # the crash, in the student's own line
        "The input `x` was written to",
        "correctness 60 of 60",
    ):
        assert told in demo.stdout
    assert re.search(r"The call (did not end within|used) 10 s", demo.stdout)


def test_the_demo_shows_the_leaderboard_and_where_to_look(demo: subprocess.CompletedProcess[str]) -> None:
    board = demo.stdout.partition("the leaderboard, as Alice sees it")[2]
    assert "(you)" in board
    assert re.search(r"http://127\.0\.0\.1:\d+/submissions/[0-9A-Z]{26}", demo.stdout)


def test_nothing_of_the_demo_goes_on_running(home: Path, demo: subprocess.CompletedProcess[str]) -> None:
    assert demo.returncode == 0
    assert _processes_of(home) == []


@pytest.mark.timeout(PATIENCE_S * 2)
def test_an_installation_is_served_once_survives_its_worker_and_stops(tmp_path: Path) -> None:
    port = _port()
    with _up(tmp_path, port) as (process, said):
        url = f"http://127.0.0.1:{port}"
        password = said.partition("password: ")[2].split()[0]
        second = _ladder(tmp_path, "up", LADDER_PORT=_port())
        assert (second.returncode, "ladder down" in second.stderr) == (2, True)

        _kill_the_worker(tmp_path)
        with Api(Account(url, "")) as api:
            token = api.create_token("alice@example.org", password, "test")["token"]
        source = (Path(__file__).parents[2] / "scripts/demo/passed_correct.py").read_text()
        (tmp_path / "vector_add.py").write_text(source)
        done = _ladder(
            tmp_path, "submit", str(tmp_path / "vector_add.py"), "--json", LADDER_SERVER=url, LADDER_TOKEN=token
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert json.loads(done.stdout.splitlines()[-1])["verdict"] == "passed"

        practice = _ladder(
            tmp_path, "check", "--remote", str(tmp_path / "vector_add.py"), LADDER_SERVER=url, LADDER_TOKEN=token
        )
        assert practice.returncode == 0, practice.stdout + practice.stderr
        assert "Practice run 1 of Vector add" in practice.stdout

        assert "Stopped" in _ladder(tmp_path, "down").stdout
        assert process.wait(PATIENCE_S) == 0
    assert _processes_of(tmp_path) == []
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/healthz", timeout=60)
    assert "Nothing runs" in _ladder(tmp_path, "down").stdout


def _kill_the_worker(home: Path) -> None:
    """SIGKILL, and wait until supervisord has started another."""
    log = Home(home).logs / "supervisord.log"
    before = log.read_text().count("spawned: 'worker'")
    pid = re.findall(r"spawned: 'worker' with pid (\d+)", log.read_text())[-1]
    os.kill(int(pid), signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE_S
    while log.read_text().count("spawned: 'worker'") == before and time.monotonic() < deadline:
        time.sleep(0.1)
    assert log.read_text().count("spawned: 'worker'") == before + 1


@pytest.mark.timeout(PATIENCE_S * 2)
def test_an_installation_keeps_its_accounts_over_a_restart(tmp_path: Path) -> None:
    passwords = []
    for _ in range(2):
        with _up(tmp_path, _port()) as (process, said):
            passwords.append(said.partition("password: ")[2].split()[0])
            assert "alice@example.org" in said
        # Ctrl-C is how it is meant to be stopped.
        assert process.returncode == 0
    assert passwords[0] == passwords[1]


def test_a_port_in_use_is_said_before_anything_is_made(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = _ladder(tmp_path, "up", LADDER_PORT=str(taken.getsockname()[1]))
    assert done.returncode == 2
    assert "is in use" in done.stderr
    assert not (tmp_path / "ladder.sqlite").exists()
