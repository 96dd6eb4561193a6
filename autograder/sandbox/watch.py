"""Limits that are watched rather than set, for machines without control groups or namespaces."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from contextlib import suppress

from autograder.sandbox import tree

_PERIOD_S = 0.02
_ENTRY_BYTES = 4096
"""What a file counts beside its contents: an inode is not free, and a folder full of them is slow to remove."""


class Watch:
    """Looks at a tree's memory and folder, at most every 20 ms.

    Memory is what the processes have of their own; what they inherited from the zygote, measured at init, is left out.
    """

    def __init__(self, init: int, folder: str, *, memory_bytes: int, tmp_bytes: int) -> None:
        self._init = init
        self._folder = folder
        self._memory_bytes = memory_bytes
        self._tmp_bytes = tmp_bytes
        self._inherited = own_bytes(init)
        self._next = 0.0

    def exceeded(self) -> bool:
        """Whether the memory or the folder (which is memory or disk of ours) has grown too large."""
        if time.monotonic() < self._next:
            return False
        self._next = time.monotonic() + _PERIOD_S
        return self._memory() > self._memory_bytes or self._folder_bytes() > self._tmp_bytes

    def _memory(self) -> int:
        if not self._memory_bytes:
            return 0
        return sum(max(0, own_bytes(pid) - self._inherited) for pid in tree.descendants(self._init))

    def _folder_bytes(self) -> int:
        return sum(_sizes(self._folder)) if self._tmp_bytes else 0


def own_bytes(pid: int) -> int:
    """Anonymous and shared memory of one process that is resident; 0 if it is gone."""
    fields = tree.status_fields(pid)
    return sum(int(fields.get(name, "0 kB").split()[0]) * 1024 for name in ("RssAnon", "RssShmem"))


def _sizes(folder: str) -> Iterator[int]:
    waiting = [folder]
    while waiting:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                yield status.st_blocks * 512 + _ENTRY_BYTES
                if stat.S_ISDIR(status.st_mode):
                    waiting.append(entry.path)
