"""Pallas through its interpreter, on the CPU."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from autograder.protocol import Load
from autograder.runner import source
from autograder.runner.languages import Entry, pallas_program
from autograder.runner.memory import HostMemory
from autograder.runner.report import SubmissionError

_clock = time.perf_counter_ns
"""Taken before a submission can replace it."""


class PallasLoader(HostMemory):
    """Imports torch and jax in the zygote; XLA starts its threads in the runner, as no thread survives a fork."""

    wrappers: tuple[type[BaseException], ...] = ()

    def __init__(self) -> None:
        self._versions: dict[str, str] = {}
        self._hooks = pallas_program.Hooks(interpreted=True)
        self._bridge: Bridge

    def warm(self) -> None:
        """Import the toolchain and put our hooks in."""
        import jax  # noqa: PLC0415
        import numpy as np  # noqa: PLC0415
        import torch  # noqa: PLC0415

        torch.set_num_threads(1)
        self._hooks.install()
        self._versions = {"torch": torch.__version__, "jax": jax.__version__, "numpy": np.__version__}

    def begin(self) -> None:
        """Start XLA, and have it compile something: what it sets up at first takes a second."""
        import jax.numpy as jnp  # noqa: PLC0415

        with pallas_program.few_threads(), pallas_program.silent():
            self._bridge = Bridge()
            (jnp.zeros(8) + 1).block_until_ready()

    def versions(self) -> dict[str, str]:
        """Versions of torch, jax and numpy."""
        return self._versions

    def made(self) -> None:
        """Nothing that takes long."""

    def load(self, load: Load) -> dict[str, Entry]:
        """Execute the source and find its functions."""
        self._hooks.ghosts = load.ghost
        module = source.execute(load)
        found = [(one, *source.find_entry(module, one)) for one in load.each()]
        return {one.entry: PallasEntry(entry, signature, one, self._bridge) for one, entry, signature in found}


class Bridge:
    """Between torch's tensors and jax's arrays, by functions of before a submission was loaded.

    `jax.dlpack.from_dlpack` takes 160 µs a tensor, most of it to ask what is known here beforehand; what it calls in
    the end takes 25 (jax 0.10.2, the tests' machine).
    """

    def __init__(self) -> None:
        jax: Any = import_module("jax")
        torch: Any = import_module("torch")

        self._slowly = jax.dlpack.from_dlpack
        inner: Any = vars(import_module("jax._src.lib"))["_jax"]
        self._import = inner.dlpack_managed_tensor_to_buffer
        self._wide = (torch.int64, torch.uint64, torch.float64)
        self._device = jax.devices()[0]
        self._to_torch = torch.from_dlpack
        self._ready = jax.block_until_ready
        self._stream: int | None = None

    def array(self, tensor: Any) -> Any:
        """The array of a tensor: the same memory where rows are not padded and it is aligned, else a copy."""
        return self._imported(tensor.contiguous())

    def _imported(self, tensor: Any) -> Any:
        if tensor.dtype in self._wide:
            # Of half the width in jax, unless it is told otherwise.
            return self._slowly(tensor)
        kind, _ = tensor.__dlpack_device__()
        capsule = tensor.__dlpack__(stream=self._stream)
        return self._import(capsule, self._device, self._stream, None, int(kind))

    def keep(self, results: tuple[Any, ...], outputs: list[Any]) -> None:
        """Have results in the judge's memory, when they are there: copied unless they are there already."""
        for result, output in zip(results, outputs, strict=True):
            made = self._to_torch(result)
            if made.data_ptr() != output.data_ptr():
                output.copy_(made)

    def wait(self, results: tuple[Any, ...]) -> None:
        """Until they are there."""
        self._ready(results)


class PallasEntry:
    """An entry that is traced, compiled and called."""

    def __init__(self, entry: Callable[..., Any], signature: str, load: Load, bridge: Bridge) -> None:
        self.signature = signature
        self._programs = pallas_program.Programs(entry, load, donate=False)
        self._bridge = bridge
        self._last: pallas_program.Program | None = None

    def call(self, arguments: list[Any], *, record: bool) -> int:
        """Call it; the event clock is the host's."""
        start = _clock()
        program = self._called(arguments)
        took = _clock() - start
        if record:
            self._last = program
            if program.mosaic and pallas_program.races_found():
                raise SubmissionError("call", "DataRace", "Two threads access the same memory, one of them writing.")
        return took

    def batch(self, calls: Iterator[list[Any]]) -> int:
        """One after the other; the host's nanoseconds of all."""
        start = _clock()
        for arguments in calls:
            self._called(arguments)
        return _clock() - start

    def _called(self, arguments: list[Any]) -> pallas_program.Program:
        programs, bridge = self._programs, self._bridge
        arrays = programs.dynamic(arguments, bridge.array)
        program = programs.of(arguments, arrays)
        with programs.naming():
            results = program.call(*arrays)
            bridge.wait(results)
        bridge.keep(results, [arguments[place] for place in programs.outputs])
        return program

    def seen(self) -> dict[str, Any]:
        """Kernels and operations of the program that the last recorded call ran."""
        last = self._last
        return {"launches": last.launches, "operations": last.operations} if last else {}
