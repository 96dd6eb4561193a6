"""SAXPY: out[i] = a * x[i] + y[i] for every i below n, with a grid that does not grow with n."""

import torch
import triton
import triton.language as tl


@triton.jit
def _saxpy_kernel(
    a,  # the factor, a number
    x_ptr,  # the vector that is scaled
    y_ptr,  # the vector that is added
    out_ptr,  # output vector
    n,  # how many elements they have
    BLOCK_SIZE: tl.constexpr,  # how many elements a program handles in one round
):
    # Your part: this program handles one block and ends. Let it go on with the block a whole grid further on,
    # tl.num_programs(axis=0) * BLOCK_SIZE elements away, until there are none left.
    offsets = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=mask).to(tl.float32)
    # Your part: the factor is missing.
    tl.store(out_ptr + offsets, (x + y).to(out_ptr.dtype.element_ty), mask=mask)


def saxpy(a: float, x: torch.Tensor, y: torch.Tensor, out: torch.Tensor, n: int) -> None:
    # A fixed number of programs, however long the vectors are.
    grid = (8,)
    _saxpy_kernel[grid](a, x, y, out, n, BLOCK_SIZE=1024)
