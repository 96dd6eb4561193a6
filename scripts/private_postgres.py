"""A PostgreSQL of one's own for as long as a `with` block lasts: its own folder, its own port, durable as it comes.

PostgreSQL refuses to run as root, so that there it runs as the user `postgres`.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

USER = "postgres"
_INSTALLED = Path("/usr/lib/postgresql")


@dataclass(frozen=True)
class Cluster:
    """A server that runs.

    Attributes:
        url: of its database `postgres`, as its superuser.
        pid: of its first process; the others are children of it.
    """

    folder: Path
    port: int
    pid: int

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"postgresql://{USER}@127.0.0.1:{self.port}/postgres"


def programs() -> Path | None:
    """The folder with `initdb` and `pg_ctl`, the newest there is; `None` where PostgreSQL's server is not installed."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    versions = sorted(_INSTALLED.glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    return versions[-1].parent if versions else None


@contextmanager
def private_postgres(settings: Mapping[str, str] | None = None) -> Iterator[Cluster]:
    """Make a cluster, start it, and take it away again.

    Args:
        settings: lines of its configuration; what is not said is as PostgreSQL ships it, `fsync` on.

    Raises:
        SystemExit: PostgreSQL's server is not installed.
    """
    binaries = programs()
    if binaries is None:
        raise SystemExit("initdb is not on this machine: install PostgreSQL's server (Debian: postgresql).")
    folder = Path(tempfile.mkdtemp(prefix="ladder-postgres-"))
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, USER)
        data = folder / "data"
        _run(binaries / "initdb", "--pgdata", str(data), "--username", USER, "--auth", "trust", "--encoding", "UTF8")
        port = _free_port()
        lines = {"port": str(port), "listen_addresses": "'127.0.0.1'", "unix_socket_directories": f"'{folder}'"}
        with (data / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.writelines(f"{name} = {value}\n" for name, value in (lines | dict(settings or {})).items())
        control = ("--pgdata", str(data), "--wait", "--silent")
        _run(binaries / "pg_ctl", "start", *control, "--log", str(folder / "log"))
        try:
            pid = int((data / "postmaster.pid").read_text(encoding="ascii").split()[0])
            yield Cluster(folder, port, pid)
        finally:
            _run(binaries / "pg_ctl", "stop", *control, "--mode", "immediate")
    finally:
        shutil.rmtree(folder)


def _run(*command: str | Path) -> None:
    user = USER if os.geteuid() == 0 else None
    home = pwd.getpwnam(user).pw_dir if user else None
    # Its log goes to a file: a server that inherited our pipe would keep `run` waiting for its end.
    done = subprocess.run(
        command, user=user, group=user, extra_groups=[] if user else None, cwd=home,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{Path(command[0]).name} failed: {done.stderr.strip()}")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])
