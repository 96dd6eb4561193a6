"""Hooks in triton's interpreter: what was launched, ghosts, and a clear refusal where it would be silently wrong.

A descriptor's store writes whole 16 bytes on a GPU, over the end of a row that ends within them; the interpreter would
leave that out (https://github.com/triton-lang/triton/issues/11583), and a kernel be right here and wrong there.

The interpreter keeps bfloat16 as 16-bit and float8 as 8-bit integers and computes on those integers: sums, products,
comparisons and reductions of raw bfloat16 are garbage, without an error. It also cuts instead of rounding when it
converts to bfloat16 (put right here), and loses carries when it converts to float8 (refused here).

Written against triton 3.9; `install` fails loudly if a name is gone.
"""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter
from triton.runtime.autotuner import Autotuner

from autograder.runner.languages import (
    kernel_language,
    kernel_libdevice,
    kernel_numbers,
    kernel_races,
    kernel_statements,
    no_gpu,
)
from autograder.runner.languages.hooks import replace
from autograder.runner.record import Record

_clock = time.perf_counter_ns
BFLOAT16 = "bf16"
FLOAT8 = frozenset({"fp8e5", "fp8e5b16", "fp8e4nv", "fp8e4b8", "fp8e4b15"})
_RAW = FLOAT8 | {BFLOAT16}
_RAW_STORAGE = "HB"
"""numpy's codes of uint16 and uint8, in which they are kept."""
_STORED_BYTES = 16
"""What the hardware that moves tiles stores at once, and where rows of what it moves have to begin."""


class NotOnTheCpuError(TypeError):
    """Triton's CPU interpreter would compute this wrongly."""


class Ghost(BaseException):
    """Leaves a launch before its first program."""


def install(record: Record) -> tuple[Callable[[bool], None], kernel_races.Watch]:
    """Hook into the interpreter.

    Returns:
        What switches ghosts on and off, and what has to know the tensors of a recorded call.
    """
    no_gpu.install()
    kernel_language.install()
    kernel_statements.install()
    kernel_libdevice.install()
    kernel_numbers.install()
    _record_launches(record)
    _refuse_raw_arithmetic()
    _say_nothing_of_overflow()
    _tune_by_the_hosts_clock()
    replace(interpreter.InterpreterBuilder, "create_descriptor_store", _stored_whole)
    return _ghosts(), kernel_races.install(record)


# --- launches --------------------------------------------------------------------------------------------------------


