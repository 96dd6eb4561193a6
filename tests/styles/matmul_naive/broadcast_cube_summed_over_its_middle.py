"""No dot: blocks of a and b are broadcast to three dimensions, multiplied, and summed over the middle one."""

import torch
import triton
import triton.language as tl


@triton.jit
def cube_kernel(a_ptr, b_ptr, c_ptr, M, N, K, lda, ldb, ldc, BM: tl.constexpr, BK: tl.constexpr, BN: tl.constexpr):
    rm = (tl.program_id(1) * BM + tl.arange(0, BM)).to(tl.int64)
    rn = tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k0 in range(0, K, BK):
        rk = k0 + tl.arange(0, BK)
        a_mask = (rm[:, None] < M) & (rk[None, :] < K)
        b_mask = (rk[:, None] < K) & (rn[None, :] < N)
        a = tl.load(a_ptr + rm[:, None] * lda + rk[None, :], mask=a_mask, other=0.0)
        b = tl.load(b_ptr + rk[:, None].to(tl.int64) * ldb + rn[None, :], mask=b_mask, other=0.0)
        # (BM, BK, 1) times (1, BK, BN): every product of the block, then a sum over BK
        acc += tl.sum(a[:, :, None] * b[None, :, :], axis=1)
    c_mask = (rm[:, None] < M) & (rn[None, :] < N)
    tl.store(c_ptr + rm[:, None] * ldc + rn[None, :], acc, mask=c_mask)


def matmul(a, b, c, m, n, k, a_row_stride, b_row_stride, c_row_stride):
    BM, BK, BN = 16, 8, 64
    grid = (triton.cdiv(n, BN), triton.cdiv(m, BM))
    cube_kernel[grid](a, b, c, m, n, k, a_row_stride, b_row_stride, c_row_stride, BM=BM, BK=BK, BN=BN)
