"""Library style: thin products go to a kernel without dot, others to a dot kernel with a tile chosen by shape."""

import torch
import triton
import triton.language as tl


@triton.jit
def _skinny_kernel(a_ptr, b_ptr, c_ptr, N, K, lda, ldb, ldc, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    # One row of c for each program along axis 1; a vector times a matrix.
    row = tl.program_id(1).to(tl.int64)
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_N,), dtype=tl.float32)
    for k0 in range(0, K, BLOCK_K):
        ks = k0 + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + row * lda + ks, mask=ks < K, other=0.0).to(tl.float32)
        mask = (ks[:, None] < K) & (cols[None, :] < N)
        b = tl.load(b_ptr + ks[:, None].to(tl.int64) * ldb + cols[None, :], mask=mask, other=0.0).to(tl.float32)
        acc += tl.sum(a[:, None] * b, axis=0)
    tl.store(c_ptr + row * ldc + cols, acc.to(c_ptr.dtype.element_ty), mask=cols < N)


@triton.jit
def _dot_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    lda,
    ldb,
    ldc,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    EVEN_K: tl.constexpr,
    PRECISION: tl.constexpr,
):
    rm = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    # Clamped instead of masked, so that the loop only ever masks its last slice.
    am = tl.minimum(rm, M - 1).to(tl.int64)
    bn = tl.minimum(rn, N - 1)
    a_ptrs = a_ptr + am[:, None] * lda + rk[None, :]
    b_ptrs = b_ptr + rk[:, None].to(tl.int64) * ldb + bn[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k0 in range(0, K, BLOCK_K):
        if EVEN_K:
            a = tl.load(a_ptrs)
            b = tl.load(b_ptrs)
        else:
            a = tl.load(a_ptrs, mask=rk[None, :] < K - k0, other=0.0)
            b = tl.load(b_ptrs, mask=rk[:, None] < K - k0, other=0.0)
        acc = tl.dot(a, b, acc, input_precision=PRECISION)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * ldb
    mask = (rm[:, None] < M) & (rn[None, :] < N)
    tl.store(c_ptr + rm[:, None].to(tl.int64) * ldc + rn[None, :], acc.to(c_ptr.dtype.element_ty), mask=mask)


def _pick_tile(m, n, dtype):
    """Rows, columns and depth of a tile, warps, stages."""
    if dtype == torch.float32:
        return (64, 64, 16, 4, 3) if min(m, n) > 32 else (32, 32, 16, 4, 2)
    if m >= 1024 and n >= 1024:
        return 128, 256, 64, 8, 3
    if min(m, n) >= 128:
        return 128, 128, 32, 4, 4
    return 64, 64, 32, 4, 3


def matmul(a, b, c, m, n, k, a_row_stride, b_row_stride, c_row_stride):
    strides = (a_row_stride, b_row_stride, c_row_stride)
    if m <= 4:
        _skinny_kernel[(triton.cdiv(n, 64), m)](a, b, c, n, k, *strides, BLOCK_N=64, BLOCK_K=64)
        return
    bm, bn, bk, warps, stages = _pick_tile(m, n, a.dtype)
    _dot_kernel[(triton.cdiv(n, bn), triton.cdiv(m, bm))](
        a,
        b,
        c,
        m,
        n,
        k,
        *strides,
        BLOCK_M=bm,
        BLOCK_N=bn,
        BLOCK_K=bk,
        EVEN_K=k % bk == 0,
        PRECISION="ieee" if a.dtype == torch.float32 else "tf32",
        num_warps=warps,
        num_stages=stages,
    )
