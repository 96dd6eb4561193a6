"""Honest: one kernel draws rows with a fixed seed, another reads them back and answers them, rows of a block at once."""

import torch
import triton
import triton.language as tl


@triton.jit
def draw_kernel(x_ptr, length_ptr, tests, width, BLOCK: tl.constexpr):
    place = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    test, column = place // width, place % width
    inside = place < tests * width
    kind = test % 8
    spread = tl.where(kind == 1, 20.0, tl.where(kind == 2, 0.0, 2.0))
    centre = tl.where(kind == 0, 200.0, tl.where(kind == 3, -200.0, -1.0))
    slope = tl.where(kind == 4, 4.0, tl.where(kind == 5, 0.5, 0.0))
    x = (tl.rand(2718, place) - 0.5) * spread + centre + slope * column
    x = tl.where((kind == 6) & (column < width - 2 - test), -float("inf"), x)
    x = tl.where((kind == 7) & (column == (test * 5 + 1) % width), -900.0, x)
    tl.store(x_ptr + place, x, mask=inside)
    last = (kind == 6) | (width == 1)
    tl.store(length_ptr + test, tl.where(last, width, width - test // 8 % 4), mask=inside & (column == 0))


@triton.jit
def answer_kernel(x_ptr, length_ptr, right_ptr, allowed_ptr, tests, width, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    test = (tl.program_id(axis=0) * ROWS + tl.arange(0, ROWS))[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    inside = (test < tests) & (column < width)
    n = tl.load(length_ptr + test, mask=test < tests, other=1)
    used = inside & (column < n)
    x = tl.load(x_ptr + test * width + column, mask=used, other=-float("inf"))
    largest = tl.max(x, axis=1, keep_dims=True)
    largest = tl.where(test < tests, largest, 0.0)
    parts = tl.exp(x - largest)
    total = tl.where(test < tests, tl.sum(parts, axis=1, keep_dims=True), 1.0)
    right = parts / total
    tl.store(right_ptr + test * width + column, right, mask=inside)
    tl.store(allowed_ptr + test * width + column, right * 8e-5 + 3e-38, mask=inside)


def write_tests(
    x: torch.Tensor, length: torch.Tensor, right: torch.Tensor, allowed: torch.Tensor, tests: int, width: int
) -> None:
    draw_kernel[(triton.cdiv(tests * width, 4096),)](x, length, tests, width, BLOCK=4096)
    block = triton.next_power_of_2(width)
    answer_kernel[(triton.cdiv(tests, 8),)](x, length, right, allowed, tests, width, ROWS=8, BLOCK=block)
