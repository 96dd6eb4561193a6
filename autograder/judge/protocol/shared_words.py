"""Control words: one that only the judge writes, one that the runner writes, each in its own sealed memfd."""

from __future__ import annotations

import fcntl
import mmap
import os
import secrets

from autograder.judge.protocol.host import F_SEAL_FUTURE_WRITE
from autograder.protocol import WORD, WORD_BYTES


class SharedWord:
    """A nonce and a time in shared memory; the descriptor goes to the runner with `Load`."""

    def __init__(self, *, judge_writes: bool) -> None:
        self.descriptor = os.memfd_create("word", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.descriptor, WORD_BYTES)
        self._memory = mmap.mmap(self.descriptor, WORD_BYTES)
        seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
        fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, seals | (F_SEAL_FUTURE_WRITE if judge_writes else 0))

    def read(self) -> tuple[int, int]:
        """The nonce, and nanoseconds that the runner claims."""
        nonce, nanoseconds = WORD.unpack_from(self._memory)
        return nonce, nanoseconds

    def write(self, nonce: int) -> None:
        """Release the call with this nonce."""
        WORD.pack_into(self._memory, 0, nonce, 0)

    def close(self) -> None:
        """Let go of it."""
        if self.descriptor >= 0:
            self._memory.close()
            os.close(self.descriptor)
            self.descriptor = -1


class Nonces:
    """Numbers of calls: 64 random bits that are not 0, or 1, 2, 3 … in a test without that defence."""

    def __init__(self, *, random: bool) -> None:
        self._random = random
        self._last = 0

    def next(self) -> int:
        """A number for one call."""
        self._last = secrets.randbits(64) or 1 if self._random else self._last + 1
        return self._last

    def answered(self, nonce: int, word: int) -> bool:
        """Whether the runner's word says that call `nonce` is over."""
        return word == nonce if self._random else word >= nonce
