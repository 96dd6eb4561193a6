"""Names and arguments of a kernel mean what they mean on a GPU.

Names imported from triton's modules work as `tl.…` does: builtins are given the interpreter once and for all. A float
argument is a float32, an int an int32 or int64, and one that is 1 becomes a constant, which has no methods, as triton
specialises it.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter
from triton.runtime.jit import KernelParam

_interpreter: Any = interpreter


def install() -> None:
    """Change the interpreter of this process, before any kernel is defined."""
    _patch_once()
    _give_types_to_arguments()
    # Triton checks integers for overflow in 64 bits, and without `debug` drops what it found.
    builder = _interpreter.interpreter_builder
    builder.options = dataclasses.replace(builder.options, sanitize_overflow=False)


# --- names -----------------------------------------------------------------------------------------------------------


def _patch_once() -> None:
    """Triton patches its modules at every call of a kernel or function, if these see `tl`, and takes it back."""
    sees_all = SimpleNamespace(__globals__={"tl": tl, "core": tl.core})
    scope = _interpreter._patch_lang(sees_all)  # noqa: SLF001 -- what it does at every call.
    _interpreter._patch_lang = lambda _: _interpreter._LangPatchScope()  # noqa: SLF001
    scope.set_attr(tl.tensor, "reduce", tl.reduce)
    scope.set_attr(tl.tensor, "associative_scan", tl.associative_scan)
    for name in _OPERATORS:
        scope.set_attr(tl.constexpr, name, _leave_tensors(getattr(tl.constexpr, name)))


_OPERATORS = tuple(
    f"__{name}__"
    for name in (
        "add", "sub", "mul", "truediv", "floordiv", "mod", "and", "or", "xor", "lshift", "rshift", "lt", "le", "gt",
        "ge", "eq", "ne",
    )
)  # fmt: skip


def _leave_tensors(operator: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A constant and a tensor give a tensor, by the tensor's own operator."""

    @functools.wraps(operator)
    def apply(self: Any, other: Any) -> Any:
        return NotImplemented if isinstance(other, tl.tensor) else operator(self, other)

    return apply


# --- arguments -------------------------------------------------------------------------------------------------------

_INT32 = range(-(2**31), 2**31)
_INT64 = range(-(2**63), 2**63)


def scalar(value: float, kind: tl.dtype) -> tl.tensor:
    """A scalar of a kernel."""
    data = np.array([value], dtype=_interpreter._get_np_dtype(kind))  # noqa: SLF001
    return tl.tensor(interpreter.TensorHandle(data, kind), kind)


class One(int):
    """An int argument that is 1: triton makes it a constant, and what it compiles for it is compiled for 1 only."""

    @property
    def value(self) -> int:
        """As of a constant on a GPU."""
        return 1

    def __getattr__(self, name: str) -> Any:
        """What the compiler says, and what to do."""
        raise AttributeError(
            f"'constexpr' object has no attribute '{name}': this argument is 1 here, and an int argument that is 1 "
            f"becomes a constant when Triton compiles for a GPU. Assign it to a variable first, write "
            f"`tl.cast(…, dtype)`, or name it in `do_not_specialize`."
        )


def _give_types_to_arguments() -> None:
    convert = _interpreter._implicit_cvt  # noqa: SLF001

    def typed(argument: Any) -> Any:
        if isinstance(argument, One):
            return argument
        if isinstance(argument, bool) or not isinstance(argument, (int, float)):
            return convert(argument)
        return scalar(argument, tl.float32 if isinstance(argument, float) else _type_of(argument))

    _interpreter._implicit_cvt = typed  # noqa: SLF001
    function: Any = interpreter.InterpretedFunction
    original = function.run

    @functools.wraps(original)
    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        parameters = _parameters(self)
        given = [parameter.given(value) for parameter, value in zip(parameters.values(), args, strict=False)]
        named = {name: parameters[name].given(value) if name in parameters else value for name, value in kwargs.items()}
        return original(self, *given, *args[len(given) :], grid=_as_tuple(grid), warmup=warmup, **named)

    function.run = run


def _type_of(value: int) -> tl.dtype:
    if value in _INT32:
        return tl.int32
    return tl.int64 if value in _INT64 else tl.uint64


@dataclasses.dataclass(frozen=True)
class Parameter:
    """What a kernel says of an argument.

    Attributes:
        kind: the type that it is annotated with.
        constant: whether an int that is 1 becomes a constant.
    """

    kind: tl.dtype | None
    constant: bool

    def given(self, value: Any) -> Any:
        """A number as the kernel gets it."""
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return value
        if self.kind is not None:
            return scalar(value, self.kind)
        return One(1) if self.constant and type(value) is int and value == 1 else value


def _parameters(function: Any) -> dict[str, Parameter]:
    """By name, in order."""
    found: dict[str, Parameter] | None = getattr(function, "_kernel_ladder_parameters", None)
    if found is None:
        kept = function.kwargs.get("do_not_specialize") or ()
        found = {}
        for number, (name, one) in enumerate(inspect.signature(function.fn).parameters.items()):
            said = KernelParam(number, one, number in kept or name in kept, False)
            kind = _annotated(said.annotation_type)
            found[name] = Parameter(kind, not (said.is_constexpr or said.do_not_specialize or kind))
        function._kernel_ladder_parameters = found  # noqa: SLF001
    return found


def _annotated(name: str) -> tl.dtype | None:
    """None where nothing is said, and for bfloat16, in which the interpreter does not compute."""
    kind = tl.str_to_ty(name, None) if name and not name.startswith(("*", "bf")) else None
    return kind if isinstance(kind, tl.dtype) else None


def _as_tuple(grid: Any) -> Any:
    """A grid as the compiled launcher takes it: lists too, and of four sizes and more the first three."""
    if callable(grid):
        return lambda arguments: tuple(grid(arguments))[:3]
    return tuple(grid)[:3] if isinstance(grid, (list, tuple)) else grid
