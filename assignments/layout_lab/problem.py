"""Layouts as functions from integers to integers: where an element lies, and what that costs in shared memory.

A layout is a list of modes, each with a shape and a stride. An index is cut into coordinates, the first mode changing
fastest, and the last mode takes all that is left:

    offset(i) = Σ c_k · stride_k,   c_k = (i // (shape_0 · … · shape_(k-1))) % shape_k,   without the % for the last k

Everything is an integer, so equality is asked for. The fragments are those of `mma.m16n8k16` for 16-bit factors in
NVIDIA's *PTX ISA*; rows of an accumulator of 64 rows lie in Tensor Memory as that manual draws them, sixteen to a
quarter of the lanes. Answers are computed in int64.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

Tensors = dict[str, torch.Tensor]

LANES = 32
BANKS = 32
WORD_BYTES = 4
LINE_BYTES = BANKS * WORD_BYTES
LANE_UNIT = 1 << 16
"""Of an address in Tensor Memory: what one lane is, as the lane stands in the upper 16 bits."""


def make_inputs(
    *, function: str, generator: torch.Generator, dtype: torch.dtype, distribution: str, **size: int
) -> Tensors:
    """Return the function's input tensors, int32; what is drawn is another at every call."""
    if distribution not in _DISTRIBUTIONS[function]:
        raise KeyError(distribution)
    made = _INPUTS[function](_Draw(generator), distribution, **size)
    return {name: tensor.to(dtype) for name, tensor in made.items()}


def expected(*, function: str, **inputs: torch.Tensor) -> Tensors:
    """Return the function's output, int64."""
    answer = _ANSWERS[function](**{name: tensor.long() for name, tensor in inputs.items()})
    return {"passes" if function == "bank_passes" else "out": answer}


# --- what is right ---------------------------------------------------------------------------------------------------


def layout(index: torch.Tensor, shape: torch.Tensor, stride: torch.Tensor) -> torch.Tensor:
    """Return the offsets of indices of any shape, int64."""
    rest, offset = index, torch.zeros_like(index)
    for mode, (length, step) in enumerate(zip(shape.tolist(), stride.tolist(), strict=True)):
        is_last = mode == len(shape) - 1
        offset = offset + (rest if is_last else rest % length) * step
        rest = rest // length
    return offset


def _layout_offsets(index: torch.Tensor, shape: torch.Tensor, stride: torch.Tensor) -> torch.Tensor:
    return layout(index, shape, stride)


def _composed_offsets(index: torch.Tensor, **layouts: torch.Tensor) -> torch.Tensor:
    inner = layout(index, layouts["b_shape"], layouts["b_stride"])
    return layout(inner, layouts["a_shape"], layouts["a_stride"])


def _swizzled_offsets(offset: torch.Tensor, rule: torch.Tensor) -> torch.Tensor:
    bits, base, shift = rule.tolist()
    mask = ((1 << bits) - 1) << base
    return offset ^ ((offset >> shift) & mask)


