"""CUDA C++, compiled by nvcc for the GPU of the lane, in the runner's own sandbox and folder."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from autograder.gpu.driver import load_driver
from autograder.protocol import Load
from autograder.runner.gpu import GpuMemory
from autograder.runner.languages import Entry, cuda_entry, nvcc
from autograder.runner.languages.cuda_library import Library
from autograder.runner.languages.triton_gpu import EventClock


class CudaGpuLoader(GpuMemory):
    """Imports torch in the zygote, and takes a context of the GPU in the runner: CUDA survives no fork."""

    wrappers: tuple[type[BaseException], ...] = ()

    def __init__(self) -> None:
        self._versions: dict[str, str] = {}
        self._nvcc = ""
        self._architecture = ""
        self._clock: EventClock

    def warm(self) -> None:
        """Import torch and look for nvcc; nothing here may touch the GPU."""
        # The toolchain is imported when a zygote asks for it; other processes read this module's interface without it.
        import torch  # noqa: PLC0415

        torch.set_num_threads(1)
        load_driver()
        self._nvcc = nvcc.find_nvcc()
        self._versions = {
            "torch": torch.__version__, "cuda": str(torch.version.cuda), "nvcc": nvcc.version(self._nvcc)
        }  # fmt: skip

    def begin(self) -> None:
        """Take a context, and make everything that a call needs."""
        import torch  # noqa: PLC0415

        torch.cuda.init()  # type: ignore[no-untyped-call]
        self._clock = EventClock()
        super().begin()
        self._architecture = nvcc.architecture(self._nvcc, torch.cuda.get_device_capability(0))
        self._versions |= {"gpu": torch.cuda.get_device_name(0), "architecture": self._architecture}

    def awake(self) -> None:
        """Map and have the device work for this context, as at the beginning of a batch."""
        self.rehearse(lambda: self._clock.total_ns(self._clock.touch))

    def versions(self) -> dict[str, str]:
        """Versions of torch, CUDA and nvcc, the GPU's name, and what is compiled for."""
        return self._versions

    def made(self) -> Path:
        """The library and the source that it was made of."""
        return Path(os.environ["TMPDIR"]) / "compiled"

    def load(self, load: Load) -> dict[str, Entry]:
        """Compile the source, unless another runner's library came with it; load it and find its launchers."""
        path = self.made() / nvcc.LIBRARY_NAME
        if not path.exists():
            path = nvcc.compiled(load, self.made(), self._nvcc, self._architecture)
        library = Library(path, load, prefix="kernel_ladder")
        launchers = cuda_entry.launchers(load, library.takes)
        return {one.entry: CudaGpuEntry(library, one, words, self._clock) for one, words in launchers}


class CudaGpuEntry:
    """A launcher whose kernels run on the GPU."""

    def __init__(self, library: Library, load: Load, words: cuda_entry.Words, clock: EventClock) -> None:
        self.signature = cuda_entry.declaration(load)
        self._library = library
        self._words = words
        self._clock = clock

    def call(self, arguments: list[Any], *, record: bool) -> int:
        """Call it; device nanoseconds."""
        words = self._words.of(arguments)
        if record:
            self._library.forget()
        return self._clock.time_ns(lambda: self._library.call(words))

    def batch(self, calls: Iterator[list[Any]]) -> int:
        """Queue one after the other, wait for all; device nanoseconds."""
        return self._clock.total_ns(lambda: self._all(calls))

    def _all(self, calls: Iterator[list[Any]]) -> None:
        for arguments in calls:
            self._library.call(self._words.of(arguments))

    def seen(self) -> dict[str, Any]:
        """Kernels of the last recorded call, by the names that the compiler gave them."""
        return {"launches": [{**one, "kernel": plain_name(one["kernel"])} for one in self._library.launches()]}


def plain_name(mangled: str) -> str:
    """`add_packs` of `_Z9add_packsIfEvPKT_`: the innermost name of a mangled function, or all of it."""
    rest, name = mangled.removeprefix("_ZN").removeprefix("_Z"), ""
    while (found := re.match(r"(?:L|NK)?(\d+)", rest)) is not None:
        length = int(found[1])
        name, rest = rest[found.end() : found.end() + length], rest[found.end() + length :]
    return name or mangled
