"""Takes scratch memory from torch in every call and lets it go."""

import torch
import triton
import triton.language as tl


@triton.jit
def _add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=mask) + tl.load(y_ptr + i, mask=mask), mask=mask)


def _honest(x, y, out, n):
    _add_kernel[(triton.cdiv(n, 2048),)](x, y, out, n, BLOCK=2048, num_warps=8)


def vector_add(x, y, out, n):
    scratch = torch.empty(n, dtype=x.dtype, device=x.device)
    scratch.copy_(y)
    _honest(x, scratch, out, n)
