"""One fused kernel whose activation is a constexpr string; grouped tiles, two accumulators when there is a gate."""

import torch
import triton
import triton.language as tl


@triton.jit
def _sigmoid(x):
    return 1.0 / (1.0 + tl.exp(-x))


@triton.jit
def _gelu_tanh(x):
    inner = 0.7978845608028654 * (x + 0.044715 * x * x * x)
    return x * _sigmoid(2.0 * inner)


@triton.jit
def linear_act_kernel(
    a_ptr,
    b_ptr,
    bias_ptr,
    res_ptr,
    out_ptr,
    M,
    N,
    K,
    lda,
    ldb,
    ldr,
    ldo,
    ACTIVATION: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    EVEN_K: tl.constexpr,
):
    pid = tl.program_id(0)
    num_m = tl.cdiv(M, BLOCK_M)
    num_n = tl.cdiv(N, BLOCK_N)
    group = pid // (GROUP_M * num_n)
    height = min(num_m - group * GROUP_M, GROUP_M)
    pid_m = group * GROUP_M + (pid % (GROUP_M * num_n)) % height
    pid_n = (pid % (GROUP_M * num_n)) // height

    rm = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    # Wrapped around instead of masked; what is wrapped is never stored.
    am = (rm % M).to(tl.int64)
    bn = (rn % N).to(tl.int64)
    a_ptrs = a_ptr + am[:, None] * lda + rk[None, :]
    b_ptrs = b_ptr + bn[None, :] * ldb + rk[:, None]
    g_ptrs = b_ptr + (bn[None, :] + N) * ldb + rk[:, None]

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    if ACTIVATION == "swiglu":
        gate = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k0 in range(0, K, BLOCK_K):
        if EVEN_K:
            a = tl.load(a_ptrs)
            b = tl.load(b_ptrs)
        else:
            a = tl.load(a_ptrs, mask=rk[None, :] < K - k0, other=0.0)
            b = tl.load(b_ptrs, mask=rk[:, None] < K - k0, other=0.0)
        acc = tl.dot(a, b, acc)
        if ACTIVATION == "swiglu":
            if EVEN_K:
                g = tl.load(g_ptrs)
            else:
                g = tl.load(g_ptrs, mask=rk[:, None] < K - k0, other=0.0)
            gate = tl.dot(a, g, gate)
            g_ptrs += BLOCK_K
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K

    acc += tl.load(bias_ptr + rn, mask=rn < N, other=0.0).to(tl.float32)[None, :]
    if ACTIVATION == "gelu":
        y = _gelu_tanh(acc)
    else:
        gate += tl.load(bias_ptr + N + rn, mask=rn < N, other=0.0).to(tl.float32)[None, :]
        y = acc * _sigmoid(acc) * gate

    mask = (rm[:, None] < M) & (rn[None, :] < N)
    rows = rm[:, None].to(tl.int64)
    y += tl.load(res_ptr + rows * ldr + rn[None, :], mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + rows * ldo + rn[None, :], y.to(out_ptr.dtype.element_ty), mask=mask)


def gemm_epilogue(
    a, b, bias, residual, out, m, n, k, parts, a_row_stride, b_row_stride, residual_row_stride, out_row_stride
):
    act = "gelu" if parts == 1 else "swiglu"
    BLOCK_M, BLOCK_N, BLOCK_K = (128, 256, 64) if act == "gelu" else (128, 128, 64)
    if m <= 64 or n <= 64:
        BLOCK_M, BLOCK_N, BLOCK_K = 64, 64, 32
    grid = (triton.cdiv(m, BLOCK_M) * triton.cdiv(n, BLOCK_N),)
    linear_act_kernel[grid](
        a,
        b,
        bias,
        residual,
        out,
        m,
        n,
        k,
        a_row_stride,
        b_row_stride,
        residual_row_stride,
        out_row_stride,
        ACTIVATION=act,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        BLOCK_K=BLOCK_K,
        GROUP_M=8,
        EVEN_K=k % BLOCK_K == 0,
        num_warps=8 if BLOCK_M == 128 else 4,
        num_stages=3,
    )
