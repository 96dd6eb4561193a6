"""Stands in for a device that is not there.

Triton asks its *driver* for the target, for properties, and to load and launch: this one answers for the target, loads
nothing and launches nothing, so that triton's own code specialises and compiles as it would on the device. Host code
asks `torch.cuda`: the few functions that it asks answer for the target too, and the rest does nothing.

Written against triton 3.6 and 3.9 and torch 2.11 and 2.13.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import torch
import triton
from torch._subclasses import fake_tensor
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.autotuner import Autotuner

from autograder.compile_checks import machine_code
from autograder.compile_checks.messages import Reading
from autograder.compile_checks.targets import AMD, NVIDIA, Target

_PAGE = 2 * 2**20
_FIRST_PAGE = 0x7F00_0000_0000 // _PAGE
_REGISTRY = "_ZN3c104impl26device_guard_impl_registryE"
"""torch's table of *device guards*, which switch to a tensor's device before work on it, by type of device."""
_CUDA, _META = 1, 14
"""Places in it."""
_BACKENDS = {NVIDIA: "cuda", AMD: "hip"}
"""What triton calls the compiler for each vendor's devices."""
_HIP_VERSION = "7.0"
_CUDA_VERSION = "13.0"
"""What a build of torch without CUDA says that it was built with."""
_INERT = (
    "CUDAGraph", "Event", "ExternalStream", "Stream", "current_stream", "default_stream", "device", "graph", "stream",
)  # fmt: skip
_NOTHING = (
    "empty_cache", "init", "ipc_collect", "manual_seed", "manual_seed_all", "reset_peak_memory_stats", "set_device",
    "set_stream", "synchronize",
)  # fmt: skip


def stand_in(target: Target, launcher: type[Launcher] | None = None) -> None:
    """Make triton and torch see `target` in this process, from now on; launches go to a launcher that does nothing."""
    driver.set_active(AbsentDevice(target, launcher))
    # Timing candidates is for a device; here each is launched once, and the first is taken.
    triton.testing.do_bench = triton.testing.do_bench_cudagraph = bench
    _keep_no_choices()
    _stand_in_for_torch(target)


def _keep_no_choices() -> None:
    """What an autotuner chose here is not for its cache: it says nothing of a device, which may not even take it."""
    tune = Autotuner.run

    @functools.wraps(tune)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        self.cache_results = False
        return tune(self, *args, **kwargs)

    Autotuner.run = run


class AbsentDevice:
    """A driver of triton's for a device that is not there."""

    def __init__(self, target: Target, launcher: type[Launcher] | None = None) -> None:
        self._target = target
        self.utils = _Utils(target)
        self.launcher_cls = launcher or Launcher

    def get_current_target(self) -> GPUTarget:
        """What to compile for."""
        return GPUTarget(_BACKENDS[self._target.vendor], self._target.arch, self._target.warp)

    def get_current_device(self) -> int:
        """The only one."""
        return 0

    def set_current_device(self, device: int) -> None:
        """There is no other."""

    def get_current_stream(self, device: int) -> int:
        """The default stream."""
        del device
        return 0

    def get_device_capability(self, device: int = 0) -> tuple[int, int]:
        """The target's."""
        del device
        return self._target.capability

    def get_active_torch_device(self) -> torch.device:
        """As host code that asks triton for it gets it."""
        return torch.device("cuda", 0)

    def get_device_interface(self) -> Any:
        """What triton's helpers wait on."""
        return torch.cuda

    def get_benchmarker(self) -> Callable[..., Any]:
        """By which an autotuner compares its candidates."""
        return bench


def bench(run: Callable[[], object], *_: object, quantiles: Any = None, **__: object) -> Any:
    """Launch it once; one millisecond, whatever it is."""
    run()
    return [1.0] * len(quantiles) if quantiles else 1.0


class Launcher:
    """Launches nothing."""

    def __init__(self, src: Any, metadata: Any) -> None:
        del src, metadata

    def __call__(self, *_: object, **__: object) -> None:
        """Do nothing."""


