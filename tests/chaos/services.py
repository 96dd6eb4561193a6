"""A PostgreSQL and a Redis of the run's own: own ports, own folders, to be stopped and killed at will."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import psycopg
import redis

_INSTALLED = Path("/usr/lib/postgresql")
_USER = "postgres"
READY_S = 60.0


class NotHereError(Exception):
    """This machine lacks something that the run needs; the message says what."""


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def _programs() -> Path:
    found = sorted(_INSTALLED.glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    where = shutil.which("initdb") if not found else str(found[-1])
    if where is None:
        raise NotHereError("initdb is not on this machine: install PostgreSQL's server (Debian: postgresql)")
    return Path(where).resolve().parent


class Postgres:
    """A cluster as it is made by `initdb`, `fsync` on. As root it runs as the user `postgres`."""

    def __init__(self, folder: Path) -> None:
        self._programs = _programs()
        self._folder = folder
        self._user = _USER if os.geteuid() == 0 else None
        self.port = free_port()
        self.restarts = 0

    def make(self) -> None:
        """Make the cluster and start it."""
        self._folder.mkdir(mode=0o700)
        if self._user:
            shutil.chown(self._folder, self._user)
        data = str(self._data)
        self._run("initdb", "--pgdata", data, "--username", _USER, "--auth", "trust", "--encoding", "UTF8")
        lines = (
            f"port = {self.port}",
            "listen_addresses = '127.0.0.1'",
            f"unix_socket_directories = '{self._folder}'",
            "max_connections = 200",
        )
        with (self._data / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)
        self.start()
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute("CREATE DATABASE ladder")

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def url(self, database: str = "ladder", port: int | None = None) -> str:
        """Where it answers, or where a proxy before it does."""
        return f"postgresql://{_USER}@127.0.0.1:{port or self.port}/{database}"

    def start(self) -> None:
        """Start it and wait until it answers."""
        self._run("pg_ctl", "start", "--pgdata", str(self._data), "--wait", "--log", str(self._folder / "log"))

    def stop(self, mode: str) -> None:
        """`fast` ends transactions in order; `immediate` is a crash."""
        self._run("pg_ctl", "stop", "--pgdata", str(self._data), "--wait", "--mode", mode)

    def restart(self, mode: str, away_s: float) -> None:
        """Stop it, leave it away for a while, and start it."""
        self.stop(mode)
        time.sleep(away_s)
        self.start()
        self.restarts += 1

    def _run(self, program: str, *arguments: str) -> None:
        home = pwd.getpwnam(self._user).pw_dir if self._user else None
        done = subprocess.run(
            [str(self._programs / program), *arguments], user=self._user, group=self._user,
            extra_groups=[] if self._user else None, cwd=home, check=False, text=True,
            # Its log goes to a file: a server that inherited our pipe would keep us waiting for its end.
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{program} failed: {done.stderr.strip()}")


class Redis:
    """A server with a password that keeps nothing on disk: a restart loses every message, which must cost time only."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._password = secrets.token_urlsafe(16)
        self.port = free_port()
        self.restarts = 0

    def url(self, port: int | None = None) -> str:
        """Where it answers, or where a proxy before it does."""
        return f"redis://:{self._password}@127.0.0.1:{port or self.port}/0"

    def start(self) -> None:
        """Start it and wait until it answers."""
        program = shutil.which("redis-server")
        if program is None:
            raise NotHereError("redis-server is not on this machine: install Redis (Debian: redis-server)")
        self._folder.mkdir(exist_ok=True)
        command = [
            program, "--port", str(self.port), "--bind", "127.0.0.1", "--requirepass", self._password,
            "--save", "", "--appendonly", "no", "--dir", str(self._folder),
        ]  # fmt: skip
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        give_up_at = time.monotonic() + READY_S
        while not self._answers():
            if time.monotonic() > give_up_at:
                raise RuntimeError("the private Redis does not answer")
            time.sleep(0.05)

    def client(self) -> redis.Redis:
        """A connection of its own, not through a proxy."""
        return redis.Redis(
            host="127.0.0.1", port=self.port, password=self._password, socket_timeout=5, socket_connect_timeout=2
        )

    def _answers(self) -> bool:
        try:
            with self.client() as client:
                return bool(client.ping())
        except redis.RedisError:
            return False

    def restart(self, number: signal.Signals, away_s: float) -> None:
        """End it with this signal, leave it away for a while, and start it."""
        self.stop(number)
        time.sleep(away_s)
        self.start()
        self.restarts += 1

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """End it."""
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(READY_S)
            self._process = None
