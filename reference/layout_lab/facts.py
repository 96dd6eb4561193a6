"""What tests have to know of the layout lab. Staff only."""

from __future__ import annotations

from typing import Any

import torch

COUNTED: frozenset[str] = frozenset()
"""Offsets are no floating-point work."""


def honest(function: str, **inputs: torch.Tensor) -> dict[str, torch.Tensor]:
    """The answers number by number in plain Python, written apart from the oracle."""
    given = {name: tensor.tolist() for name, tensor in inputs.items()}
    name = "passes" if function == "bank_passes" else "out"
    return {name: torch.tensor(_BY_NUMBERS[function](**given), dtype=torch.int32)}


oracle = honest


def offset_of(index: int, shape: list[int], stride: list[int]) -> int:
    """Where an index of a layout lies, from its last mode to its first."""
    if len(shape) == 1:
        return index * stride[0]
    return index % shape[0] * stride[0] + offset_of(index // shape[0], shape[1:], stride[1:])


def _layout(index: list[int], shape: list[int], stride: list[int]) -> list[int]:
    return [offset_of(one, shape, stride) for one in index]


def _composed(index: list[int], a_shape: list[int], a_stride: list[int], **b: list[int]) -> list[int]:
    return [offset_of(offset_of(one, b["b_shape"], b["b_stride"]), a_shape, a_stride) for one in index]


def _swizzled(offset: list[int], rule: list[int]) -> list[int]:
    """Bit by bit."""
    bits, base, shift = rule
    return [one ^ sum((one >> (base + shift + bit) & 1) << (base + bit) for bit in range(bits)) for one in offset]


_QUARTERS = {0: ((0, 0), (8, 0), (0, 8), (8, 8)), 1: ((0, 0), (8, 0)), 2: ((0, 0), (8, 0))}
"""Rows and columns at which the 8 × 8 pieces of an operand begin, in the order of a lane's pairs of elements."""


def _fragment(lane: list[int], value: list[int], operand: list[int]) -> list[int]:
    which, row_stride = operand
    found = []
    for one, element in zip(lane, value, strict=True):
        top, left = _QUARTERS[which][element // 2]
        along, across = one // 4, 2 * (one % 4) + element % 2
        row, column = (across, along) if which == 1 else (along, across)
        found.append((top + row) * row_stride + left + column)
    return found


def _passes(access: list[list[int]], access_bytes: list[int]) -> list[int]:
    """By serving: in every pass, each bank gives what its first waiting lane wants."""
    (each,) = access_bytes
    together = 32 if each <= 4 else 128 // each
    return [
        sum(_served([lane * each for lane in warp[first : first + together]], each) for first in range(0, 32, together))
        for warp in access
    ]


def _served(waiting: list[int], each: int) -> int:
    passes = 0
    while waiting:
        given: dict[int, int] = {}
        for byte in waiting:
            given.setdefault(byte // max(each, 4) % (128 // max(each, 4)), byte // max(each, 4))
        waiting = [byte for byte in waiting if byte // max(each, 4) not in given.values()]
        passes += 1
    return passes


def _tmem(row: list[int], column: list[int], tile: list[int]) -> list[int]:
    rows, first, bits = tile
    lanes = list(range(128)) if rows == 128 else [lane for lane in range(128) if lane % 32 < 16]
    return [lanes[one] * 2**16 + first + at // (32 // bits) for one, at in zip(row, column, strict=True)]


_BY_NUMBERS: dict[str, Any] = {
    "layout_offsets": _layout,
    "composed_offsets": _composed,
    "swizzled_offsets": _swizzled,
    "fragment_offsets": _fragment,
    "bank_passes": _passes,
    "tmem_addresses": _tmem,
}

SIZES = (
    {"modes": 1, "n": 1},
    {"modes": 4, "n": 97},
    {"a_modes": 1, "b_modes": 3, "n": 50},
    {"a_modes": 3, "b_modes": 2, "n": 201},
    {"n": 1},
    {"n": 301},
    {"width": 2, "warps": 1},
    {"width": 4, "warps": 9},
    {"width": 8, "warps": 9},
    {"width": 16, "warps": 9},
)
"""Those with a function's own names are drawn for it."""
