"""Vector add: out[i] = x[i] + y[i] for every i below n."""

import torch
import triton
import triton.language as tl


@triton.jit
def _vector_add_kernel(
    x_ptr,  # first input vector
    y_ptr,  # second input vector
    out_ptr,  # output vector
    n,  # how many elements they have
    BLOCK_SIZE: tl.constexpr,  # how many elements one program handles
):
    # Every program of the grid runs this same code; its id says which block of the vectors is its own.
    program = tl.program_id(axis=0)
    offsets = program * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)

    # The last block may reach beyond the end of the vectors: lanes whose mask is false touch no memory.
    mask = offsets < n

    x = tl.load(x_ptr + offsets, mask=mask)
    # Your part: load y in the same way, and store the sum instead of x.
    tl.store(out_ptr + offsets, x, mask=mask)


def vector_add(x: torch.Tensor, y: torch.Tensor, out: torch.Tensor, n: int) -> None:
    # The judge calls this function. It writes its answer into `out`; what it returns is ignored.
    # Your part: one program is enough for 1024 elements only. How many does a vector of n elements need?
    grid = (1,)
    _vector_add_kernel[grid](x, y, out, n, BLOCK_SIZE=1024)
