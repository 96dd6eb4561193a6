"""The door between a judge and one container: a socket in a folder of its own, opened once, then gone.

The folder is root's and the container has it to read only; the socket is the container's user's. The judge accepts one
connection, looks who it is, and removes the socket: nothing is left to connect to.
"""

from __future__ import annotations

import os
import select
import shutil
import socket
import struct
import tempfile
import time
from pathlib import Path

from autograder.errors import SandboxError
from autograder.sandbox.docker.settings import SOCKET

_PEER = struct.Struct("3i")
_LOOK_S = 0.05


class Gate:
    """A socket that one process may connect to, once.

    Args:
        root: where the folder is made; root's alone.
        uid: the user who may connect.
    """

    def __init__(self, root: Path, uid: int) -> None:
        root.mkdir(mode=0o755, parents=True, exist_ok=True)
        if root.stat().st_uid != 0 or root.stat().st_mode & 0o022:
            raise SandboxError(f"{root} has to belong to root, and nobody else may write there")
        self.folder = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=root))
        self.folder.chmod(0o755)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        path = self.folder / SOCKET
        self._listener.bind(str(path))
        path.chmod(0o600)
        os.chown(path, uid, uid)
        self._listener.listen(1)
        self._uid = uid

    def accept(self, first: int, container: str, deadline: float) -> socket.socket:
        """The line to the container's first process; then there is no way in any more.

        Args:
            first: that process's id.
            container: the id of the container, which the name of its control group ends with.
            deadline: by the monotonic clock.

        Raises:
            SandboxError: nobody came, or somebody else.
        """
        try:
            line = self._first_comer(first, deadline)
        finally:
            self.close()
        try:
            self._check(line, first, container)
        except SandboxError:
            line.close()
            raise
        return line

    def _first_comer(self, first: int, deadline: float) -> socket.socket:
        poll = select.poll()
        poll.register(self._listener, select.POLLIN)
        while not poll.poll(1000 * _LOOK_S):
            if not Path("/proc", str(first)).exists():
                raise SandboxError("a container ended before it connected")
            if time.monotonic() > deadline:
                raise SandboxError("a container did not connect in time")
        return self._listener.accept()[0]

    def _check(self, line: socket.socket, first: int, container: str) -> None:
        pid, uid, _ = _PEER.unpack(line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
        if (pid, uid) != (first, self._uid):
            raise SandboxError(f"process {pid} of user {uid} connected instead of a container")
        groups = Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8").splitlines()
        if not any(container in group.rpartition("/")[2] for group in groups):
            raise SandboxError(f"process {pid} is not in the control group of its container")

    def close(self) -> None:
        """Close and unlink it; may be called again. The folder stays until `remove`: it is mounted."""
        self._listener.close()
        (self.folder / SOCKET).unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove the folder as well."""
        self.close()
        shutil.rmtree(self.folder, ignore_errors=True)
