"""What compilers made of one submission, on its way from runner to runner: memory that nobody here looks into.

A check calls the public cases in some runners and the hidden ones in others, and compiling the same source again would
be most of what the others do. They may have what the first ones have made: all of them run the same submission, which
could say the same in its source. What was shown to the first ones is public.
"""

from __future__ import annotations

import os
import threading

from autograder.judge import memory


class Packs:
    """Descriptors of the packs of one submission's runners."""

    def __init__(self) -> None:
        self._written: list[int] = []
        self._sealed: list[int] = []
        self._lock = threading.Lock()

    def add(self, descriptor: int | None) -> None:
        """Keep one that a runner has just written, if it has."""
        if descriptor is not None:
            with self._lock:
                self._written.append(descriptor)

    def seal(self) -> None:
        """Have nobody write them any more, whoever has them. One that somebody has mapped to write is let go."""
        with self._lock:
            for descriptor in self._written:
                try:
                    memory.seal(descriptor)
                    self._sealed.append(descriptor)
                except OSError:  # Somebody has it mapped, or has seen to it that nothing can be sealed any more.
                    os.close(descriptor)
            self._written = []

    def sealed(self) -> list[int]:
        """Descriptors of one's own of all that were sealed; another thread may close these here at any time."""
        with self._lock:
            own: list[int] = []
            try:
                own += (os.dup(descriptor) for descriptor in self._sealed)
            except OSError:  # No more descriptors: compiled again, then.
                memory.close(own)
                own = []
            return own

    def close(self) -> None:
        """Let go of them."""
        with self._lock:
            memory.close([*self._written, *self._sealed])
            self._written, self._sealed = [], []
