"""Numbers as a GPU makes them, where triton's interpreter makes others.

- A product that is added or subtracted is not rounded in between: compilers for a GPU contract `x * c - m`, through
  branches and not into or out of a loop (seen in the machine code of sm_90a). Triton lets them unless a launch says
  `enable_fp_fusion=False`.
- `tl.dot` of float32 reads TF32 unless it is told otherwise: machine code has no rounding before it (seen in the PTX of
  sm_90a and sm_100a), and tensor cores ignore the last thirteen bits.
- A reduction or scan by one's own function is a tree of operations on blocks, and no chain of single elements. Sums are
  trees too, in the type that they are given: a sum of halves is rounded to half at every step.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from triton._C.libtriton import ir
from triton.runtime import interpreter
from triton.runtime.errors import InterpreterError

from autograder.runner.languages.kernel_statements import SeveralConditionsError, Straight, by_all_paths

Handle = interpreter.TensorHandle
_FACTORS = "factors"
_BY_SHAPE = ("create_broadcast", "create_expand_dims", "create_reshape", "create_trans")
_WIDER = {np.dtype(np.float16): np.float32, np.dtype(np.float32): np.float64}
"""In which a product is exact, and a sum with it so nearly that what it is rounded to is right."""


def install() -> None:
    """Change the interpreter of this process."""
    _contract()
    builder: Any = interpreter.InterpreterBuilder
    builder.create_dot = _as_tensor_cores_read(builder.create_dot)
    builder.binary_op = _truth_values(builder.binary_op)
    _as_trees()


def _truth_values(original: Callable[..., Any]) -> Callable[..., Any]:
    """What a comparison gives is a truth value; the interpreter calls it what was compared, and broadcasts that."""

    def binary_op(self: Any, one: Any, other: Any, operation: Any) -> Any:
        result = original(self, one, other, operation)
        if result.data.dtype == np.bool_:
            result.dtype = tl.int1
        return result

    return binary_op


# --- fused multiply-add ----------------------------------------------------------------------------------------------


def _contract() -> None:
    builder: Any = interpreter.InterpreterBuilder
    contracts = _watch_option()
    product = builder.create_fmul

    def create_fmul(self: Any, one: Any, other: Any) -> Any:
        result = product(self, one, other)
        if one.data.dtype in _WIDER:
            shape = result.data.shape
            result.attr[_FACTORS] = (Straight.number, *(_of_shape(factor.data, shape) for factor in (one, other)))
        return result

    builder.create_fmul = create_fmul
    for name in _BY_SHAPE:
        setattr(builder, name, _with_factors(getattr(builder, name)))
    builder.create_splat = _with_factors(builder.create_splat, last=True)
    builder.create_fadd = _contracted(builder.create_fadd, 1, contracts)
    builder.create_fsub = _contracted(builder.create_fsub, -1, contracts)


def _of_shape(data: Any, shape: tuple[int, ...]) -> Any:
    return data if data.shape == shape else np.broadcast_to(data, shape)


def _watch_option() -> dict[str, bool]:
    """Whether the launch that is going on lets compilers contract."""
    state = {"on": True}
    executor: Any = interpreter.GridExecutor
    launch = executor.__call__

    @functools.wraps(launch)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        state["on"] = bool(kwargs.get("enable_fp_fusion", True))
        return launch(self, *args, **kwargs)

    executor.__call__ = call
    return state


def _with_factors(change: Callable[..., Any], *, last: bool = False) -> Callable[..., Any]:
    """What changes a product's shape changes its factors' too."""

    def changed(self: Any, *args: Any) -> Any:
        result = change(self, *args)
        place = len(args) - 1 if last else 0
        if factors := _factors(args[place]):
            kind, before, after = args[place].dtype, args[:place], args[place + 1 :]
            moved = (change(self, *before, Handle(factor, kind), *after).data for factor in factors)
            result.attr[_FACTORS] = (Straight.number, *moved)
        return result

    return changed


def _factors(value: Any) -> tuple[Any, Any] | None:
    """Of a product that was computed in this turn of a loop."""
    made, *factors = value.attr.get(_FACTORS, (-1,))
    return (factors[0], factors[1]) if made == Straight.number else None


def _contracted(plain: Callable[..., Any], sign: int, contracts: dict[str, bool]) -> Callable[..., Any]:
    """`a * b ± c` and `c ± a * b` with one rounding; of two products it is the first that is not rounded."""

    def call(self: Any, one: Any, other: Any) -> Any:
        if contracts["on"]:
            if factors := _factors(one):
                return _fused(factors, 1, other.data, sign, one.dtype.scalar)
            if factors := _factors(other):
                return _fused(factors, sign, one.data, 1, one.dtype.scalar)
        return plain(self, one, other)

    return call


def _fused(factors: tuple[Any, Any], of_product: int, addend: Any, of_addend: int, kind: Any) -> Any:
    narrow = addend.dtype
    wide = _WIDER[narrow]
    exact = np.multiply(*factors, dtype=wide)
    combine = np.add if of_product == of_addend else np.subtract
    ordered = (exact, addend) if of_product == 1 else (addend, exact)
    return Handle(combine(*ordered, dtype=wide).astype(narrow), kind)


# --- tl.dot ----------------------------------------------------------------------------------------------------------

_TF32_BITS = np.uint32(0xFFFFE000)


def _as_tensor_cores_read(product: Callable[..., Any]) -> Callable[..., Any]:
    def create_dot(self: Any, a: Any, b: Any, addend: Any, precision: Any, *more: Any) -> Any:
        if precision == ir.INPUT_PRECISION.TF32 and a.data.dtype == b.data.dtype == np.float32:
            a, b = (Handle(_tf32(one.data), one.dtype) for one in (a, b))
        return product(self, a, b, addend, precision, *more)

    return create_dot


def _tf32(values: Any) -> Any:
    """Without the thirteen bits that tensor cores do not read; NaN stays NaN."""
    read = (np.ascontiguousarray(values).view(np.uint32) & _TF32_BITS).view(np.float32)
    return np.where(np.isnan(values), values, read)


# --- reductions and scans --------------------------------------------------------------------------------------------


def _as_trees() -> None:
    for owner, name, tree in (
        (interpreter.ReduceOps, "generic_reduce", _reduced),
        (interpreter.ScanOps, "generic_scan", _scanned),
    ):
        setattr(owner, name, _or_by_elements(tree, getattr(owner, name)))
    reductions: Any = interpreter.ReduceOps
    reductions.sum = _floats(_summed, reductions.sum)
    scans: Any = interpreter.ScanOps
    scans.cumsum = _floats(_summed_up, scans.cumsum)


def _floats(of_floats: Callable[..., Any], of_others: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, given: Any) -> Any:
        return (of_floats if given.handle.data.dtype.kind == "f" else of_others)(self, given)

    return call


def _summed(self: Any, given: Any) -> Any:
    data = given.handle.data
    block = data.reshape(-1) if self.axis is None else np.moveaxis(data, self.axis, 0)
    while (half := len(block) // 2) > 0:
        block = block[:half] + block[half:]
    if self.keep_dims:
        block = block.reshape((1,) * data.ndim) if self.axis is None else np.moveaxis(block, 0, self.axis)
    else:
        block = block[0]
    return self.to_tensor(block, given.dtype)


def _summed_up(self: Any, given: Any) -> list[Any]:
    block = np.moveaxis(given.handle.data, self.axis, 0)
    distance = 1
    while distance < len(block):
        block = np.concatenate([block[:distance], block[distance:] + block[:-distance]])
        distance *= 2
    return [self.to_tensor(np.moveaxis(block, 0, self.axis), given.dtype)]


def _or_by_elements(tree: Callable[..., Any], by_elements: Callable[..., Any]) -> Callable[..., Any]:
    """A function that goes very many ways needs single elements."""

    def evaluated(self: Any, given: Any) -> Any:
        try:
            return tree(self, given)
        except (SeveralConditionsError, InterpreterError) as error:
            if not _asks_for_one_condition(error):
                raise
            return by_elements(self, given)

    return evaluated


def _asks_for_one_condition(error: BaseException | None) -> bool:
    while isinstance(error, InterpreterError):
        error = error.__cause__
    return isinstance(error, SeveralConditionsError)


def _reduced(self: Any, given: Any) -> list[Any]:
    """Neighbours are combined until one is left: the order of elements is kept, and their number is a power of two."""
    kinds = [one.dtype for one in given]
    blocks = [one.handle.data for one in given]
    whole = (1,) * blocks[0].ndim
    if self.axis is None:
        blocks = [block.reshape(-1) for block in blocks]
    axis = self.axis or 0
    blocks = [np.moveaxis(block, axis, 0) for block in blocks]
    while len(blocks[0]) > 1:
        blocks = _combined(self, kinds, [block[0::2] for block in blocks], [block[1::2] for block in blocks])
    if not self.keep_dims:
        blocks = [block[0] for block in blocks]
    elif self.axis is None:
        blocks = [block.reshape(whole) for block in blocks]
    else:
        blocks = [np.moveaxis(block, 0, axis) for block in blocks]
    return [self.to_tensor(block, kind) for block, kind in zip(blocks, kinds, strict=True)]


def _scanned(self: Any, given: Any) -> list[Any]:
    """Each element takes in what stands 1, 2, 4, … before it."""
    kinds = [one.dtype for one in given]
    blocks = [np.moveaxis(one.handle.data, self.axis, 0) for one in given]
    distance = 1
    while distance < len(blocks[0]):
        before = [np.concatenate([block[:distance], block[:-distance]]) for block in blocks]
        taken = _combined(self, kinds, before, blocks)
        blocks = [np.concatenate([block[:distance], one[distance:]]) for block, one in zip(blocks, taken, strict=True)]
        distance *= 2
    return [self.to_tensor(np.moveaxis(block, 0, self.axis), kind) for block, kind in zip(blocks, kinds, strict=True)]


def _combined(self: Any, kinds: list[Any], before: list[Any], after: list[Any]) -> list[Any]:
    """What the function makes of two blocks, in the types that it was given."""
    both = [*zip(before, kinds, strict=True), *zip(after, kinds, strict=True)]
    function, arguments = self.combine_fn.rewrite(), [self.to_tensor(block, kind) for block, kind in both]
    results = [np.empty_like(block) for block in before]
    for elements, made in by_all_paths(lambda: function(*arguments)):
        for result, one in zip(results, made if isinstance(made, (tuple, tl.tuple)) else (made,), strict=True):
            np.copyto(result, one.handle.data if isinstance(one, tl.tensor) else one, "unsafe", where=elements)
    return results
