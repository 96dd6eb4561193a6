"""Tests of a softmax: rows of ordinary numbers and one tolerance for all. Honest softmaxes pass, and mutants do too."""

import torch
import triton
import triton.language as tl


@triton.jit
def test_row(test, column):
    # Your part: values between -4 and 4 show little. Which rows would show each kind of mistake?
    return ((test * 31 + column * 17) % 127).to(tl.float32) * 0.0631 - 4.0


@triton.jit
def write_tests_kernel(
    x_ptr,  # the inputs, `tests` rows of `width` elements
    length_ptr,  # how many elements of each row are the test
    right_ptr,  # the softmax of each row
    allowed_ptr,  # how far an answer may be from it
    width,
    BLOCK: tl.constexpr,
):
    test = tl.program_id(axis=0)  # each program writes one row
    column = tl.arange(0, BLOCK)
    x = test_row(test, column)
    # Your part: rows of other lengths.
    length = width
    used = column < length
    largest = tl.max(tl.where(used, x, -float("inf")), axis=0)
    parts = tl.where(used, tl.exp(x - largest), 0.0)
    right = parts / tl.sum(parts, axis=0)
    # Your part: how far off may an honest answer be?
    allowed = right * 0.0 + 1e-3
    # All of the row is written, behind the test's end too.
    place = test * width + column
    tl.store(x_ptr + place, tl.where(used, x, 0.0), mask=column < width)
    tl.store(right_ptr + place, right, mask=column < width)
    tl.store(allowed_ptr + place, allowed, mask=column < width)
    tl.store(length_ptr + test, length)


def write_tests(
    x: torch.Tensor, length: torch.Tensor, right: torch.Tensor, allowed: torch.Tensor, tests: int, width: int
) -> None:
    write_tests_kernel[(tests,)](x, length, right, allowed, width, BLOCK=triton.next_power_of_2(width))
