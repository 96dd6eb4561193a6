"""Triton through its interpreter, on the CPU."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from autograder.protocol import Load
from autograder.runner import source


class TritonLoader:
    """Imports torch and triton; the environment has `TRITON_INTERPRET=1` before."""

    def __init__(self) -> None:
        self.wrappers: tuple[type[BaseException], ...] = ()
        self._versions: dict[str, str] = {}

    def warm(self) -> None:
        """Import torch, triton and its interpreter, with one thread."""
        import numpy as np  # noqa: PLC0415 -- the toolchain is imported when a zygote asks for it, not before.
        import torch  # noqa: PLC0415
        import triton  # noqa: PLC0415
        import triton.language  # noqa: PLC0415
        from triton.runtime.errors import InterpreterError  # noqa: PLC0415

        torch.set_num_threads(1)
        self.wrappers = (InterpreterError,)
        self._versions = {"torch": torch.__version__, "triton": triton.__version__, "numpy": np.__version__}

    def versions(self) -> dict[str, str]:
        """Versions of torch, triton and numpy."""
        return self._versions

    def load(self, load: Load) -> TritonEntry:
        """Execute the source and find its entry."""
        module = source.execute(load)
        entry, signature = source.find_entry(module, load)
        return TritonEntry(entry, signature)


class TritonEntry:
    """A host function that launches interpreted kernels."""

    def __init__(self, entry: Callable[..., Any], signature: str) -> None:
        self._entry = entry
        self.signature = signature
        self._clock = time.perf_counter_ns

    def call(self, arguments: list[Any], *, record: bool) -> int:
        """Call it; the event clock is the host's, as the interpreter runs on it."""
        entry, clock = self._entry, self._clock
        start = clock()
        entry(*arguments)
        return clock() - start

    def seen(self) -> dict[str, Any]:
        """Nothing yet was recorded."""
        return {}
