"""Tests of a softmax, the staff's: ten patterns of rows, in full length, one shorter, then in other lengths.

Every row is written by a program of its own, with the softmax as float32 gives it. An answer may be off by twice what
an honest one can be: relative to itself, by the sum of as many numbers as the row has, and by the rounding of x - m.
"""

import torch
import triton
import triton.language as tl

EPS = tl.constexpr(2.0**-23)
# Hardware may flush what is smaller to zero.
TINY = tl.constexpr(2.0**-125)
PATTERNS = tl.constexpr(10)


@triton.jit
def test_row(pattern, test, column, width):
    # Neighbours differ, no value is one in half precision, and no two rows are alike.
    uneven = ((test * 31 + column * 17) % 127).to(tl.float32) * 0.0631 - 4.0
    x = tl.where(pattern == 0, uneven + 300.0, uneven)
    x = tl.where(pattern == 2, uneven - 300.0, x)
    x = tl.where(pattern == 3, column * 0.25, x)
    x = tl.where(pattern == 4, column * 2.0, x)
    x = tl.where((pattern == 5) & (column == test % width), -500.0, x)
    x = tl.where((pattern == 6) & (4 * column < 3 * width), -float("inf"), x)
    x = tl.where(pattern == 7, -3.3, x)
    x = tl.where(pattern == 8, uneven - 2.0, x)
    return tl.where(pattern == 9, uneven * 5.0, x)


@triton.jit
def write_tests_kernel(x_ptr, length_ptr, right_ptr, allowed_ptr, width, BLOCK: tl.constexpr):
    test = tl.program_id(axis=0)
    column = tl.arange(0, BLOCK)
    pattern, turn = test % PATTERNS, test // PATTERNS
    x = test_row(pattern, test, column, width)
    length = tl.where(turn < 2, width - turn, width - turn * 13 % width)
    # Most of the row of -inf is -inf: something finite has to be left.
    length = tl.where(pattern == 6, width, tl.maximum(length, 1))
    used = column < length
    largest = tl.max(tl.where(used, x, -float("inf")), axis=0)
    parts = tl.where(used, tl.exp(x - largest), 0.0)
    right = parts / tl.sum(parts, axis=0)
    below = tl.where(used & (x > -float("inf")), largest - x, 0.0)
    allowed = right * (length + below + 8.0) * EPS + TINY
    place = test * width + column
    tl.store(x_ptr + place, tl.where(used, x, 0.0), mask=column < width)
    tl.store(right_ptr + place, right, mask=column < width)
    tl.store(allowed_ptr + place, allowed, mask=column < width)
    tl.store(length_ptr + test, length)


def write_tests(
    x: torch.Tensor, length: torch.Tensor, right: torch.Tensor, allowed: torch.Tensor, tests: int, width: int
) -> None:
    write_tests_kernel[(tests,)](x, length, right, allowed, width, BLOCK=triton.next_power_of_2(width))
