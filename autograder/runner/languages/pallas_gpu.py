"""Pallas, compiled by XLA for the GPU of the lane: kernels by way of Triton, or of Mosaic GPU."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from autograder.gpu.driver import VirtualMemory, load_driver
from autograder.protocol import Load, TensorSpec
from autograder.runner import source
from autograder.runner.gpu import GpuMemory, GpuSlab
from autograder.runner.languages import Entry, pallas_program
from autograder.runner.languages.pallas import Bridge
from autograder.runner.languages.triton_gpu import EventClock

ALIGNED_BYTES = 256
"""What XLA takes for granted of its buffers."""
_ENVIRONMENT = {
    "JAX_PLATFORMS": "cuda",
    # Otherwise three quarters of the device's memory are taken at once.
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    "PJRT_NPROC": "2",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "XLA_FLAGS": "--xla_gpu_force_compilation_parallelism=2",
}


class PallasGpuLoader(GpuMemory):
    """Imports torch and jax in the zygote; both take the GPU's one context in the runner."""

    wrappers: tuple[type[BaseException], ...] = ()

    def __init__(self) -> None:
        self._versions: dict[str, str] = {}
        self._hooks = pallas_program.Hooks(interpreted=False)
        self._bridge: GpuBridge
        self._clock: EventClock
        self._touch: Callable[[], object]

    def warm(self) -> None:
        """Import everything; nothing here may touch the GPU."""
        os.environ.update(_ENVIRONMENT)
        import jax  # noqa: PLC0415

        torch.set_num_threads(1)
        load_driver()
        self._hooks.install()
        self._versions = {"torch": torch.__version__, "jax": jax.__version__, "cuda": str(torch.version.cuda)}

    def begin(self) -> None:
        """Take a context, start XLA, and make everything that a call needs."""
        jax: Any = import_module("jax")
        torch.cuda.init()  # type: ignore[no-untyped-call]
        self._clock = EventClock()
        super().begin()
        jax.config.update("jax_compilation_cache_dir", str(self.made()))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
        jax.config.update("jax_persistent_cache_enable_xla_caches", "none")
        with pallas_program.few_threads():
            self._bridge = GpuBridge()
            self._touch = self._bridge.touch()
        self._versions["gpu"] = torch.cuda.get_device_name(0)

    def slab(self, specs: Sequence[TensorSpec]) -> PallasSlab:
        """An allocation for each."""
        return PallasSlab(specs, self._driver, self._bridge)

    def awake(self) -> None:
        """Map and have the device work for this context, by way of a program of XLA's."""
        self.rehearse(lambda: self._clock.total_ns(self._touch))

    def versions(self) -> dict[str, str]:
        """Versions of torch, jax and CUDA, and the GPU's name."""
        return self._versions

    def made(self) -> Path:
        """JAX's cache: programs by what they were made of."""
        return Path(os.environ["TMPDIR"]) / "programs"

    def load(self, load: Load) -> dict[str, Entry]:
        """Execute the source and find its functions."""
        self._hooks.ghosts = load.ghost
        module = source.execute(load)
        found = [(one, *source.find_entry(module, one)) for one in load.each()]
        return {
            one.entry: PallasGpuEntry(entry, signature, one, self._bridge, self._clock)
            for one, entry, signature in found
        }


class PallasSlab(GpuSlab):
    """The same, with the arrays of its tensors made before the judge's clock starts."""

    def __init__(self, specs: Sequence[TensorSpec], driver: VirtualMemory, bridge: GpuBridge) -> None:
        super().__init__(specs, driver)
        for tensor in self.tensors.values():
            bridge.prepare(tensor)


class GpuBridge(Bridge):
    """The same on a GPU, where XLA's streams wait for torch's, and torch's for XLA's."""

    def __init__(self) -> None:
        super().__init__()
        self._stream = self._device.get_stream_for_external_ready_events()

    def prepare(self, tensor: torch.Tensor) -> None:
        """Make the array that `array` gives, once, if it is of the tensor's own memory."""
        if _fits(tensor):
            vars(tensor)["kernel_ladder_array"] = self._imported(tensor)

    def array(self, tensor: torch.Tensor) -> Any:
        """The array of a tensor: the same memory where rows are not padded and it is aligned, else a copy."""
        prepared = vars(tensor).pop("kernel_ladder_array", None)
        if prepared is not None:
            return prepared
        return self._imported(tensor if _fits(tensor) else tensor.clone(memory_format=torch.contiguous_format))

    def in_place(self, results: Sequence[Any], outputs: Sequence[torch.Tensor]) -> bool:
        """Whether results are where they belong; waits for them."""
        return all(
            result.unsafe_buffer_pointer() == output.data_ptr() for result, output in zip(results, outputs, strict=True)
        )

    def touch(self) -> Callable[[], object]:
        """A program that does next to nothing, compiled and called once."""
        import jax  # noqa: PLC0415

        speck = torch.zeros(64, device="cuda")
        add = jax.jit(lambda x: x + 1)

        def run() -> object:
            return self._to_torch(add(self.array(speck)))

        run()
        return run


def _fits(tensor: torch.Tensor) -> bool:
    """Whether XLA takes its memory as it is."""
    return tensor.is_contiguous() and tensor.data_ptr() % ALIGNED_BYTES == 0


class PallasGpuEntry:
    """An entry that is traced, compiled and called; its outputs' memory is handed to the program."""

    def __init__(
        self, entry: Callable[..., Any], signature: str, load: Load, bridge: GpuBridge, clock: EventClock
    ) -> None:
        self.signature = signature
        self._programs = pallas_program.Programs(entry, load, donate=True)
        self._bridge = bridge
        self._clock = clock
        self._last: pallas_program.Program | None = None

    def call(self, arguments: list[Any], *, record: bool) -> int:
        """Call it; device nanoseconds."""
        took = self._clock.time_ns(lambda: self._called(arguments))
        if not record:
            self._last = None
        return took

    def batch(self, calls: Iterator[list[Any]]) -> int:
        """Queue one after the other, wait for all; device nanoseconds."""
        return self._clock.total_ns(lambda: self._all(calls))

    def _all(self, calls: Iterator[list[Any]]) -> None:
        made = [kept for arguments in calls if (kept := self._queued(arguments)) is not None]
        # XLA's work is done in order: torch's stream waits for the last of it.
        for results, outputs in made:
            if results is made[-1][0] or not self._bridge.in_place(results, outputs):
                self._bridge.keep(results, outputs)

    def _called(self, arguments: list[Any]) -> None:
        if (kept := self._queued(arguments)) is not None:
            self._bridge.keep(*kept)

    def _queued(self, arguments: list[Any]) -> tuple[tuple[Any, ...], list[torch.Tensor]] | None:
        """Results and where they belong, if they are expected to be there already; others are copied there."""
        programs, bridge = self._programs, self._bridge
        arrays = programs.dynamic(arguments, bridge.array)
        self._last = program = programs.of(arguments, arrays)
        outputs = [arguments[place] for place in programs.outputs]
        with programs.naming():
            results = program.call(*arrays)
        if program.in_place is None:
            program.in_place = bridge.in_place(results, outputs)
        if program.in_place:
            return results, outputs
        bridge.keep(results, outputs)
        return None

    def seen(self) -> dict[str, Any]:
        """Kernels and operations of the program that the last recorded call ran."""
        last = self._last
        return {"launches": last.launches, "operations": last.operations} if last else {}
