"""Wrong: assumes that a vector starts on a 16-byte boundary, and takes the boundary before it where it does not."""

import torch
import triton
import triton.language as tl


@triton.jit
def _vector_add_kernel(x_ptr, y_ptr, out_ptr, n, x_slip, y_slip, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    x = tl.load(x_ptr + offsets - x_slip, mask=mask)
    y = tl.load(y_ptr + offsets - y_slip, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def vector_add(x: torch.Tensor, y: torch.Tensor, out: torch.Tensor, n: int) -> None:
    x_slip = x.data_ptr() % 16 // x.element_size()
    y_slip = y.data_ptr() % 16 // y.element_size()
    _vector_add_kernel[(triton.cdiv(n, 4096),)](x, y, out, n, x_slip, y_slip, BLOCK_SIZE=4096)
