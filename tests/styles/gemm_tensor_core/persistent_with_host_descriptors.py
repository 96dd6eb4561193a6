"""Persistent programs, one for each SM, with tensor descriptors made on the host, and pointers as a fallback."""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def _tile_of(tile, num_m, num_n, GROUP_M: tl.constexpr):
    in_group = GROUP_M * num_n
    first = (tile // in_group) * GROUP_M
    height = tl.minimum(num_m - first, GROUP_M)
    return first + (tile % in_group) % height, (tile % in_group) // height


@triton.jit
def _persistent_descriptor_kernel(
    a_desc,
    b_desc,
    c_desc,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    NUM_SMS: tl.constexpr,
    DTYPE: tl.constexpr,
):
    num_m = tl.cdiv(M, BLOCK_M)
    num_n = tl.cdiv(N, BLOCK_N)
    for tile in range(tl.program_id(0), num_m * num_n, NUM_SMS):
        pid_m, pid_n = _tile_of(tile, num_m, num_n, GROUP_M)
        off_m = pid_m * BLOCK_M
        off_n = pid_n * BLOCK_N
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for k in range(0, K, BLOCK_K):
            a = a_desc.load([off_m, k])
            b = b_desc.load([off_n, k])
            acc = tl.dot(a, b.T, acc)
        c_desc.store([off_m, off_n], acc.to(DTYPE))


@triton.jit
def _pointer_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, lda, ldb, ldc, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    pid_m, pid_n = _tile_of(tl.program_id(0), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), 8)
    rm = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
    rn = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        rk = k + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + rm[:, None] * lda + rk[None, :], mask=(rm[:, None] < M) & (rk[None, :] < K), other=0.0)
        b = tl.load(b_ptr + rn[None, :] * ldb + rk[:, None], mask=(rn[None, :] < N) & (rk[:, None] < K), other=0.0)
        acc = tl.dot(a, b, acc)
    c_mask = (rm[:, None] < M) & (rn[None, :] < N)
    tl.store(c_ptr + rm[:, None] * ldc + rn[None, :], acc.to(c_ptr.dtype.element_ty), mask=c_mask)


def _describable(t, stride):
    """Whether rows begin at multiples of 16 bytes."""
    return t.data_ptr() % 16 == 0 and (stride * t.element_size()) % 16 == 0


def gemm(a, b, c, m, n, k, a_row_stride, b_row_stride, c_row_stride):
    fits = _describable(a, a_row_stride) and _describable(b, b_row_stride) and _describable(c, c_row_stride)
    # A descriptor stores whole 16 bytes, so that the rows of c have to end at such a multiple too.
    if not fits or n % 8 != 0 or min(m, n, k) < 16:
        grid = (triton.cdiv(m, 64) * triton.cdiv(n, 64),)
        _pointer_kernel[grid](
            a, b, c, m, n, k, a_row_stride, b_row_stride, c_row_stride, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32, num_warps=4
        )
        return

    BLOCK_M, BLOCK_N, BLOCK_K = 128, 256, 64
    num_sms = torch.cuda.get_device_properties(a.device).multi_processor_count if a.is_cuda else 2
    a_desc = TensorDescriptor(a, [m, k], [a_row_stride, 1], [BLOCK_M, BLOCK_K])
    b_desc = TensorDescriptor(b, [n, k], [b_row_stride, 1], [BLOCK_N, BLOCK_K])
    c_desc = TensorDescriptor(c, [m, n], [c_row_stride, 1], [BLOCK_M, BLOCK_N])
    tiles = triton.cdiv(m, BLOCK_M) * triton.cdiv(n, BLOCK_N)
    programs = min(num_sms, tiles)
    _persistent_descriptor_kernel[(programs,)](
        a_desc,
        b_desc,
        c_desc,
        m,
        n,
        k,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        BLOCK_K=BLOCK_K,
        GROUP_M=8,
        NUM_SMS=programs,
        DTYPE=tl.float16 if c.dtype == torch.float16 else tl.bfloat16,
        num_stages=3,
        num_warps=8,
    )
