"""What a runner prints: read from one pipe, the beginning kept, the rest counted."""

from __future__ import annotations

import fcntl
import os
import threading
from contextlib import suppress

from autograder.contract import MAX_LOG_CHARS

_KEPT = 4 * MAX_LOG_CHARS
_CHUNK = 1 << 16
_LARGEST_PIPE = 1 << 20


class Output:
    """The reading end of a runner's pipe.

    The pipe is made large enough for what is allowed, where the kernel lets it be, so that a runner that prints is not
    held up between two looks of the judge. Several threads may look at it.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._text = b""
        self._count = 0
        self._lock = threading.Lock()
        self._end, self.writer = os.pipe()
        os.set_blocking(self._end, False)
        with suppress(OSError):
            fcntl.fcntl(self._end, fcntl.F_SETPIPE_SZ, min(most + _CHUNK, _LARGEST_PIPE))

    def exceeded(self) -> bool:
        """Read what is there; whether it is more than allowed. What is beyond that is never read."""
        with self._lock:
            return self._read()

    def _read(self) -> bool:
        with suppress(BlockingIOError):
            while self._end >= 0 and self._count <= self._most and (data := os.read(self._end, _CHUNK)):
                self._count += len(data)
                self._text += data[: max(0, _KEPT - len(self._text))]
        return self._count > self._most

    def text(self) -> str:
        """What was read, capped, undecodable bytes replaced."""
        return self._text.decode("utf-8", "replace")[:MAX_LOG_CHARS]

    def close_writer(self) -> None:
        """Close this process's copy of the end that the runner has."""
        os.close(self.writer)

    def close(self) -> None:
        """Stop reading; the text stays."""
        with self._lock:
            self._read()
            os.close(self._end)
            self._end = -1