class _Utils:
    """What triton asks a driver to do with machine code."""

    def __init__(self, target: Target) -> None:
        self._target = target

    def get_device_properties(self, device: int) -> dict[str, int]:
        """The target's, by triton's names."""
        del device
        return self._target.as_triton_says()

    def load_binary(self, name: str, kernel: bytes, shared: int, device: int) -> tuple[int, int, int, int, int]:
        """No module and no function; registers, spills in words, and threads of a block as the device would say."""
        del name, shared, device
        # The object for AMD's devices is not read: it has no tool here, and nothing is launched that asks for more.
        used = machine_code.resources(kernel) if self._target.vendor == NVIDIA else Reading(readable=False)
        registers = max(used.registers, 1)
        threads = self._target.registers // registers // self._target.warp * self._target.warp
        return 0, 0, registers, used.stack_bytes // 4, min(threads, self._target.threads)

    def unload_module(self, module: int) -> None:
        """Nothing was loaded."""


class Inert:
    """A stream, an event or a graph of a device that is not there: whatever is done with it does nothing."""

    cuda_stream = 0

    def __init__(self, *_: object, **__: object) -> None:
        """Take whatever a stream, an event or a graph is made with."""

    def __call__(self, *_: object, **__: object) -> Self:
        """Whatever it gives is as inert."""
        return self

    def elapsed_time(self, other: object) -> float:
        """As an event; one millisecond, whatever it is."""
        del other
        return 1.0

    def __getattr__(self, name: str) -> Self:
        """Every method is itself."""
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __enter__(self) -> Self:
        """A context."""
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing was entered."""


def _stand_in_for_torch(target: Target) -> None:
    _no_device_behind_tensors()
    said = _said_by_torch(target)
    replaced = {name: (lambda *_, _said=value, **__: _said) for name, value in said.items()}
    inert: dict[str, Any] = dict.fromkeys(_INERT, Inert)
    nothing = {name: (lambda *_, **__: None) for name in _NOTHING}
    for name, value in (replaced | inert | nothing).items():
        setattr(torch.cuda, name, value)
    is_amd = target.vendor == AMD
    torch.version.hip = _HIP_VERSION if is_amd else None
    torch.version.cuda = None if is_amd else torch.version.cuda or _CUDA_VERSION
    torch.backends.cuda.is_built = lambda: True
    torch.accelerator.is_available = lambda: True
    torch.accelerator.current_accelerator = lambda *_, **__: torch.device("cuda")


def _said_by_torch(target: Target) -> dict[str, Any]:
    """What `torch.cuda`'s functions say, by name."""
    return {
        "is_available": True,
        "is_initialized": True,
        "is_current_stream_capturing": False,
        "device_count": 1,
        "current_device": 0,
        "get_arch_list": [f"sm_{target.arch}" if target.vendor == NVIDIA else target.name],
        "get_device_capability": target.capability,
        "get_device_name": target.device,
        "get_device_properties": target.as_torch_says(),
        "mem_get_info": (target.memory_bytes, target.memory_bytes),
    }


def _no_device_behind_tensors() -> None:
    """Tensors on `cuda` need no device, and have addresses: pages of 2 MiB, as the allocators give."""
    pages: dict[int, int] = {}

    def data_ptr(self: torch.Tensor) -> int:
        storage = self.untyped_storage()._cdata  # noqa: SLF001 -- what tells two storages without memory apart.
        page = pages.setdefault(storage, _FIRST_PAGE + len(pages) * 4096)
        return int(page * _PAGE + self.storage_offset() * self.element_size())

    _guard_nothing()
    fake: Any = fake_tensor
    fake.init_gpu_context = lambda *_: None
    fake.FakeTensor.data_ptr = data_ptr


def _guard_nothing() -> None:
    """Let torch's own code switch to a device that is not there.

    A build with CUDA can do that by itself. One without has no guard for `cuda`, and then refuses to index or to copy
    even tensors without memory: it gets the guard of the `meta` device, which does nothing.
    """
    if torch.version.cuda is not None:
        torch._C._ensureCUDADeviceGuardSet()  # noqa: SLF001 -- what FakeTensorMode calls where no device is found.
        return
    library = ctypes.CDLL(str(Path(torch.__file__).with_name("lib") / "libc10.so"))
    guards = (ctypes.c_void_p * (_META + 1)).in_dll(library, _REGISTRY)
    guards[_CUDA] = guards[_CUDA] or guards[_META]
