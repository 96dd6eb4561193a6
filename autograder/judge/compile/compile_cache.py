"""What compilers made of one submission, on its way from runner to runner: memory that nobody here looks into.

A check calls the public cases in some runners and the hidden ones in others, and compiling the same source again would
be most of what the others do. They may have what the first ones have made: all of them run the same submission, which
could say the same in its source. What was shown to the first ones is public.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict

from autograder.judge.protocol import memfd

MAX_SOURCES = 8
"""Submissions whose packs are kept from check to measurement; what was kept longest ago goes first."""


class CompileCache:
    """Descriptors of the packs of one submission's runners, and of what an earlier attempt has sealed."""

    def __init__(self, sealed: list[int] | None = None) -> None:
        self._written: list[int] = []
        self._sealed = sealed or []
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
                    memfd.seal(descriptor)
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
                memfd.close(own)
                own = []
            return own

    def close(self) -> None:
        """Let go of them."""
        with self._lock:
            memfd.close([*self._written, *self._sealed])
            self._written, self._sealed = [], []


class CacheStore:
    """What was compiled, until the same source is loaded again: by source, descriptors that nobody writes.

    Args:
        max_sources: sources that are kept; what was kept longest ago goes first.
    """

    def __init__(self, max_sources: int = MAX_SOURCES) -> None:
        self._max_sources = max_sources
        self._kept: OrderedDict[str, list[int]] = OrderedDict()

    def __contains__(self, source: str) -> bool:
        return source in self._kept

    def keep(self, source: str, descriptors: list[int]) -> None:
        """Keep these, which are the shelf's from now on, instead of what was there of this source."""
        memfd.close(self._kept.pop(source, []))
        if descriptors:
            self._kept[source] = descriptors
        while len(self._kept) > self._max_sources:
            memfd.close(self._kept.popitem(last=False)[1])

    def of(self, source: str) -> list[int]:
        """What there is of a source: descriptors of one's own."""
        return [os.dup(descriptor) for descriptor in self._kept.get(source, ())]

    def close(self) -> None:
        """Let go of all."""
        for descriptors in self._kept.values():
            memfd.close(descriptors)
        self._kept.clear()
