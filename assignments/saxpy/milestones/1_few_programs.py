"""SAXPY, first milestone: a grid-stride loop with too few programs.

Thirty-two programs of four warps walk over the vectors. The loop is right, and the launch is cheap; but a GPU with more
than a hundred multiprocessors has nothing to do in most of them, and the others have too few loads in flight.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _saxpy_kernel(a, x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    step = tl.num_programs(axis=0) * BLOCK_SIZE
    for start in range(tl.program_id(axis=0) * BLOCK_SIZE, n, step):
        offsets = tl.cast(start, tl.int64) + tl.arange(0, BLOCK_SIZE)
        mask = offsets < n
        x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
        y = tl.load(y_ptr + offsets, mask=mask).to(tl.float32)
        tl.store(out_ptr + offsets, (a * x + y).to(out_ptr.dtype.element_ty), mask=mask)


def saxpy(a: float, x: torch.Tensor, y: torch.Tensor, out: torch.Tensor, n: int) -> None:
    _saxpy_kernel[(32,)](a, x, y, out, n, BLOCK_SIZE=1024, num_warps=4)
