"""CuTe DSL, compiled for the GPU of the lane."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from autograder.gpu.driver import load_driver
from autograder.protocol import Load
from autograder.runner import source
from autograder.runner.gpu import GpuMemory
from autograder.runner.languages import Entry, cute_program
from autograder.runner.languages.cute_program import Compiler
from autograder.runner.languages.traced import Programs, TracedEntry
from autograder.runner.languages.triton_gpu import EventClock


class CuteGpuLoader(GpuMemory):
    """Imports torch and the DSL in the zygote; both take the GPU's one context in the runner.

    The compiler is a part of the runner's process, and leaves no file.
    """

    wrappers: tuple[type[BaseException], ...] = ()

    def __init__(self) -> None:
        self._versions: dict[str, str] = {}
        self._hooks = cute_program.Hooks()
        self._clock: EventClock
        self._touch: Callable[[], object]

    def warm(self) -> None:
        """Import everything; nothing here may touch the GPU."""
        torch.set_num_threads(1)
        load_driver()
        self._hooks.install()
        version = self._hooks.dsl.version
        self._versions = {"torch": torch.__version__, "cute dsl": version, "cuda": str(torch.version.cuda)}

    def begin(self) -> None:
        """Take a context, and make everything that a call needs."""
        torch.cuda.init()  # type: ignore[no-untyped-call]
        self._clock = EventClock()
        super().begin()
        self._touch = _touch(self._hooks)
        self._versions["gpu"] = torch.cuda.get_device_name(0)

    def awake(self) -> None:
        """Map and have the device work for this context, by way of a program of ours."""
        self.rehearse(lambda: self._clock.total_ns(self._touch))

    def versions(self) -> dict[str, str]:
        """Versions of torch, the DSL and CUDA, and the GPU's name."""
        return self._versions

    def made(self) -> None:
        """Nothing that takes long."""

    def load(self, load: Load) -> dict[str, Entry]:
        """Execute the source and find its functions."""
        self._hooks.ghosts = load.ghost
        module = source.execute(load)
        found = [(one, *source.find_entry(module, one)) for one in load.each()]
        return {
            one.entry: TracedEntry(signature, Compiler(entry, one, self._hooks), self._clock)
            for one, entry, signature in found
        }


def _touch(hooks: cute_program.Hooks) -> Callable[[], object]:
    """A program that does next to nothing, compiled and called once."""

    def touch(speck: Any) -> None:
        speck[0] = speck[0]

    kernel = hooks.dsl.kernel(preprocess=False)(touch)

    def entry(speck: Any) -> None:
        kernel(speck).launch(grid=[1, 1, 1], block=[1, 1, 1])

    load = Load("", "", "", "touch", ("speck",), signatures=(("output int32",),))  # type: ignore[arg-type]
    programs = Programs(Compiler(entry, load, hooks))
    speck = torch.zeros(1, dtype=torch.int32, device="cuda")
    programs.call([speck])
    return lambda: programs.call([speck])
