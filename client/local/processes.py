"""The four processes of an installation as a configuration for supervisord, which starts again what dies.

They start and stop in an order that loses nothing: the recorder is there before anything is found and until the worker
has said its last; the worker comes last and goes first.
"""

from __future__ import annotations

import math
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from client.local.home import Home

KEPT_LOGS = 3
MAX_LOG = "10MB"
DRAIN_S = 30.0
"""How long a worker lets the attempt at hand go on unless `LADDER_DRAIN_S` says something else."""
LAST_WORDS_S = 25
"""What it needs after that to hand the attempt back and to end its judge."""
START_RETRIES = 10_000
"""supervisord waits a second longer after each start that failed, and gives up for good after so many in a row. A node
whose broker, disk or server has a bad hour must be there when it is over."""


@dataclass(frozen=True)
class Process:
    """One process.

    Attributes:
        order: started from low to high, stopped from high to low.
        stop_wait_s: how long it may take to end before it is killed with everything it started.
    """

    name: str
    arguments: tuple[str, ...]
    order: int
    stop_wait_s: int = 10


def processes(port: int, environ: Mapping[str, str] = os.environ) -> tuple[Process, ...]:
    """The processes of one machine; what else they need to know stands in their environment."""
    drain_s = _seconds(environ.get("LADDER_DRAIN_S", ""), DRAIN_S)
    return (
        Process("recorder", ("recorder",), 1),
        Process("dispatcher", ("dispatcher",), 2),
        Process("web", ("web", "--port", str(port)), 3),
        Process("worker", ("worker",), 4, stop_wait_s=math.ceil(drain_s) + LAST_WORDS_S),
    )


def longest_stop_s(environ: Mapping[str, str] = os.environ) -> float:
    """How long all of them may take to end, one after the other."""
    return 10.0 + sum(process.stop_wait_s for process in processes(0, environ))


def _seconds(text: str, default: float) -> float:
    """What the worker makes of it; what it cannot read it refuses itself, with a better message."""
    try:
        seconds = float(text)
    except ValueError:
        return default
    return seconds if 0 <= seconds < math.inf else default


def configuration(home: Home, programs: Sequence[Process]) -> str:
    """The text of supervisord's configuration file; every program inherits supervisord's environment.

    Paths are relative to the home, where supervisord is started: it expands some of what it reads twice, so that a path
    with a percent sign in it could not be written.
    """
    sections = [_supervisord(home), *_control(home), *(_program(home, process) for process in programs)]
    return "; Written by `ladder up`; do not edit.\n\n" + "\n\n".join(sections) + "\n"


def _supervisord(home: Home) -> str:
    # Without this line supervisord warns that it runs as root, which the sandbox makes good use of.
    user = ["user = root"] if os.geteuid() == 0 else []
    return _section(
        "supervisord",
        f"logfile = {_inside(home, home.logs)}/supervisord.log",
        f"pidfile = {_inside(home, home.pid_file)}",
        f"logfile_maxbytes = {MAX_LOG}",
        f"logfile_backups = {KEPT_LOGS}",
        "nodaemon = true",
        "silent = true",
        *user,
    )


def _control(home: Home) -> list[str]:
    """What supervisorctl needs, where a socket can be had."""
    if home.socket is None:
        return []
    return [
        _section("unix_http_server", f"file = {_inside(home, home.socket)}", "chmod = 0700"),
        _section(
            "rpcinterface:supervisor",
            "supervisor.rpcinterface_factory = supervisor.rpcinterface:make_main_rpcinterface",
        ),
        _section("supervisorctl", "serverurl = unix://%(here)s/" + _inside(home, home.socket)),
    ]


def _program(home: Home, process: Process) -> str:
    # -P: what lies in the folder where somebody typed `ladder up` is not imported.
    command = shlex.join([sys.executable, "-P", "-m", "client", *process.arguments])
    return _section(
        f"program:{process.name}",
        f"command = {command.replace('%', '%%')}",
        f"priority = {process.order}",
        f"stdout_logfile = {_inside(home, home.logs)}/{process.name}.log",
        f"stdout_logfile_maxbytes = {MAX_LOG}",
        f"stdout_logfile_backups = {KEPT_LOGS}",
        "redirect_stderr = true",
        "autorestart = true",
        "startsecs = 1",
        f"startretries = {START_RETRIES}",
        f"stopwaitsecs = {process.stop_wait_s}",
        "killasgroup = true",
    )


def _section(name: str, *lines: str) -> str:
    return "\n".join([f"[{name}]", *lines])


def _inside(home: Home, path: Path) -> str:
    return path.relative_to(home.folder).as_posix()
