"""A compiled `.cu` file, called through C: the same functions on a GPU and on the emulator."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from autograder.protocol import Load
from autograder.runner.report import SubmissionError


class Library:
    """What `cuda_entry.text` puts behind a file, with the types of C.

    Args:
        prefix: of the functions that record launches: the emulator's own, or those of the entry.
    """

    def __init__(self, path: Path, load: Load, prefix: str) -> None:
        try:
            library = ctypes.CDLL(str(path))
        except OSError as error:
            raise SubmissionError("load", "CompileError", f"The compiled file cannot be loaded: {error}") from None
        self._library = library
        self._error = library.kernel_ladder_error
        self._error.restype = ctypes.c_char_p
        self._launched = getattr(library, f"{prefix}_launched")
        self._launched.restype = ctypes.c_bool
        self._forget = getattr(library, f"{prefix}_forget")
        self.takes = library.kernel_ladder_takes
        getattr(library, f"{prefix}_set_ghost")(int(load.ghost))

    def call(self, words: list[int]) -> None:
        """Call the launcher; raise what it says went wrong."""
        given = (ctypes.c_int64 * len(words))(*words)
        self._library.kernel_ladder_call(given)
        self._raise_if(given[0])

    def _raise_if(self, failed: int) -> None:
        if failed:
            raise SubmissionError("call", "LauncherError", self._error().decode(errors="replace"))

    def forget(self) -> None:
        """Begin the record of a call."""
        self._forget()

    def launches(self) -> Iterator[dict[str, Any]]:
        """What was launched since `forget`: kernels with their grids, counted."""
        kernel, grid, calls = ctypes.c_char_p(), (ctypes.c_uint * 3)(), ctypes.c_uint64()
        number = 0
        while self._launched(number, ctypes.byref(kernel), grid, ctypes.byref(calls)):
            name = (kernel.value or b"").decode(errors="replace")
            yield {"kernel": name, "grid": list(grid), "calls": calls.value}
            number += 1


def counters_of(library: ctypes.CDLL) -> dict[str, int]:
    """What the emulator counted since it was told to."""
    name, value = ctypes.c_char_p(), ctypes.c_uint64()
    library.cuda_emulator_counter.restype = ctypes.c_bool
    found: dict[str, int] = {}
    while library.cuda_emulator_counter(len(found), ctypes.byref(name), ctypes.byref(value)):
        found[(name.value or b"").decode()] = value.value
    return found
