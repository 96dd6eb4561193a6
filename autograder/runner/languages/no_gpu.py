"""What Python asks of a GPU on the CPU lane: answered where there is an answer without one, else refused by name.

Questions about the device are answered as on the first target that rungs are compiled for, an H200: a kernel that
chooses its blocks by them chooses the same. Tensors lie on the CPU, and `torch.cuda.is_available()` says so.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, NoReturn

import torch
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.runtime import driver, interpreter
from triton.runtime.jit import JITFunction

from autograder.compile_checks.targets import TARGETS

TARGET = TARGETS["sm_90a"]
_OTHERWISE = "It can on a GPU lane: put it behind `if x.is_cuda:`, and what runs here behind `else:`."
_IN_A_KERNEL = (
    "It can on a GPU lane: put it behind `if ON_GPU:`, a tl.constexpr that your host code sets to `x.is_cuda`, and "
    "what runs here behind `else:`."
)
_DEVICE = "Use `x.device`, the device of a tensor that you are given: it is right on every lane."
_EXTENSION = "Submit CUDA C++ as a .cu file with this assignment's launcher: it runs on every lane, including this one."
_NOTHING_TO_DO = (
    "empty_cache",
    "init",
    "ipc_collect",
    "manual_seed",
    "manual_seed_all",
    "reset_peak_memory_stats",
    "set_device",
    "synchronize",
)
_CLASSES = ("CUDAGraph", "Event", "ExternalStream", "Stream", "graph")
_FUNCTIONS = ("current_stream", "default_stream", "set_stream")
_HINTS = ("gdc_launch_dependents", "gdc_wait")
"""Of `tl.extra.cuda`: they order kernels that overlap, and here none do."""


class GpuOnly(RuntimeError):  # noqa: N818 -- the kind of error that students are shown, as for CUDA C++.
    """Something that only a GPU has."""

    def __init__(self, what: str, instead: str) -> None:
        super().__init__(f"{what} cannot run on the CPU lane. {instead}")


def in_a_kernel(what: str) -> NoReturn:
    """Refuse something that a kernel asks for."""
    raise GpuOnly(what, _IN_A_KERNEL)


def install() -> None:
    """Answer and refuse in this process, from now on."""
    driver.set_active(Driver())
    _answer_for_torch()
    _refuse_extensions()
    _refuse_assembly()
    _refuse_what_compilers_know()


# --- the driver ------------------------------------------------------------------------------------------------------


class Driver:
    """Triton's driver, of a lane that compiles and loads nothing."""

    class utils:  # noqa: N801 -- as triton calls it.
        """What triton knows of a device."""

        @staticmethod
        def get_device_properties(device: object = None) -> dict[str, int]:
            """The target's, by triton's names."""
            del device
            return TARGET.as_triton_says()

    def get_current_target(self) -> GPUTarget:
        """What rungs are compiled for."""
        return GPUTarget("cuda", TARGET.arch, TARGET.warp)

    def get_current_device(self) -> int:
        """The only one."""
        return 0

    def set_current_device(self, device: int) -> None:
        """There is no other."""

    def get_current_stream(self, device: object = None) -> int:
        """The default stream."""
        del device
        return 0

    def get_device_capability(self, device: object = None) -> tuple[int, int]:
        """The target's."""
        del device
        return TARGET.capability

    def get_active_torch_device(self) -> torch.device:
        """Where tensors lie."""
        return torch.device("cpu")

    def get_benchmarker(self) -> Any:
        """What compares candidates by a device's clock."""
        return triton.testing.do_bench

    def get_device_interface(self) -> Any:
        """What triton's helpers wait on."""
        return torch.cuda


# --- torch -----------------------------------------------------------------------------------------------------------


@contextmanager
def named() -> Iterator[None]:
    """While it is entered, what torch says for want of a GPU, in several ways, becomes what it is."""
    try:
        yield
    except (AssertionError, AttributeError, RuntimeError, TypeError) as error:
        if isinstance(error, GpuOnly) or not any(words in str(error) for words in _TORCH_SAYS):
            raise
        raise GpuOnly('`device="cuda"`', _DEVICE).with_traceback(error.__traceback__) from None


_TORCH_SAYS = (
    "Torch not compiled with CUDA enabled",
    "Cannot access accelerator device when none is available",
    "without ATen_cuda library",
    "NVTX functions not installed",
    "module 'torch._C' has no attribute '_cuda",
)


