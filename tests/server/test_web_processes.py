"""`ladder web --workers`: several processes behind one port, which begin again when killed and end together."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from server.web import OwnSocket
from tests.server.conftest import NO_TLS, PATIENCE_S, until


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


@pytest.fixture
def web(sqlite_url: str, tmp_path: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    environ = {**os.environ, "LADDER_HOME": str(tmp_path), "LADDER_DATABASE_URL": sqlite_url}
    command = [sys.executable, "-P", "-m", "client", "web", "--port", str(port), "--workers", "2"]
    with (tmp_path / "web.log").open("wb") as log, _ended(command, environ, log) as process:
        until(
            lambda: process.poll() is not None or (len(children(process.pid)) == 2 and answers(port)),
            3 * PATIENCE_S,  # Three processes import the whole server: a minute on a busy machine.
        )
        assert process.poll() is None, (tmp_path / "web.log").read_text()
        yield process


@contextmanager
def _ended(command: list[str], environ: dict[str, str], log: object) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, env=environ, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def children(pid: int) -> set[int]:
    """The server processes of a parent; the one that multiprocessing keeps for its own use is none."""
    try:
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    except FileNotFoundError:
        return set()
    return {int(child) for child in found if b"spawn_main" in _command(int(child))}


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except FileNotFoundError:
        return b""


def answers(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/healthz", timeout=5, verify=NO_TLS).status_code == 200
    except httpx.TransportError:
        return False


@pytest.mark.full("slow")
def test_a_killed_process_is_started_again_and_the_port_answers(web: subprocess.Popen[bytes], port: int) -> None:
    before = children(web.pid)
    os.kill(min(before), signal.SIGKILL)
    until(lambda: len(children(web.pid)) == 2 and children(web.pid) != before)
    until(lambda: answers(port))


@pytest.mark.full("slow")
def test_no_process_keeps_the_port_when_the_parent_was_killed(web: subprocess.Popen[bytes], port: int) -> None:
    orphans = children(web.pid)
    os.kill(web.pid, signal.SIGKILL)
    web.wait()
    until(lambda: not any(_command(pid) for pid in orphans))
    assert not answers(port)


@pytest.mark.full("slow")
def test_sigterm_ends_all_of_them(web: subprocess.Popen[bytes]) -> None:
    serving = children(web.pid)
    web.terminate()
    assert web.wait(PATIENCE_S) in {0, -signal.SIGTERM}
    assert not any(_command(pid) for pid in serving)


def test_each_process_has_a_socket_of_its_own_and_the_kernel_uses_both() -> None:
    with ExitStack() as stack:
        bound = stack.enter_context(OwnSocket("127.0.0.1", 0))
        processes = [stack.enter_context(pickle.loads(pickle.dumps(bound))) for _ in range(2)]
        for listening in processes:
            listening.listen()
            listening.setblocking(False)
        for _ in range(64):
            stack.enter_context(socket.create_connection(bound.getsockname()))
        for listening in processes:
            listening.accept()[0].close()


def test_a_port_that_another_program_has_is_refused_with_its_number(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        environ = {**os.environ, "LADDER_HOME": str(tmp_path)}
        command = [sys.executable, "-P", "-m", "client", "web", "--port", str(number), "--workers", "2"]
        said = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert said.returncode == 1
    assert f"Port {number} of 127.0.0.1 is not available" in said.stderr


@pytest.mark.full("slow")
def test_a_variable_that_cannot_be_read_is_said_once(tmp_path: Path, port: int) -> None:
    environ = {**os.environ, "LADDER_HOME": str(tmp_path), "LADDER_POLL_S": "often"}
    command = [sys.executable, "-P", "-m", "client", "web", "--port", str(port), "--workers", "2"]
    said = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert said.returncode != 0
    assert said.stderr.count("LADDER_POLL_S must be float") == 1
