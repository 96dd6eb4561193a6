"""Things for a submission to find: a secret in the judge's environment and on the disk, and somebody who listens."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

CANARY = Path("/tmp/hostile-canary")
SECRET = "a secret that no runner may read"
PORTS = range(47613, 47621)


@contextmanager
def canary() -> Iterator[None]:
    """Put them out, and take them away again.

    Raises:
        OSError: none of the ports is free.
    """
    os.environ["HOSTILE_CANARY"] = SECRET
    CANARY.mkdir(mode=0o777, exist_ok=True)
    CANARY.chmod(0o777)
    (CANARY / "secret").write_text(SECRET, encoding="utf-8")
    (CANARY / "secret").chmod(0o666)
    command = [sys.executable, "-c", "import time; time.sleep(36000)", "hostile-canary"]
    with ExitStack() as last:
        last.enter_context(_listener())
        last.enter_context(_named(b"\0hostile-canary"))
        last.enter_context(_named(str(CANARY / "socket").encode()))
        bird = last.enter_context(subprocess.Popen(command))
        last.callback(bird.kill)
        try:
            yield
        finally:
            os.environ.pop("HOSTILE_CANARY", None)
            shutil.rmtree(CANARY, ignore_errors=True)


def touched() -> bool:
    """Whether somebody wrote to the secret's file."""
    try:
        return (CANARY / "secret").read_text(encoding="utf-8") != SECRET
    except FileNotFoundError:
        return False  # Another run on this machine has ended, and has taken it away.


def _listener() -> socket.socket:
    for port in PORTS:
        with suppress(OSError):
            return socket.create_server(("127.0.0.1", port))
    raise OSError(f"no port between {PORTS[0]} and {PORTS[-1]} is free")


def _named(name: bytes) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with suppress(OSError):  # Another worker of this run listens already.
        listener.bind(name)
        listener.listen()
    return listener
