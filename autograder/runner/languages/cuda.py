"""CUDA C++ on the CPU: compiled with g++ and run by the emulator (docs/cuda_emulator.md), in the runner's own process.

The zygote compiles what is the same for every file; each runner gets its own copy of that, and compiles its one source
into its own folder. Nothing of it is shared with, or left for, another submission.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from autograder.emulator import build
from autograder.emulator.translate import MalformedError, UnsupportedError, not_here
from autograder.languages.cpp_text import shown_name
from autograder.protocol import ORDERS, Load
from autograder.runner.languages import Entry, cuda_entry, cuda_messages
from autograder.runner.languages.cuda_library import Library, counters_of
from autograder.runner.memory import HostMemory
from autograder.runner.report import SubmissionError, cut

_clock = time.perf_counter_ns
"""Taken before a submission can replace it."""

_MAX_LOG = 8000


class CudaLoader(HostMemory):
    """Compiles files with g++ and the emulator's headers."""

    wrappers: tuple[type[BaseException], ...] = ()

    def __init__(self) -> None:
        self._made: dict[str, bytes] = {}
        self._versions: dict[str, str] = {}
        self._folder = Path()

    def warm(self) -> None:
        """Import torch, compile the emulator, and keep what that made in memory: a runner's folders are its own."""
        # The toolchain is imported when a zygote asks for it; other processes read this module's interface without it.
        import torch  # noqa: PLC0415

        torch.set_num_threads(1)
        with tempfile.TemporaryDirectory() as folder:
            build.prepare(Path(folder))
            self._made = {path.name: path.read_bytes() for path in Path(folder).iterdir()}
        version = subprocess.run([build.compiler(), "-dumpfullversion"], capture_output=True, text=True, check=True)
        self._versions = {"torch": torch.__version__, "g++": version.stdout.strip()}

    def begin(self) -> None:
        """Lay out what the zygote made, in the runner's own folder."""
        self._folder = Path(os.environ["TMPDIR"]) / "emulator"
        self._folder.mkdir()
        for name, content in self._made.items():
            (self._folder / name).write_bytes(content)
        self._made = {}

    def versions(self) -> dict[str, str]:
        """Versions of torch and g++."""
        return self._versions

    def made(self) -> None:
        """Nothing that takes long."""

    def load(self, load: Load) -> dict[str, Entry]:
        """Compile the source, load the library and find its launchers."""
        library = EmulatedLibrary(self._compiled(load), load)
        launchers = cuda_entry.launchers(load, library.takes)
        return {one.entry: CudaEntry(library, one, words) for one, words in launchers}

    def _compiled(self, load: Load) -> Path:
        prepared = build.Prepared(self._folder)
        filename = load.filename.rpartition("/")[2]
        try:
            return build.build(load.source, self._folder, prepared, filename=filename, entry=cuda_entry.text(load))
        except UnsupportedError as error:
            raise SubmissionError("load", "GpuOnly", not_here(error.what), error.line) from None
        except MalformedError as error:
            raise SubmissionError("load", "CompileError", error.what, error.line) from None
        except build.CompileError as error:
            print(cut(str(error), _MAX_LOG), file=sys.stderr)  # noqa: T201 -- the student's log.
            shown = shown_name(filename)
            raise cuda_messages.from_compiler(str(error), shown, load.source) from None


class EmulatedLibrary(Library):
    """A file that the emulator runs."""

    def __init__(self, path: Path, load: Load) -> None:
        super().__init__(path, load, prefix="cuda_emulator")
        self._library.cuda_emulator_trouble.restype = ctypes.c_char_p
        self._library.cuda_emulator_trouble_kind.restype = ctypes.c_char_p
        self._library.cuda_emulator_trouble_code.restype = ctypes.c_size_t
        self._library.cuda_emulator_trouble_other_code.restype = ctypes.c_size_t
        self._path = path
        self._filename = load.filename.rpartition("/")[2]
        self._launcher = ctypes.cast(self._library.kernel_ladder_call, ctypes.c_void_p)

    def ready(self, order: int, seed: int, *, races: bool) -> None:
        """Forget the call before; say in which order threads take turns, and whether races are looked for."""
        self.forget()
        self._library.cuda_emulator_set_order(order, ctypes.c_uint(seed))
        self._library.cuda_emulator_watch_races(int(races))

    def add(self, name: str, tensor: Any) -> None:
        """Say that kernels may touch this tensor."""
        # Rows of the last dimension: those of all the others follow one another evenly (`buffers.layout_of`).
        columns = tensor.shape[-1] if tensor.dim() > 1 else tensor.numel()
        stride = tensor.stride(-2) if tensor.dim() > 1 else 0
        sizes = (tensor.element_size(), tensor.numel() // columns if columns else 0, columns, stride)
        address = ctypes.c_void_p(tensor.data_ptr())
        self._library.cuda_emulator_add_array(name.encode(), address, *map(ctypes.c_size_t, sizes))

    def count(self, *, on: bool) -> dict[str, int]:
        """Count from now on, from nothing, or no more; what was counted so far."""
        found = counters_of(self._library)
        self._library.cuda_emulator_count(int(on))
        return found

    def call(self, words: list[int]) -> None:
        """Call the launcher on a stack of its own; raise what went wrong in it or in a kernel."""
        given = (ctypes.c_int64 * len(words))(*words)
        self._library.cuda_emulator_call(self._launcher, given)
        if kind := self._library.cuda_emulator_trouble_kind():
            raise self._trouble(kind.decode(errors="replace"))
        self._raise_if(given[0])

    def _trouble(self, kind: str) -> SubmissionError:
        text = self._library.cuda_emulator_trouble().decode(errors="replace")
        line = self._library.cuda_emulator_trouble_line() or self._line(self._library.cuda_emulator_trouble_code())
        if other := self._library.cuda_emulator_trouble_other_code():
            text = text.replace("{line}", str(self._line(other)))
        return SubmissionError("call", kind, text, line)

    def _line(self, code: int) -> int:
        return build.line_of(self._path, code, self._filename) if code else 0


class CudaEntry:
    """A launcher whose kernels the emulator runs."""

    def __init__(self, library: EmulatedLibrary, load: Load, words: cuda_entry.Words) -> None:
        self.signature = cuda_entry.declaration(load)
        self._library = library
        self._names = load.arguments
        self._words = words
        self._recorded = 0

    def call(self, arguments: list[Any], *, record: bool) -> int:
        """Call it; the event clock is the host's, as the emulator runs on it.

        Recorded calls go through the orders one by one.
        """
        words = self._words.of(arguments)
        self._library.ready(self._recorded % ORDERS if record else 0, seed=self._recorded, races=record)
        self._recorded += record
        for name, value in zip(self._names, arguments, strict=True):
            if cuda_entry.is_tensor(value):
                self._library.add(name, value)
        start = _clock()
        self._library.call(words)
        return _clock() - start

    def batch(self, calls: Iterator[list[Any]]) -> int:
        """One after the other; the host's nanoseconds of all."""
        start = _clock()
        for arguments in calls:
            self.call(arguments, record=False)
        return _clock() - start

    def begin_counting(self) -> None:
        """Count the next recorded call, from nothing."""
        self._library.count(on=True)

    def counted(self) -> dict[str, int]:
        """What it did, by counter; no call is counted any more."""
        return self._library.count(on=False)

    def seen(self) -> dict[str, Any]:
        """Kernels of the last recorded call."""
        return {"launches": list(self._library.launches()), "operations": {}}
