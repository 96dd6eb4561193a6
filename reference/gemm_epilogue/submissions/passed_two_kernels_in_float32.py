"""Honest: gate and values by two launches into float32 scratch memory, and a third for the rest."""

import torch
import triton
import triton.language as tl


@triton.jit
def _sigmoid(x):
    return 1.0 / (1.0 + tl.exp2(x * -1.4426950408889634))


@triton.jit
def _gelu(h):
    return h * _sigmoid(1.5957691216057308 * (h + 0.044715 * h * h * h))


@triton.jit
def _silu(h):
    return h * _sigmoid(h)


@triton.jit
def _linear_kernel(
    a_ptr,
    b_ptr,
    bias_ptr,
    h_ptr,
    m,
    n,
    k,
    a_row_stride,
    b_row_stride,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    rows = (tl.program_id(axis=0) * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    columns = (tl.program_id(axis=1) * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    bias = tl.load(bias_ptr + columns, mask=columns < n, other=0.0).to(tl.float32)
    h = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        a_mask = (rows < m) & (inner[None, :] < k)
        b_mask = (inner[:, None] < k) & (columns < n)
        a = tl.load(a_ptr + rows * a_row_stride + inner[None, :], mask=a_mask, other=0.0)
        b = tl.load(b_ptr + columns * b_row_stride + inner[:, None], mask=b_mask, other=0.0)
        h = tl.dot(a, b, h)
    tl.store(h_ptr + rows * n + columns, h + bias, mask=(rows < m) & (columns < n))


@triton.jit
def _rest_kernel(
    h_ptr, value_ptr, residual_ptr, out_ptr, n, count, residual_row_stride, out_row_stride, GATED: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    element = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    mask = element < count
    row, column = element // n, element % n
    h = tl.load(h_ptr + element, mask=mask, other=0.0)
    out = _silu(h) * tl.load(value_ptr + element, mask=mask, other=0.0) if GATED else _gelu(h)
    out += tl.load(residual_ptr + row * residual_row_stride + column, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * out_row_stride + column, out.to(out_ptr.dtype.element_ty), mask=mask)


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
    h = torch.empty(parts, m, n, dtype=torch.float32, device=a.device)
    grid = (triton.cdiv(m, 64), triton.cdiv(n, 64))
    for part in range(parts):
        _linear_kernel[grid](
            a, b[part], bias[part], h[part], m, n, k, a_row_stride, b_row_stride, BLOCK_M=64, BLOCK_N=64, BLOCK_K=64
        )
    _rest_kernel[(triton.cdiv(m * n, 4096),)](
        h[0], h[parts - 1], residual, out, n, m * n, residual_row_stride, out_row_stride, GATED=parts == 2, BLOCK=4096
    )
