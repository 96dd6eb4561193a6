"""Wrong: rounds the address of x down to 16 bytes for wide loads, and shifts what it reads."""

import torch
import triton
import triton.language as tl


@triton.jit
def _saxpy_kernel(a, x_ptr, shift, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    x = tl.load(x_ptr - shift + offsets, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, (a * x + y).to(out_ptr.dtype.element_ty), mask=mask)


def saxpy(a: float, x: torch.Tensor, y: torch.Tensor, out: torch.Tensor, n: int) -> None:
    shift = x.data_ptr() % 16 // x.element_size()
    _saxpy_kernel[(triton.cdiv(n, 8192),)](a, x, shift, y, out, n, BLOCK_SIZE=8192)
