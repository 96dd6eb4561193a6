"""Attention, first milestone: a program per row of q, which walks over all keys without tensor cores.

Every row reads all keys and values of its head again; a single row is not a tile.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, q_heads, kv_heads, q_len, kv_len, dim, scale,
    q_row_stride, k_row_stride, v_row_stride, out_row_stride,
    CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    first, head = tl.program_id(axis=0) * BLOCK_M, tl.program_id(axis=1)
    kv_head = head // q_heads * kv_heads + head % q_heads // (q_heads // kv_heads)
    rows, column, key = first + tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_D), tl.arange(0, BLOCK_N)
    places = head.to(tl.int64) * q_len + rows
    q_mask = (rows[:, None] < q_len) & (column[None, :] < dim)
    q = tl.load(q_ptr + places[:, None] * q_row_stride + column[None, :], mask=q_mask, other=0.0).to(tl.float32)
    k_start = k_ptr + kv_head.to(tl.int64) * kv_len * k_row_stride
    v_start = v_ptr + kv_head.to(tl.int64) * kv_len * v_row_stride
    seen = tl.full((BLOCK_M,), kv_len, tl.int32)
    if CAUSAL:
        seen = tl.minimum(tl.maximum(rows + 1 + kv_len - q_len, 0), kv_len)
    largest = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    weighted = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    for start in range(0, tl.max(seen, axis=0), BLOCK_N):
        keys = start + key
        mask = (keys[:, None] < kv_len) & (column[None, :] < dim)
        k = tl.load(k_start + keys[:, None] * k_row_stride + column[None, :], mask=mask, other=0.0).to(tl.float32)
        scores = tl.sum(q[:, None, :] * k[None, :, :], axis=2) * scale
        scores = tl.where(keys[None, :] < seen[:, None], scores, float("-inf"))
        larger = tl.maximum(largest, tl.max(scores, axis=1))
        subtracted = tl.where(larger == float("-inf"), 0.0, larger)
        p, shrink = tl.exp2(scores - subtracted[:, None]), tl.exp2(largest - subtracted)
        v = tl.load(v_start + keys[:, None] * v_row_stride + column[None, :], mask=mask, other=0.0).to(tl.float32)
        weighted = weighted * shrink[:, None] + tl.sum(p[:, :, None] * v[None, :, :], axis=1)
        total = total * shrink + tl.sum(p, axis=1)
        largest = larger
    lse = tl.where(total > 0, (largest + tl.log2(total)) * 0.6931471805599453, float("-inf"))
    tl.store(lse_ptr + places, lse, mask=rows < q_len)
    out = weighted * tl.where(total > 0, 1.0 / total, 0.0)[:, None]
    tl.store(
        out_ptr + places[:, None] * out_row_stride + column[None, :], out.to(out_ptr.dtype.element_ty), mask=q_mask
    )


def attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    out: torch.Tensor,
    lse: torch.Tensor,
    batch: int,
    q_heads: int,
    kv_heads: int,
    q_len: int,
    kv_len: int,
    dim: int,
    causal: int,
    scale: float,
    q_row_stride: int,
    k_row_stride: int,
    v_row_stride: int,
    out_row_stride: int,
) -> None:
    # One row per program. The interpreter pays per operation, not per element: it gets several.
    block_m, block_n = (1, 32) if q.is_cuda else (32, 64)
    _attention_kernel[(triton.cdiv(q_len, block_m), batch * q_heads)](
        q, k, v, out, lse, q_heads, kv_heads, q_len, kv_len, dim, scale * 1.4426950408889634,
        q_row_stride, k_row_stride, v_row_stride, out_row_stride,
        CAUSAL=bool(causal), BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_D=triton.next_power_of_2(dim),
    )  # fmt: skip
