"""Being asked to stop: first the attempt at hand may finish; then, or when that takes too long, it is handed back."""

from __future__ import annotations

import os
import select
import time

from worker.node_errors import HandedBackError

STOPPED = "the node was stopped"


class Stopping:
    """Whether this node takes work, finishes what it has, or gives it back. Safe to call from a signal handler."""

    def __init__(self, drain_s: float) -> None:
        self._drain_s = drain_s
        self._asked_at: float | None = None
        # Readable once the attempt at hand is to be given back, so that whoever waits for something else wakes up.
        self._woken = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def ask(self) -> None:
        """Take no more work; asked again, give back what is at hand."""
        if self._asked_at is None:
            self._asked_at = time.monotonic()
        else:
            os.eventfd_write(self._woken, 1)

    def look(self) -> None:
        """Give back what is at hand if it has been waited for long enough."""
        if self._asked_at is not None and time.monotonic() - self._asked_at > self._drain_s:
            os.eventfd_write(self._woken, 1)

    @property
    def draining(self) -> bool:
        """It takes no more work."""
        return self._asked_at is not None

    @property
    def handing_back(self) -> bool:
        """What is at hand is to be given back."""
        return bool(self._ready(0))

    def fileno(self) -> int:
        """Readable once `handing_back`."""
        return self._woken

    def sleep(self, seconds: float) -> None:
        """Wait, unless what is waited for is given back.

        Raises:
            HandedBackError: it is.
        """
        if self._ready(seconds):
            raise HandedBackError(STOPPED)

    def _ready(self, seconds: float) -> list[tuple[int, int]]:
        poll = select.poll()
        poll.register(self._woken, select.POLLIN)
        return poll.poll(1000 * seconds)
