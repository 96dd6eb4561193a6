"""What `ladder up` prepares; that it serves is tested in tests/e2e."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from supervisor.options import ServerOptions

from client.errors import UsageError
from client.local import up
from client.local.home import Home, write_private
from client.local.processes import configuration, longest_stop_s, processes


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "a home; with 100% odd signs")
    made.make()
    return made


def test_supervisord_reads_the_configuration_as_it_was_meant(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.configuration.write_text(configuration(home, processes(8123)), encoding="utf-8")
    monkeypatch.chdir(home.folder)
    options = ServerOptions()
    options.realize(["-c", str(home.configuration)])
    programs = {group.name: group.process_configs[0] for group in options.process_group_configs}
    assert set(programs) == {"recorder", "dispatcher", "web", "worker"}
    assert programs["web"].command.endswith("-m client web --port 8123")
    assert programs["worker"].stdout_logfile == "log/worker.log"
    assert all(program.autorestart for program in programs.values())
    assert options.pidfile == str(home.pid_file)


@pytest.mark.parametrize(
    ("said", "drain_s"), [({}, 30), ({"LADDER_DRAIN_S": "299.5"}, 299.5), ({"LADDER_DRAIN_S": "soon"}, 30)]
)
def test_a_worker_is_not_killed_while_it_drains(said: dict[str, str], drain_s: float) -> None:
    worker = next(process for process in processes(1, said) if process.name == "worker")
    assert worker.stop_wait_s >= drain_s + 20
    assert longest_stop_s(said) > worker.stop_wait_s


def test_a_bad_hour_does_not_end_a_program_for_good(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """supervisord waits one second longer after each start that failed."""
    home.configuration.write_text(configuration(home, processes(8123)), encoding="utf-8")
    monkeypatch.chdir(home.folder)
    options = ServerOptions()
    options.realize(["-c", str(home.configuration)])
    retries = {group.process_configs[0].startretries for group in options.process_group_configs}
    assert min(retries) * (min(retries) + 1) / 2 > 3600 * 24 * 365


def test_the_recorder_is_there_first_and_goes_last(home: Home) -> None:
    order = [process.name for process in sorted(processes(1), key=lambda process: process.order)]
    assert order[0] == "recorder"
    assert order[-1] == "worker"


def test_a_home_is_its_owners_alone(home: Home) -> None:
    assert stat.S_IMODE(home.folder.stat().st_mode) == 0o700
    write_private(home.password, "x")
    assert stat.S_IMODE(home.password.stat().st_mode) == 0o600


def test_a_home_is_served_once(home: Home) -> None:
    with home.locked(), pytest.raises(UsageError, match="ladder down"), home.locked():
        pass
    with home.locked():
        pass


def test_a_process_id_that_is_somebody_elses_by_now_is_nobody(home: Home) -> None:
    home.pid_file.write_text(f"{os.getpid()}\n")
    assert home.supervisor() is None
    with home.locked():
        pass


def test_a_supervisord_that_was_left_behind_is_found_and_ended(home: Home) -> None:
    waiting = [sys.executable, "-c", "import time; time.sleep(60)", str(home.configuration)]
    with subprocess.Popen(waiting) as left:
        home.pid_file.write_text(f"{left.pid}\n")
        # Its own command line appears a moment after it was started.
        while home.supervisor() is None and left.poll() is None:
            time.sleep(0.01)
        with pytest.raises(UsageError, match=str(left.pid)), home.locked():
            pass
        left.terminate()
    assert left.returncode == -signal.SIGTERM
    assert not up.down(home.folder)


def test_a_path_too_long_for_a_socket_goes_without_supervisorctl(tmp_path: Path) -> None:
    home = Home(tmp_path / ("deep" * 40))
    assert home.socket is None
    assert "unix_http_server" not in configuration(home, processes(1))


def test_a_port_that_was_asked_for_has_to_be_free() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=str(port)):
            up.choose_port({"LADDER_PORT": str(port)})
    assert up.choose_port({"LADDER_PORT": str(port)}) == port


@pytest.mark.parametrize("text", ["x", "0", "65536", "-1", ""])
def test_a_port_has_to_be_a_ports_number(text: str) -> None:
    with pytest.raises(UsageError, match="LADDER_PORT"):
        up.choose_port({"LADDER_PORT": text})