def _fragment_offsets(lane: torch.Tensor, value: torch.Tensor, operand: torch.Tensor) -> torch.Tensor:
    which, row_stride = operand.tolist()
    group, pair = lane // 4, 2 * (lane % 4) + value % 2
    if which == 0:
        row, column = group + 8 * (value // 2 % 2), pair + 8 * (value // 4)
    elif which == 1:
        row, column = pair + 8 * (value // 2), group
    else:
        row, column = group + 8 * (value // 2), pair
    return row * row_stride + column


def _bank_passes(access: torch.Tensor, access_bytes: torch.Tensor) -> torch.Tensor:
    """Warp by warp, in sets of Python: not as a kernel would do it."""
    each = int(access_bytes)
    together = LANES // max(1, each // WORD_BYTES)
    counts = []
    for warp in (access * each).tolist():
        passes = 0
        for first in range(0, LANES, together):
            words: list[set[int]] = [set() for _ in range(BANKS)]
            for byte in warp[first : first + together]:
                for word in range(byte // WORD_BYTES, -(-(byte + each) // WORD_BYTES)):
                    words[word % BANKS].add(word)
            passes += max(map(len, words))
        counts.append(passes)
    return torch.tensor(counts)


def _tmem_addresses(row: torch.Tensor, column: torch.Tensor, tile: torch.Tensor) -> torch.Tensor:
    rows, first, bits = tile.tolist()
    lane = row if rows == 128 else 32 * (row // 16) + row % 16
    return lane * LANE_UNIT + first + column * bits // 32


_ANSWERS: dict[str, Callable[..., torch.Tensor]] = {
    "layout_offsets": _layout_offsets,
    "composed_offsets": _composed_offsets,
    "swizzled_offsets": _swizzled_offsets,
    "fragment_offsets": _fragment_offsets,
    "bank_passes": _bank_passes,
    "tmem_addresses": _tmem_addresses,
}


# --- what is drawn ---------------------------------------------------------------------------------------------------


class _Draw:
    """Integers from one generator."""

    def __init__(self, generator: torch.Generator) -> None:
        self._generator = generator

    def of(self, count: int, low: int, high: int) -> torch.Tensor:
        """`count` integers from low to high, both included."""
        return torch.randint(low, high + 1, (count,), generator=self._generator, device=self._generator.device)

    def one(self, *choices: int) -> int:
        """One of these."""
        return choices[int(self.of(1, 0, len(choices) - 1))]

    def order(self, count: int) -> torch.Tensor:
        """The numbers below `count` in any order."""
        return torch.randperm(count, generator=self._generator, device=self._generator.device)


def _a_layout(draw: _Draw, distribution: str, modes: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Shapes and strides: compact in an order of modes that is drawn, or with gaps, and perhaps modes of stride 0."""
    shape = draw.of(modes, 2, 5)
    if distribution == "gaps":
        steps = draw.of(modes, 1, 40)
        steps[draw.order(modes)[: modes // 2]] *= draw.one(0, 1, 1)
        return shape, steps
    if distribution == "powers":
        shape = 2 ** draw.of(modes, 1, 3)
    stride, step = torch.ones_like(shape), 1
    order = torch.arange(modes - 1, -1, -1) if distribution == "row_major" else draw.order(modes)
    for mode in order.tolist():
        stride[mode] = step
        step *= int(shape[mode])
    return shape, stride


def _layout_inputs(draw: _Draw, distribution: str, *, modes: int, n: int) -> Tensors:
    shape, stride = _a_layout(draw, distribution, modes)
    if distribution == "row_major":
        return {"index": torch.arange(n), "shape": shape, "stride": stride}
    # Some lie behind the layout's end.
    return {"index": draw.of(n, 0, 2 * int(shape.prod())), "shape": shape, "stride": stride}


def _composed_inputs(draw: _Draw, distribution: str, *, a_modes: int, b_modes: int, n: int) -> Tensors:
    a_shape, a_stride = _a_layout(draw, distribution, a_modes)
    b_shape, b_stride = _a_layout(draw, distribution, b_modes)
    index = draw.of(n, 0, 2 * int(b_shape.prod()))
    return {"index": index, "a_shape": a_shape, "a_stride": a_stride, "b_shape": b_shape, "b_stride": b_stride}


def _swizzled_inputs(draw: _Draw, distribution: str, *, n: int) -> Tensors:
    offset, bits = draw.of(n, 0, 2**14 - 1), draw.one(1, 2, 3)
    if distribution == "rows_of_64":
        return {"offset": (torch.arange(n) + draw.one(0, 64, 128)) % 2**14, "rule": torch.tensor([3, 3, 3])}
    if distribution == "apart":
        return {"offset": offset, "rule": torch.tensor([bits, draw.one(0, 1, 2, 3), bits + draw.one(1, 2, 3)])}
    return {"offset": offset, "rule": torch.tensor([draw.one(0, 1, 2, 3), draw.one(0, 2, 4), draw.one(3, 4)])}


def _fragment_inputs(draw: _Draw, distribution: str, *, n: int) -> Tensors:
    which = {"a": 0, "b": 1, "c": 2}[distribution]
    elements = (8, 4, 4)[which]
    slots = draw.order(LANES * elements).repeat(-(-n // (LANES * elements)))[:n]
    columns = (16, 8, 8)[which]
    row_stride = columns + draw.one(0, 8, 16, 24)
    return {"lane": slots // elements, "value": slots % elements, "operand": torch.tensor([which, row_stride])}


def _bank_inputs(draw: _Draw, distribution: str, *, width: int, warps: int) -> Tensors:
    lanes = torch.arange(LANES)
    rows = []
    for _ in range(warps):
        if distribution == "shared_words":
            # Few words, each read by several lanes, which takes one pass and no more.
            row = draw.of(4, 0, 511)[draw.of(LANES, 0, 3)]
        elif distribution == "columns":
            # A column of a tile whose rows are of some length, in elements.
            row = lanes * draw.one(1, 2, 8, 17, 32, 33, 36, 64) + draw.one(0, 1, 5, 31)
        else:
            row = draw.of(LANES, 0, 2047)
        rows.append(row[draw.order(LANES)])
    return {"access": torch.stack(rows), "access_bytes": torch.tensor([width])}


def _tmem_inputs(draw: _Draw, distribution: str, *, n: int) -> Tensors:
    rows = 64 if distribution.startswith("rows_64") else 128
    bits = 16 if distribution.endswith("halves") else 32
    tile = torch.tensor([rows, 32 * draw.one(0, 1, 4, 8), bits])
    return {"row": draw.of(n, 0, rows - 1), "column": draw.of(n, 0, 255), "tile": tile}


_DISTRIBUTIONS = {
    "layout_offsets": ("compact", "row_major", "powers", "gaps"),
    "composed_offsets": ("compact", "powers", "gaps"),
    "swizzled_offsets": ("any", "apart", "rows_of_64"),
    "fragment_offsets": ("a", "b", "c"),
    "bank_passes": ("any", "columns", "shared_words"),
    "tmem_addresses": ("rows_128", "rows_64", "rows_128_halves", "rows_64_halves"),
}
_INPUTS: dict[str, Callable[..., Tensors]] = {
    "layout_offsets": _layout_inputs,
    "composed_offsets": _composed_inputs,
    "swizzled_offsets": _swizzled_inputs,
    "fragment_offsets": _fragment_inputs,
    "bank_passes": _bank_inputs,
    "tmem_addresses": _tmem_inputs,
}
