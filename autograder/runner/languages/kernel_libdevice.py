"""The functions of NVIDIA's *libdevice* for triton's interpreter: https://docs.nvidia.com/cuda/libdevice-users-guide/.

Triton's own tables give each function's types and symbol; `libdevice`, beside this, has what computes each symbol.
Names that `triton.language.extra.libdevice` only declares lead to those of `triton.language.extra.cuda.libdevice`, as
they do when triton compiles.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import triton.language as tl
from triton.language.extra import libdevice as declared
from triton.runtime import interpreter

from autograder.runner.languages import libdevice
from autograder.runner.languages.no_gpu import in_a_kernel

_interpreter: Any = interpreter


def install() -> None:
    """Let kernels call libdevice in this process, also from modules that are loaded a second time by their specs."""
    _interpreter.InterpreterBuilder.create_extern_elementwise = _elementwise
    computed: Any = tl.extra.cuda.libdevice
    for module, fill in ((computed, _compute), (declared, _lead)):
        fill(module)
        spec: Any = module.__spec__
        spec.loader = _Filled(spec.loader, fill)


def _compute(module: ModuleType) -> None:
    # The scope could take it back, which nobody does.
    scope = _interpreter._LangPatchScope()  # noqa: SLF001
    _interpreter._patch_builtin(module, _interpreter.interpreter_builder, scope)  # noqa: SLF001


def _lead(module: ModuleType) -> None:
    computed: Any = tl.extra.cuda.libdevice
    for name, _ in inspect.getmembers(module, inspect.isfunction):
        setattr(module, name, getattr(computed, name, None) or _unknown(name))


class _Filled:
    """A loader whose modules are filled as soon as they are executed."""

    def __init__(self, loader: Any, fill: Callable[[ModuleType], None]) -> None:
        self._loader = loader
        self._fill = fill

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        self._fill(module)


def _unknown(name: str) -> Callable[..., Any]:
    def unknown(*_: object, **__: object) -> None:
        raise AttributeError(f"libdevice has no `{name}` for NVIDIA's GPUs")

    return unknown


def _elementwise(_self: Any, _library: str, _path: str, symbol: str, *call: Any) -> Any:
    args, kind, _ = call
    function = libdevice.function(symbol)
    if function is None:
        in_a_kernel(f"`{symbol}`, a function of a library for GPUs,")
    wanted = _interpreter._get_np_dtype(kind.scalar)  # noqa: SLF001
    with np.errstate(all="ignore"):
        values = np.asarray(function(*(arg.data for arg in args))).astype(wanted)
    return interpreter.TensorHandle(values, kind.scalar)
