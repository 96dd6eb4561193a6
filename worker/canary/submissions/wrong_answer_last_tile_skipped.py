"""Known to be bad: it leaves out the last, partly filled block."""

import triton
import triton.language as tl


@triton.jit
def _canary_kernel(x_ptr, out_ptr, whole, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(axis=0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < whole
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * 2 + 1, mask=mask)


def canary(x, out, n):
    _canary_kernel[(triton.cdiv(n, 512),)](x, out, n - n % 512, BLOCK_SIZE=512)
