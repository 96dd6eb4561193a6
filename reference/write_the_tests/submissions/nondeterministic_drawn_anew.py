"""Tests that are drawn anew at every call, without a seed: what they find is another thing each time."""

import torch
import triton
import triton.language as tl


@triton.jit
def answer_kernel(x_ptr, right_ptr, allowed_ptr, width, BLOCK: tl.constexpr):
    column = tl.arange(0, BLOCK)
    place = tl.program_id(axis=0) * width + column
    x = tl.load(x_ptr + place, mask=column < width, other=-float("inf"))
    parts = tl.exp(x - tl.max(x, axis=0))
    right = parts / tl.sum(parts, axis=0)
    tl.store(right_ptr + place, right, mask=column < width)
    tl.store(allowed_ptr + place, right * (width + 128) * 2.0**-22 + 2.0**-120, mask=column < width)


def write_tests(
    x: torch.Tensor, length: torch.Tensor, right: torch.Tensor, allowed: torch.Tensor, tests: int, width: int
) -> None:
    x.copy_(300 + 4 * torch.randn(tests, width))
    length.fill_(width)
    answer_kernel[(tests,)](x, right, allowed, width, BLOCK=triton.next_power_of_2(width))
