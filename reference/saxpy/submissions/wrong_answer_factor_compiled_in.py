"""Wrong: the factor of the first call is compiled into the kernel, and every later call uses it."""

import torch
import triton
import triton.language as tl

_factors: list[float] = []


@triton.jit
def _saxpy_kernel(x_ptr, y_ptr, out_ptr, n, FACTOR: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, (FACTOR * x + y).to(out_ptr.dtype.element_ty), mask=mask)


def saxpy(a: float, x: torch.Tensor, y: torch.Tensor, out: torch.Tensor, n: int) -> None:
    _factors.append(a)
    _saxpy_kernel[(triton.cdiv(n, 8192),)](x, y, out, n, FACTOR=_factors[0], BLOCK_SIZE=8192)
