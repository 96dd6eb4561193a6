"""Vector add, first milestone: right, with blocks of 256 elements.

The kernel is the whole answer to the correctness part. What it leaves on the table is size: every program adds 256
numbers only, so a vector needs many programs, and starting one costs more than adding its numbers.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _vector_add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def vector_add(x: torch.Tensor, y: torch.Tensor, out: torch.Tensor, n: int) -> None:
    grid = (triton.cdiv(n, 256),)
    _vector_add_kernel[grid](x, y, out, n, BLOCK_SIZE=256, num_warps=1)
