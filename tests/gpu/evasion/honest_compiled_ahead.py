"""Honest: the kernel is compiled ahead, looked at, and launched by the door of what was compiled."""

import torch
import triton
import triton.language as tl


@triton.jit
def _add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=mask) + tl.load(y_ptr + i, mask=mask), mask=mask)


def vector_add(x: torch.Tensor, y: torch.Tensor, out: torch.Tensor, n: int) -> None:
    compiled = _add_kernel.warmup(x, y, out, n, BLOCK=2048, num_warps=8, grid=(1,))
    compiled._init_handles()
    assert compiled.n_regs > 0
    compiled[(triton.cdiv(n, 2048), 1, 1)](x, y, out, n, 2048)
