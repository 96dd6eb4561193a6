"""TIRx, lowered by TVM and compiled by nvcc for the GPU of the lane."""

from __future__ import annotations

import os
from pathlib import Path

import torch

from autograder.gpu.driver import load_driver
from autograder.protocol import Load
from autograder.runner import source
from autograder.runner.gpu import GpuMemory
from autograder.runner.languages import Entry, nvcc
from autograder.runner.languages.tirx_program import Compiler, Cubins, Toolchain
from autograder.runner.languages.traced import TracedEntry
from autograder.runner.languages.triton_gpu import EventClock


class TirxGpuLoader(GpuMemory):
    """Imports torch and TVM in the zygote; both take the GPU's one context in the runner."""

    wrappers: tuple[type[BaseException], ...] = ()

    def __init__(self) -> None:
        self._versions: dict[str, str] = {}
        self._toolchain = Toolchain()
        self._nvcc = ""
        self._architecture = ""
        self._clock: EventClock

    def warm(self) -> None:
        """Import torch, which brings the CUDA runtime that TVM needs, then TVM; nothing here may touch the GPU."""
        torch.set_num_threads(1)
        load_driver()
        self._nvcc = nvcc.find_nvcc()
        self._toolchain.install()
        self._versions = {
            "torch": torch.__version__, "tvm": self._toolchain.version, "cuda": str(torch.version.cuda),
            "nvcc": nvcc.version(self._nvcc),
        }  # fmt: skip

    def begin(self) -> None:
        """Take a context, and make everything that a call needs."""
        torch.cuda.init()  # type: ignore[no-untyped-call]
        self._clock = EventClock()
        super().begin()
        self._architecture = nvcc.architecture(self._nvcc, torch.cuda.get_device_capability(0))
        self._versions |= {"gpu": torch.cuda.get_device_name(0), "architecture": self._architecture}

    def awake(self) -> None:
        """Map and have the device work for this context, as at the beginning of a batch."""
        self.rehearse(lambda: self._clock.total_ns(self._clock.touch))

    def versions(self) -> dict[str, str]:
        """Versions of torch, TVM, CUDA and nvcc, the GPU's name, and what is compiled for."""
        return self._versions

    def made(self) -> Path:
        """Machine code, by the generated text that it was made of."""
        return Path(os.environ["TMPDIR"]) / "cubins"

    def load(self, load: Load) -> dict[str, Entry]:
        """Execute the source and find its functions."""
        cubins = Cubins(self._nvcc, self._architecture, self.made())
        module = source.execute(load)
        found = [(one, *source.find_entry(module, one)) for one in load.each()]
        return {
            one.entry: TracedEntry(signature, Compiler(entry, one, self._toolchain, cubins, runs=True), self._clock)
            for one, entry, signature in found
        }
