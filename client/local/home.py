"""The folder of an installation on one machine, and who may run it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from client.errors import UsageError, writing

MAX_SOCKET_PATH = 100
"""Bytes of a unix socket's path that every system takes."""


@dataclass(frozen=True)
class Home:
    """What lies where in the folder."""

    folder: Path

    @property
    def logs(self) -> Path:
        """One log per process."""
        return self.folder / "log"

    @property
    def configuration(self) -> Path:
        """What supervisord reads; written anew by every `up`."""
        return self.folder / "supervisord.conf"

    @property
    def pid_file(self) -> Path:
        """Written by supervisord, removed when it ends."""
        return self.folder / "supervisord.pid"

    @property
    def lock(self) -> Path:
        """Held while an `up` runs."""
        return self.folder / "up.lock"

    @property
    def node_key(self) -> Path:
        """The embedded node's key; its owner's alone."""
        return self.folder / "node-local.key"

    @property
    def password(self) -> Path:
        """The password of the demo accounts, where this home has them; its owner's alone."""
        return self.folder / "demo-password"

    @property
    def socket(self) -> Path | None:
        """Where supervisorctl finds supervisord; `None` where the path would be too long for a socket."""
        path = self.folder / "supervisor.sock"
        return path if len(os.fsencode(path)) <= MAX_SOCKET_PATH else None

    def make(self) -> None:
        """Make the folder; nobody else may look into it."""
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            self.folder.chmod(0o700)
            self.logs.mkdir(exist_ok=True)

    def supervisor(self) -> int | None:
        """The process id of a supervisord that runs this home."""
        try:
            pid = int(self.pid_file.read_text(encoding="ascii"))
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except (OSError, ValueError):
            return None
        # A process id is used again after a restart of the machine.
        return pid if os.fsencode(self.configuration) in command else None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the home; one installation is run once.

        Raises:
            UsageError: somebody else holds it, or what they started still runs.
        """
        with self.lock.open("a", encoding="ascii") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError(f"{self.folder} is being served already; `ladder down` stops it.") from None
            if (pid := self.supervisor()) is not None:
                raise UsageError(f"supervisord {pid} still serves {self.folder}; `ladder down` stops it.")
            yield


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read; it never exists with another mode."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
