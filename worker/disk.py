"""Room on the node's disk, and the lock on its folder."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from worker.node_errors import FolderTakenError, HandedBackError

MEBIBYTE = 2**20
MIN_FILES = 1000
"""So many files have to be left: a disk can be full of them while it has bytes."""
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


class Disk:
    """The disk that the node's folder is on."""

    def __init__(self, folder: Path, min_free_mb: int) -> None:
        self._folder = folder
        self._min_free_mb = min_free_mb

    def trouble(self) -> str:
        """Why nothing can be taken now; empty if there is room."""
        try:
            found = os.statvfs(self._folder)
        except OSError as error:
            return f"its folder cannot be used: {error}"
        if found.f_flag & os.ST_RDONLY:
            # What a kernel makes of a disk that fails.
            return "its folder cannot be used: the file system is read-only"
        if found.f_files and found.f_favail < MIN_FILES:
            return f"disk full: {found.f_favail} files can still be made, {MIN_FILES} are needed"
        free_mb = found.f_bavail * found.f_frsize // MEBIBYTE
        if free_mb >= self._min_free_mb:
            return ""
        return f"disk full: {free_mb} MB are free, {self._min_free_mb} are needed"

    def check(self) -> None:
        """Take nothing without room.

        Raises:
            HandedBackError: there is none.
        """
        if trouble := self.trouble():
            raise HandedBackError(trouble)


@contextmanager
def handing_back_without_room() -> Iterator[None]:
    """Turn a disk that is full, or read-only, while we write into an attempt that is given back: it is ours."""
    try:
        yield
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise HandedBackError(f"the node's disk: {error}") from error
        raise


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep a second worker out of the folder; the system unlocks it when this process ends, however it does.

    Raises:
        FolderTakenError: another worker has it.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _lock(descriptor, folder)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, folder: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        other = os.read(descriptor, 20).decode("ascii", errors="replace").strip()
        raise FolderTakenError(
            f"{folder} belongs to another worker (process {other or 'unknown'}). Stop it, or give this worker its own "
            "folder with LADDER_WORK."
        ) from None
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
    except OSError:
        pass  # Only the message of a second worker would have named this process; a full disk must not stop us here.
