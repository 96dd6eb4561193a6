"""Start everything on this machine, wait until something can be graded, and stop in order."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import click
import httpx

from client.errors import OursError, UsageError
from client.local import seed
from client.local.home import Home
from client.local.processes import configuration, longest_stop_s, processes
from client.local.seed import Accounts

FIRST_PORT = 8000
READY_S = 120.0
"""How long the first start may take: the judge imports torch and warms up."""
POLL_S = 0.2
MAX_TOLD = 1500
"""Characters of a log that are shown when a start fails."""


@dataclass(frozen=True)
class Serving:
    """An installation that runs: where it is and who can log in."""

    home: Home
    url: str
    accounts: Accounts | None
    supervisor: subprocess.Popen[bytes]


def home_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """`LADDER_HOME`, else `var/` in the checkout, else in this folder."""
    checkout = Path(__file__).resolve().parents[2]
    base = checkout if (checkout / "pyproject.toml").is_file() else Path.cwd()
    return Path(environ.get("LADDER_HOME") or base / "var").resolve()


def choose_port(environ: Mapping[str, str] = os.environ) -> int:
    """`LADDER_PORT`, which has to be free; else the first free port from 8000 on."""
    said = environ.get("LADDER_PORT")
    if said is not None:
        if not (said.isascii() and said.isdigit()) or not 0 < int(said) < 2**16:
            raise UsageError(f"LADDER_PORT has to be a port number, not {said!r}.")
        if not _is_free(int(said)):
            raise UsageError(f"port {said} is in use; set LADDER_PORT to another.")
        return int(said)
    for port in range(FIRST_PORT, FIRST_PORT + 100):
        if _is_free(port):
            return port
    raise UsageError("no port from 8000 to 8099 is free; set LADDER_PORT to one that is.")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As the web server does: a port whose last connection is fading counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


@contextmanager
def serving(folder: Path, say: Callable[[str], None], environ: Mapping[str, str] = os.environ) -> Iterator[Serving]:
    """Serve from `folder` for as long as the block lasts; then everything that was started has ended.

    Raises:
        UsageError: it is served already, or the port is taken.
        OursError: something did not start; its log is in the message.
    """
    home = Home(folder)
    home.make()
    with home.locked():
        port = choose_port(environ)
        url = f"http://127.0.0.1:{port}"
        settings = _settings(home, url, environ)
        say("preparing the database, the demo course and the node")
        accounts = seed.prepare(home, settings)
        home.configuration.write_text(configuration(home, processes(port, environ)), encoding="utf-8")
        say("starting recorder, dispatcher, web and worker")
        supervisor = _start(home, settings)
        try:
            _wait_until_ready(home, supervisor, url)
            yield Serving(home, url, accounts, supervisor)
        finally:
            say("stopping")
            _stop(supervisor)


def _settings(home: Home, url: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of everything that is started: what was set stays."""
    # The processes run in the home, so what was said relative to this folder is made absolute.
    folders = ("LADDER_ASSIGNMENTS", "LADDER_REFERENCE", "LADDER_WEB")
    said = {name: str(Path(environ[name]).resolve()) for name in folders if environ.get(name)}
    own = {
        "LADDER_HOME": str(home.folder),
        "LADDER_PUBLIC_URL": environ.get("LADDER_PUBLIC_URL", url),
        "LADDER_SERVER_URL": url,
        "LADDER_NODE_NAME": seed.NODE,
        "LADDER_NODE_KEY_FILE": str(home.node_key),
        "PYTHONUNBUFFERED": "1",
        # What these processes say to each other stays on this machine, whatever proxy the environment names.
        "NO_PROXY": ",".join(filter(None, [environ.get("NO_PROXY", ""), "127.0.0.1", "localhost"])),
    }
    return {**environ, **said, **own}


def _start(home: Home, settings: Mapping[str, str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", "-m", "supervisor.supervisord", "-c", str(home.configuration)]
    # Its own session: Ctrl-C reaches us alone, and we stop it in order.
    return subprocess.Popen(
        command, env=dict(settings), cwd=home.folder, stdin=subprocess.DEVNULL, start_new_session=True
    )


def _wait_until_ready(home: Home, supervisor: subprocess.Popen[bytes], url: str) -> None:
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline:
        if supervisor.poll() is not None:
            raise OursError(f"supervisord ended with status {supervisor.returncode}.\n{_logs(home)}")
        if _lanes(url):
            return
        time.sleep(POLL_S)
    raise OursError(f"nothing could be graded after {READY_S:g} s.\n{_logs(home)}")


def _lanes(url: str) -> list[str]:
    """On which lanes something can be graded; none while the server does not answer."""
    try:
        response = httpx.get(f"{url}/healthz", timeout=5.0, trust_env=False)
        return list(response.json()["lanes"]) if response.is_success else []
    except (httpx.HTTPError, ValueError, KeyError):
        return []


def _logs(home: Home) -> str:
    ends = []
    for path in sorted(home.logs.glob("*.log")):
        end = path.read_text(encoding="utf-8", errors="replace")[-MAX_TOLD:].strip()
        if end:
            ends.append(f"── {path}\n{end}")
    return "\n".join(ends)


def _stop(supervisor: subprocess.Popen[bytes]) -> None:
    """Ask supervisord to stop everything in order, and wait for it."""
    if supervisor.poll() is None:
        supervisor.terminate()
    try:
        supervisor.wait(longest_stop_s())
    except subprocess.TimeoutExpired:
        supervisor.kill()
        raise OursError("supervisord did not end; look for its processes.") from None


class _Stopped(BaseException):
    """Somebody asked us to stop, by Ctrl-C, by `ladder down`, or by closing the terminal."""


def _raise_stopped(_number: int, _frame: FrameType | None) -> None:
    raise _Stopped


@contextmanager
def stopping_on_signals() -> Iterator[None]:
    """Leave the block quietly when we are asked to stop; a second request does not cut the stopping short."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, _stop_once) for number in numbers}
    try:
        yield
    except _Stopped:
        pass
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _stop_once(number: int, frame: FrameType | None) -> None:
    for other in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(other, signal.SIG_IGN)
    _raise_stopped(number, frame)


def serve(folder: Path) -> None:
    """`ladder up`: serve until somebody stops it."""
    with stopping_on_signals(), serving(folder, click.echo) as served:
        click.echo("")
        click.echo(f"Kernel Ladder is at {served.url}")
        for line in account_lines(served.accounts):
            click.echo(line)
        click.echo(f"logs: {served.home.logs}    Ctrl-C or `ladder down` stops it")
        # `ladder down` ends it in order; anything else is trouble.
        if status := served.supervisor.wait():
            raise OursError(f"supervisord ended with status {status}.\n{_logs(served.home)}")


def account_lines(accounts: Accounts | None) -> list[str]:
    """The demo accounts, as people read them."""
    if accounts is None:
        return []
    return [f"  {email:20} {role}" for email, role in seed.PEOPLE.items()] + [f"  password: {accounts.password}"]


def down(folder: Path) -> bool:
    """Stop what `up` started from `folder`; say whether there was anything.

    Raises:
        OursError: it does not end.
    """
    home = Home(folder)
    pid = home.supervisor()
    if pid is None:
        return False
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + longest_stop_s()
    while home.supervisor() == pid:
        if time.monotonic() > deadline:
            raise OursError(f"supervisord {pid} does not end.")
        time.sleep(POLL_S)
    return True
