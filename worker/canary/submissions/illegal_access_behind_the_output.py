"""Right, and then writes one element behind the output."""

import triton
import triton.language as tl


@triton.jit
def _canary_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(axis=0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * 2 + 1, mask=mask)
    tl.store(out_ptr + n, 1.0)


def canary(x, out, n):
    _canary_kernel[(triton.cdiv(n, 2048),)](x, out, n, BLOCK_SIZE=2048)
