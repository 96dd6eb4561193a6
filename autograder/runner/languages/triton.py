"""Triton through its interpreter, on the CPU."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from autograder.protocol import Load
from autograder.runner import source
from autograder.runner.languages import Entry
from autograder.runner.memory import HostMemory

_clock = time.perf_counter_ns
"""Taken before a submission can replace it."""


class TritonLoader(HostMemory):
    """Imports torch and triton; `TRITON_INTERPRET=1` is in the environment before."""

    def __init__(self) -> None:
        self.wrappers: tuple[type[BaseException], ...] = ()
        self._versions: dict[str, str] = {}
        self._kernels: tuple[type, ...] = ()
        self._named: Any
        self._ghosts: Callable[[bool], None]
        self._watch: Any
        self._record: Any
        self._operations: Any

    def warm(self) -> None:
        """Import torch, triton and its interpreter, with one thread, and run one kernel of ours."""
        # The toolchain is imported when a zygote asks for it; other processes read this module's interface without it.
        import numpy as np  # noqa: PLC0415
        import torch  # noqa: PLC0415
        import triton  # noqa: PLC0415
        from triton.runtime.errors import InterpreterError  # noqa: PLC0415
        from triton.runtime.jit import KernelInterface  # noqa: PLC0415

        torch.set_num_threads(1)
        from autograder.runner.languages import interpreter, no_gpu, warm  # noqa: PLC0415
        from autograder.runner.record import OperationRecorder, Record  # noqa: PLC0415

        self._record = Record()
        self._operations = OperationRecorder(self._record)
        self._ghosts, self._watch = interpreter.install(self._record)
        self._named = no_gpu.named
        self.wrappers = (InterpreterError,)
        self._kernels = (KernelInterface,)
        self._versions = {"torch": torch.__version__, "triton": triton.__version__, "numpy": np.__version__}
        warm.run()

    def begin(self) -> None:
        """The processor is ready."""

    def versions(self) -> dict[str, str]:
        """Versions of torch, triton and numpy."""
        return self._versions

    def made(self) -> None:
        """Nothing that takes long."""

    def load(self, load: Load) -> dict[str, Entry]:
        """Execute the source and find its functions."""
        self._ghosts(load.ghost)
        with self._named():
            module = source.execute(load)
        found = {one.entry: source.find_entry(module, one, self._kernels) for one in load.each()}
        return {
            name: TritonEntry(self._named()(entry), signature, self._record, self._operations, self._watch)
            for name, (entry, signature) in found.items()
        }


class TritonEntry:
    """A host function that launches interpreted kernels."""

    def __init__(self, entry: Callable[..., Any], signature: str, record: Any, operations: Any, watch: Any) -> None:
        self._entry = entry
        self._watch = watch
        self._record = record
        self._operations = operations
        self.signature = signature

    def call(self, arguments: list[Any], *, record: bool) -> int:
        """Call it; the event clock is the host's, as the interpreter runs on it."""
        if record:
            return self._recorded(arguments)
        entry, clock = self._entry, _clock
        start = clock()
        entry(*arguments)
        return clock() - start

    def batch(self, calls: Iterator[list[Any]]) -> int:
        """One after the other; the host's nanoseconds of all."""
        entry, clock = self._entry, _clock
        start = clock()
        for arguments in calls:
            entry(*arguments)
        return clock() - start

    def _recorded(self, arguments: list[Any]) -> int:
        entry, clock = self._entry, _clock
        self._record.clear()
        self._watch.call_begins(arguments)
        self._record.recording = True
        try:
            with self._operations:
                start = clock()
                entry(*arguments)
                return clock() - start
        finally:
            self._record.recording = False

    def begin_counting(self) -> None:
        """Count the next recorded call, from nothing."""
        self._watch.count(on=True)

    def counted(self) -> dict[str, int]:
        """What it did, by counter; no call is counted any more."""
        found: dict[str, int] = self._watch.count(on=False)
        return found

    def seen(self) -> dict[str, Any]:
        """Kernels and operations of the last recorded call."""
        seen: dict[str, Any] = self._record.seen()
        return seen
