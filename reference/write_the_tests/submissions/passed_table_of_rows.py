"""Honest: a table of tests on the host, a line for each mistake; one launch writes the rows of a line."""

import torch
import triton
import triton.language as tl

# Offset, slope, spread, the part of the row that is -inf, and how much shorter than the width the row is.
TABLE = (
    (500.0, 0.0, 3.0, 0.0, 0),
    (0.0, 0.0, 3.0, 0.0, 0),
    (-500.0, 0.0, 3.0, 0.0, 0),
    (-1.0, 1.0, 0.0, 0.0, 0),
    (-1.0, 3.0, 0.0, 0.0, 0),
    (0.0, 0.0, 3.0, 0.8, 0),
    (-2.0, 0.0, 0.0, 0.0, 0),
    (0.0, 0.0, 12.0, 0.0, 0),
    (-1.0, 0.0, 2.0, 0.0, 1),
    (-1.0, 0.2, 0.0, 0.0, 1),
    (-1.0, 0.0, 2.0, 0.0, 2),
    (0.0, -4.0, 1.0, 0.0, 0),
    (-1.0, 0.0, 2.0, 0.0, 5),
    (-2.0, 0.0, 0.0, 0.0, 3),
)


@triton.jit
def line_kernel(
    x_ptr, length_ptr, right_ptr, allowed_ptr, width, first, step,
    offset, slope, spread, share, shorter, BLOCK: tl.constexpr,
):  # fmt: skip
    row = first + tl.program_id(axis=0) * step
    j = tl.arange(0, BLOCK)
    # Fractions of multiples of the golden ratio: spread evenly, and neighbours lie apart.
    golden = (j + row) * 0.618034
    x = offset + slope * j + spread * (golden - tl.floor(golden) - 0.5)
    x = tl.where(j < share * width, -float("inf"), x)
    n = tl.maximum(width - shorter, 1)
    inside = j < n
    m = tl.max(tl.where(inside, x, -float("inf")), axis=0)
    e = tl.where(inside, tl.exp(x - m), 0.0)
    y = e / tl.sum(e, axis=0)
    base = row * width
    tl.store(x_ptr + base + j, tl.where(inside, x, 0.0), mask=j < width)
    tl.store(right_ptr + base + j, y, mask=j < width)
    # Below 2^-150 of the maximum nothing is left: no more than that need be allowed for.
    tl.store(allowed_ptr + base + j, y * (n + 120.0) * 1.2e-7 + 3e-38, mask=j < width)
    tl.store(length_ptr + row, n)


def write_tests(
    x: torch.Tensor, length: torch.Tensor, right: torch.Tensor, allowed: torch.Tensor, tests: int, width: int
) -> None:
    block = triton.next_power_of_2(width)
    for first, line in enumerate(TABLE[:tests]):
        rows = triton.cdiv(tests - first, len(TABLE))
        line_kernel[(rows,)](x, length, right, allowed, width, first, len(TABLE), *line, BLOCK=block)