def _record_launches(record: Record) -> None:
    executor: Any = interpreter.GridExecutor

    def launch(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not record.recording:
                return original(self, *args, **kwargs)
            try:
                return original(self, *args, **kwargs)
            finally:
                grid = getattr(interpreter.interpreter_builder, "grid_dim", ())
                record.launched(str(self.fn.__name__), tuple(int(size) for size in grid))

        return call

    def pause(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            record.paused = True
            try:
                return original(*args)
            finally:
                record.paused = False

        return call

    replace(executor, "__call__", launch)
    for name in ("_init_args_hst", "_restore_args_dev"):
        replace(executor, name, pause)


def _ghosts() -> Callable[[bool], None]:
    """A ghost's arguments are handled and its grid is computed, as for every launch; then it is left."""
    state = {"on": False}

    def set_grid_dim(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: Any, *sizes: int) -> None:
            original(self, *sizes)
            if state["on"]:
                raise Ghost

        return call

    def launch(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                return original(self, *args, **kwargs)
            except Ghost:
                return None

        return call

    def switch(on: bool) -> None:
        state["on"] = on
        if on:
            replace(interpreter.InterpreterBuilder, "set_grid_dim", set_grid_dim)
            replace(interpreter.GridExecutor, "__call__", launch)

    return switch


# --- autotuners ------------------------------------------------------------------------------------------------------


def _tune_by_the_hosts_clock() -> None:
    """An autotuner asks a GPU's driver how to time its candidates. Here each is run once, by the host's clock."""

    def once(run: Callable[[], object], quantiles: Sequence[float]) -> list[float]:
        start = _clock()
        run()
        return [(_clock() - start) / 1e6] * len(quantiles)

    if "do_bench" not in vars(Autotuner):
        raise AttributeError("triton's Autotuner has no do_bench")
    Autotuner.do_bench = property(lambda _: once)


# --- descriptors -----------------------------------------------------------------------------------------------------


def _stored_whole(original: Callable[..., Any]) -> Callable[..., Any]:
    """As a GPU stores a tile: columns behind the last one too, up to the next multiple of 16 bytes."""

    def call(self: Any, descriptor: Any, value: Any, indices: Any) -> Any:
        together = _STORED_BYTES * 8 // descriptor.base.dtype.element_ty.primitive_bitwidth
        columns = descriptor.shape[-1]
        stored = copy.copy(descriptor)
        # Shapes may be the largest int32 there is.
        whole = -(-columns.data.astype(np.int64) // together) * together
        stored.shape = [*descriptor.shape[:-1], interpreter.TensorHandle(whole, tl.int64)]
        return original(self, stored, value, indices)

    return call


# --- arithmetic ------------------------------------------------------------------------------------------------------


def _refuse_raw_arithmetic() -> None:
    builder: Any = interpreter.InterpreterBuilder
    replace(builder, "binary_op", _checked_binary)
    replace(builder, "unary_op", lambda original: _checked(original, (0,)))
    replace(builder, "ternary_op", _checked_ternary)
    replace(builder, "create_fma", lambda original: _checked(original, (0, 1, 2)))
    replace(builder, "create_dot", _checked_dot)
    replace(builder, "create_atomic_rmw", lambda original: _checked(original, (2,)))
    replace(builder, "cast_impl", _checked_cast)
    replace(builder, "create_fp_to_fp", _checked_conversion)
    replace(interpreter.ReduceScanOpInterface, "check_tensor", _checked_reduction)


def _say_nothing_of_overflow() -> None:
    """A GPU makes inf and NaN in silence; numpy warns, and names files of this installation."""
    warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"(triton|numpy|autograder)\.")


def _is_raw(handle: Any) -> bool:
    return handle.data.dtype.char in _RAW_STORAGE and handle.dtype.scalar.name in _RAW


def _refuse(name: str) -> None:
    kind = "bfloat16" if name == BFLOAT16 else "float8"
    raise NotOnTheCpuError(
        f"Triton's CPU interpreter gives wrong results with raw {kind} values. Convert them after the load with "
        "`.to(tl.float32)`, compute in float32, and convert back when you store."
    )


def _checked_binary(original: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, lhs: Any, rhs: Any, op: Any) -> Any:
        if lhs.data.dtype.char in _RAW_STORAGE and _is_raw(lhs):
            _refuse(lhs.dtype.scalar.name)
        return original(self, lhs, rhs, op)

    return call


def _checked_ternary(original: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, first: Any, second: Any, third: Any, op: Any) -> Any:
        # Choosing between values moves their bits and computes nothing.
        if op is not np.where and _is_raw(first):
            _refuse(first.dtype.scalar.name)
        return original(self, first, second, third, op)

    return call


def _checked(original: Callable[..., Any], places: tuple[int, ...]) -> Callable[..., Any]:
    def call(self: Any, *args: Any) -> Any:
        for place in places:
            if _is_raw(args[place]):
                _refuse(args[place].dtype.scalar.name)
        return original(self, *args)

    return call


def _checked_dot(original: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, a: Any, b: Any, *args: Any) -> Any:
        # The interpreter widens float8 operands itself, and rightly.
        for operand in (a, b):
            if _is_raw(operand) and operand.dtype.scalar.name == BFLOAT16:
                _refuse(BFLOAT16)
        return original(self, a, b, *args)

    return call


def _checked_reduction(original: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, tensors: Any) -> Any:
        for tensor in tensors:
            if isinstance(tensor, tl.core.tensor) and _is_raw(tensor.handle):
                _refuse(tensor.handle.dtype.scalar.name)
        return original(self, tensors)

    return call


def _checked_cast(original: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, source: Any, target: Any) -> Any:
        before, after = source.dtype.scalar.name, target.scalar.name
        if before == after:
            return original(self, source, target)
        if before == "fp32" and after == BFLOAT16:
            return interpreter.TensorHandle(_round_to_bfloat16(source.data), target.scalar)
        for name, other in ((before, after), (after, before)):
            if name in FLOAT8 or (name == BFLOAT16 and other != "fp32"):
                _refuse(name)
        return original(self, source, target)

    return call


def _checked_conversion(original: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, source: Any, target: Any, rounding: Any) -> Any:
        if target.scalar.name in FLOAT8 and source.dtype.scalar.name != target.scalar.name:
            raise NotOnTheCpuError(
                "Triton's CPU interpreter rounds wrongly when it converts to float8. Exercises that store float8 are "
                "for a GPU lane."
            )
        return original(self, source, target, rounding)

    return call


def _round_to_bfloat16(values: Any) -> Any:
    """The upper half of each float32, rounded to nearest even as a GPU does; NaN stays NaN."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(values), np.uint32(0x7FC0), rounded).astype(np.uint16)
