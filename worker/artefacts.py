"""Files that an attempt left: read without following a link, bounded, and only under names that the server takes."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from autograder.profiles import MAX_REPORT_BYTES, REPORT

MAX_BYTES = 2**20
MAX_FILES = 8
LOG_BYTES = 64 * 1024
"""So much of the end of the judge's log goes with an attempt that failed."""
LOG = "judge.log"
FOLDER = "artefacts"

Files = tuple[tuple[str, bytes], ...]
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")


def left_in(folder: Path) -> Files:
    """The files under `<folder>/artefacts/`, by name; what is no plain small file is passed over."""
    try:
        opened = os.open(folder / FOLDER, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return ()
    try:
        names = sorted(name for name in os.listdir(opened) if _NAME.fullmatch(name))  # noqa: PTH208  (of an open folder, which a path cannot name)
        return tuple(_read_some(opened, names))
    finally:
        os.close(opened)


def end_of(log: Path, *, since: int) -> Files:
    """The end of the judge's log, as far as it was written since it had `since` bytes."""
    try:
        with log.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            # It may have been begun anew.
            begin = since if since <= size else 0
            file.seek(max(begin, size - LOG_BYTES))
            data = file.read(LOG_BYTES)
    except OSError:
        return ()
    return ((LOG, data),) if data else ()


def _read_some(opened: int, names: list[str]) -> Iterator[tuple[str, bytes]]:
    count = 0
    for name in names:
        if count == MAX_FILES:
            return
        if (data := _read(opened, name)) is not None:
            count += 1
            yield name, data


def _read(opened: int, name: str) -> bytes | None:
    # O_NONBLOCK: a pipe without a writer would be waited for.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with contextlib.suppress(OSError):
        file = os.open(name, flags, dir_fd=opened)
        try:
            found = os.fstat(file)
            # Under a second name it may be anything.
            most = MAX_REPORT_BYTES if name == REPORT else MAX_BYTES
            if stat.S_ISREG(found.st_mode) and found.st_nlink == 1 and 0 < found.st_size <= most:
                with os.fdopen(os.dup(file), "rb") as reader:
                    return reader.read(most)
        finally:
            os.close(file)
    return None
