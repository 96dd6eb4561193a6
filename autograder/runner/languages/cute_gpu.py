"""CuTe DSL, compiled for the GPU of the lane."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from autograder.gpu.driver import load_driver
from autograder.protocol import Load
from autograder.runner import source
from autograder.runner.gpu import GpuMemory
from autograder.runner.languages import Entry, cute_program
from autograder.runner.languages.cute_program import VECTOR_BYTES, Compiler, Layout, Program
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
            one.entry: CuteGpuEntry(signature, Compiler(entry, one, self._hooks), self._clock)
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


class Programs:
    """One submission's entry, by the layouts that it was compiled for.

    Attributes:
        last: what was called last.
    """

    def __init__(self, compiler: Compiler) -> None:
        self.last: Program | None = None
        self._compiler = compiler
        self._known: dict[tuple[Any, ...], Program] = {}

    def call(self, arguments: list[Any]) -> None:
        """Queue it on the default stream, which is torch's current one.

        Raises:
            SubmissionError: it cannot be compiled, or the device does not take it.
        """
        compiler = self._compiler
        fixed = tuple(int(arguments[place]) for place in compiler.fixed)
        given = [(place, arguments[place]) for place in compiler.given]
        layouts = [_layout(value) if hasattr(value, "data_ptr") else value for _, value in given]
        key = (fixed, *(one for one in layouts if isinstance(one, Layout)))
        program = self._known.get(key)
        if program is None:
            program = self._known[key] = self._compiled(layouts, fixed)
        self.last = program
        called_with = (
            compiler.tensor(value, layout) if isinstance(layout, Layout) else compiler.number(place, value)
            for (place, value), layout in zip(given, layouts, strict=True)
        )
        compiler.launch(program, called_with)

    def _compiled(self, layouts: list[Any], fixed: tuple[int, ...]) -> Program:
        try:
            return self._compiler.program(layouts, fixed)
        except cute_program.CompileError as error:
            raise error.told from None


def _layout(tensor: torch.Tensor) -> Layout:
    aligned = VECTOR_BYTES if tensor.data_ptr() % VECTOR_BYTES == 0 else tensor.element_size()
    return Layout(str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape), tensor.stride(), aligned)


class CuteGpuEntry:
    """An entry that is traced, compiled and called."""

    def __init__(self, signature: str, compiler: Compiler, clock: EventClock) -> None:
        self.signature = signature
        self._programs = Programs(compiler)
        self._clock = clock

    def call(self, arguments: list[Any], *, record: bool) -> int:
        """Call it; device nanoseconds."""
        took = self._clock.time_ns(lambda: self._programs.call(arguments))
        if not record:
            self._programs.last = None
        return took

    def batch(self, calls: Iterator[list[Any]]) -> int:
        """Queue one after the other, wait for all; device nanoseconds."""
        return self._clock.total_ns(lambda: self._all(calls))

    def _all(self, calls: Iterator[list[Any]]) -> None:
        for arguments in calls:
            self._programs.call(arguments)

    def seen(self) -> dict[str, Any]:
        """Kernels of the program that the last recorded call ran, by the names that the device shows them by."""
        last = self._programs.last
        launches = [{"kernel": one.kernel, "grid": list(one.grid), "calls": 1} for one in last.launches] if last else []
        return {"launches": launches, "operations": {}}
