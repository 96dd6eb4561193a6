"""The golden kernel: known to be right, measured beside itself."""

import torch
import triton
import triton.language as tl


@triton.jit
def _canary_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(axis=0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * 2 + 1, mask=mask)


def canary(x: torch.Tensor, out: torch.Tensor, n: int) -> None:
    block_size = 2048 if x.is_cuda else 32768
    _canary_kernel[(triton.cdiv(n, block_size),)](x, out, n, BLOCK_SIZE=block_size, num_warps=8)
