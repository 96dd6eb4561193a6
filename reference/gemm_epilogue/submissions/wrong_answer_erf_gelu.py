"""Wrong: GELU by the error function, which is another function than its tanh form."""

import torch
import triton
import triton.language as tl


@triton.jit
def _sigmoid(x):
    return 1.0 / (1.0 + tl.exp2(x * -1.4426950408889634))


@triton.jit
def _gelu(h):
    return 0.5 * h * (1.0 + tl.math.erf(h * 0.7071067811865476))


@triton.jit
def _silu(h):
    return h * _sigmoid(h)


@triton.jit
def _pointer_kernel(
    a_ptr,
    b_ptr,
    bias_ptr,
    residual_ptr,
    out_ptr,
    m,
    n,
    k,
    a_row_stride,
    b_row_stride,
    residual_row_stride,
    out_row_stride,
    GATED: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    rows = (tl.program_id(axis=0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    columns = (tl.program_id(axis=1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    h = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    value = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        a_mask = (rows < m) & (inner[None, :] < k)
        b_mask = (inner[:, None] < k) & (columns < n)
        b_tile = b_ptr + columns * b_row_stride + inner[:, None]
        a = tl.load(a_ptr + rows * a_row_stride + inner[None, :], mask=a_mask, other=0.0)
        h = tl.dot(a, tl.load(b_tile, mask=b_mask, other=0.0), h)
        if GATED:
            value = tl.dot(a, tl.load(b_tile + n * b_row_stride, mask=b_mask, other=0.0), value)
    h += tl.load(bias_ptr + columns, mask=columns < n, other=0.0).to(tl.float32)
    if GATED:
        value += tl.load(bias_ptr + n + columns, mask=columns < n, other=0.0).to(tl.float32)
        out = _silu(h) * value
    else:
        out = _gelu(h)
    mask = (rows < m) & (columns < n)
    out += tl.load(residual_ptr + rows * residual_row_stride + columns, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + rows * out_row_stride + columns, out.to(out_ptr.dtype.element_ty), mask=mask)


def gemm_epilogue(
    a: torch.Tensor,
    b: torch.Tensor,
    bias: torch.Tensor,
    residual: torch.Tensor,
    out: torch.Tensor,
    m: int,
    n: int,
    k: int,
    parts: int,
    a_row_stride: int,
    b_row_stride: int,
    residual_row_stride: int,
    out_row_stride: int,
) -> None:
    _pointer_kernel[(triton.cdiv(m, 64), triton.cdiv(n, 128))](
        a, b, bias, residual, out, m, n, k, a_row_stride, b_row_stride, residual_row_stride, out_row_stride,
        GATED=parts == 2, BLOCK_M=64, BLOCK_N=128, BLOCK_K=64, num_warps=4, num_stages=4,
    )  # fmt: skip
