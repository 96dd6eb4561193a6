"""The GPU's lock: checks share it, measuring holds it alone. Whoever works on one GPU waits for the others.

A lock on a file per GPU, which the system lets go when its holder ends, however it does; not the exclusive compute
mode, which would forbid judge and runner side by side (design §4).

    <folder>/<uuid>.turn    held while one waits for the lock: a measurement that waits lets no later check in before it
    <folder>/<uuid>.lock    the lock
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from autograder.contract import Work
from worker.node_errors import HandedBackError

LOOK_EVERY_S = 0.05


class GpuLock:
    """The lock of one GPU.

    Args:
        folder: of all locks on this machine; every worker has to name the same.
        uuid: of the GPU; `""` on a node without one, which locks nothing.
    """

    def __init__(self, folder: Path, uuid: str) -> None:
        self._folder = folder
        self._uuid = uuid

    @contextmanager
    def held(self, work: Work, *, patience_s: float, wait: Callable[[float], None] = time.sleep) -> Iterator[None]:
        """Hold it: shared while checking, alone while anything is measured.

        Args:
            patience_s: how long to wait for it.
            wait: sleeps; what it raises ends the waiting.

        Raises:
            HandedBackError: it could not be had in time.
        """
        if not self._uuid:
            yield
            return
        give_up_at = time.monotonic() + patience_s
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        how = fcntl.LOCK_SH if work is Work.check else fcntl.LOCK_EX
        lock = self._open("lock")
        try:
            turn = self._open("turn")
            try:
                self._take(turn, fcntl.LOCK_EX, give_up_at, wait)
                self._take(lock, how, give_up_at, wait)
            finally:
                os.close(turn)
            yield
        finally:
            os.close(lock)

    def _open(self, kind: str) -> int:
        return os.open(self._folder / f"{self._uuid}.{kind}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def _take(self, descriptor: int, how: int, give_up_at: float, wait: Callable[[float], None]) -> None:
        while True:
            try:
                fcntl.flock(descriptor, how | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > give_up_at:
                    raise HandedBackError(f"the GPU {self._uuid} was in use by others all the time") from None
                wait(LOOK_EVERY_S)
            else:
                return