class Nowhere:
    """Takes the place of `torch.cuda.device`, which switches to a device."""

    def __init__(self, *_: object) -> None:
        """Whatever device it is."""

    def __enter__(self) -> None:
        """There is no other."""

    def __exit__(self, *_: object) -> None:
        """Nothing was switched."""


def _answer_for_torch() -> None:
    cuda: Any = torch.cuda
    said = TARGET.as_torch_says()
    answers = {
        "current_device": 0,
        "get_arch_list": [f"sm_{TARGET.arch}"],
        "get_device_capability": TARGET.capability,
        "get_device_name": TARGET.device,
        "get_device_properties": said,
        "mem_get_info": (TARGET.memory_bytes, TARGET.memory_bytes),
    } | dict.fromkeys(_NOTHING_TO_DO)
    for name, answer in answers.items():
        setattr(cuda, name, lambda *_, _answer=answer, **__: _answer)
    cuda.device = cuda.device_of = type("device", (Nowhere, cuda.device), {})
    for name in _CLASSES:
        setattr(
            cuda, name, type(name, (getattr(cuda, name),), {"__new__": _refusal(f"`torch.cuda.{name}`", _OTHERWISE)})
        )
    for name in _FUNCTIONS:
        setattr(cuda, name, _refusal(f"`torch.cuda.{name}`", _OTHERWISE))
    # What torch calls before it first touches the device.
    vars(cuda)["_lazy_init"] = _refusal('`device="cuda"`', _DEVICE)


def _refusal(what: str, instead: str) -> Any:
    def refuse(*_: object, **__: object) -> NoReturn:
        raise GpuOnly(what, instead)

    return refuse


def _refuse_extensions() -> None:
    """Importing the module is no fault; building something with it is. The real one is imported when it is needed."""
    name = "torch.utils.cpp_extension"
    refused = {one: _refusal(f"`{name}.{one}`", _EXTENSION) for one in ("load", "load_inline")}
    module = ModuleType(name)

    def attribute(wanted: str) -> Any:
        if wanted.startswith("__"):
            raise AttributeError(wanted)
        if sys.modules.get(name) is module:
            del sys.modules[name]
            vars(torch.utils)["cpp_extension"] = importlib.import_module(name)
            vars(sys.modules[name]).update(refused)
        return getattr(sys.modules[name], wanted)

    vars(module).update(refused, __getattr__=attribute)
    sys.modules[name] = module
    vars(torch.utils)["cpp_extension"] = module


# --- kernels ---------------------------------------------------------------------------------------------------------


def _refuse_assembly() -> None:
    def inline_asm(*_: object) -> NoReturn:
        in_a_kernel("Inline assembly (`tl.inline_asm_elementwise`)")

    builder: Any = interpreter.InterpreterBuilder
    builder.create_inline_asm = inline_asm
    cuda: Any = tl.extra.cuda
    for name in cuda.__all__:
        if name in _HINTS:
            setattr(cuda, name, lambda **_: None)
        elif name != "libdevice":
            setattr(cuda, name, _refusal(f"`tl.extra.cuda.{name}`", _IN_A_KERNEL))


class Compiled:
    """What a launch or `kernel.warmup(…)` gives on a GPU; it can be launched, and nothing has been compiled."""

    def __init__(self, function: Any) -> None:
        self._function = function

    def __getitem__(self, grid: Any) -> Any:
        """Launch it as a kernel is launched."""
        return self._function[grid]

    def __getattr__(self, name: str) -> Any:
        """Registers, shared memory, machine code."""
        if name.startswith("__"):
            raise AttributeError(name)
        raise GpuOnly(f"What a GPU compiler reports about a kernel (`{name}`; `warmup`, `n_regs`, `asm`)", _OTHERWISE)


def _refuse_what_compilers_know() -> None:
    jit: Any = JITFunction
    jit.run = _refusal("A kernel that Triton does not interpret, such as one in Gluon,", _OTHERWISE)
    triton.compile = _refusal("`triton.compile`", _OTHERWISE)
    for name in ("do_bench", "do_bench_cudagraph"):
        setattr(triton.testing, name, _refusal(f"`triton.testing.{name}`", _OTHERWISE))
    function: Any = interpreter.InterpretedFunction
    function.cache = property(lambda self: Compiled(self).cache)
    function.device_caches = property(lambda self: Compiled(self).device_caches)
    original = function.run

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Compiled:
        original(self, *args, grid=grid, warmup=warmup, **kwargs)
        return Compiled(self)

    function.run = run
