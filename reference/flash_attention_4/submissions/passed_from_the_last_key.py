"""Right: from the last block of keys to the first, blocks are narrow, and all exponentials are of one kind."""

import torch
import triton
import triton.language as tl


@triton.jit
def _attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, max_ptr, q_heads, kv_heads, q_len, kv_len, dim, scale,
    q_row_stride, k_row_stride, v_row_stride, out_row_stride,
    CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    first, head = tl.program_id(axis=0) * BLOCK_M, tl.program_id(axis=1)
    kv_head = head // q_heads * kv_heads + head % q_heads // (q_heads // kv_heads)
    row, column, key = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_D), tl.arange(0, BLOCK_N)
    rows = first + row
    q_start = q_ptr + (head.to(tl.int64) * q_len + first) * q_row_stride
    q_mask = (rows[:, None] < q_len) & (column[None, :] < dim)
    q = tl.load(q_start + row[:, None] * q_row_stride + column[None, :], mask=q_mask, other=0.0)
    k_start = k_ptr + kv_head.to(tl.int64) * kv_len * k_row_stride
    v_start = v_ptr + kv_head.to(tl.int64) * kv_len * v_row_stride
    last, end = tl.full((BLOCK_M,), kv_len - 1, tl.int32), kv_len
    if CAUSAL:
        last = tl.minimum(rows + kv_len - q_len, kv_len - 1)
        end = tl.minimum(tl.maximum(first + BLOCK_M + kv_len - q_len, 0), kv_len)
    largest = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    weighted = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    for start in range(0, end, BLOCK_N):
        keys = tl.cdiv(end, BLOCK_N) * BLOCK_N - BLOCK_N - start + key
        mask = (keys[:, None] < kv_len) & (column[None, :] < dim)
        k = tl.load(k_start + keys[:, None] * k_row_stride + column[None, :], mask=mask, other=0.0)
        scores = tl.where(keys[None, :] <= last[:, None], tl.dot(q, tl.trans(k)) * scale, float("-inf"))
        larger = tl.maximum(largest, tl.max(scores, axis=1))
        behind = larger > largest + 8.0
        if tl.max(behind.to(tl.int32), axis=0) > 0:
            raised = tl.where(behind, larger, largest)
            shrink = tl.exp2(largest - tl.where(raised == float("-inf"), 0.0, raised))
            total, weighted, largest = total * shrink, weighted * shrink[:, None], raised
        p = tl.exp2(scores - tl.where(largest == float("-inf"), 0.0, largest)[:, None])
        total = total + tl.sum(p, axis=1)
        v = tl.load(v_start + keys[:, None] * v_row_stride + column[None, :], mask=mask, other=0.0)
        weighted = tl.dot(p.to(v.dtype), v, weighted)
    lse = tl.where(total > 0, (largest + tl.log2(total)) * 0.6931471805599453, float("-inf"))
    tl.store(lse_ptr + head.to(tl.int64) * q_len + rows, lse, mask=rows < q_len)
    tl.store(max_ptr + head.to(tl.int64) * q_len + rows, largest, mask=rows < q_len)
    out = weighted * tl.where(total > 0, 1.0 / total, 0.0)[:, None]
    out_start = out_ptr + (head.to(tl.int64) * q_len + first) * out_row_stride
    tl.store(out_start + row[:, None] * out_row_stride + column[None, :], out.to(out_ptr.dtype.element_ty), mask=q_mask)


def attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    out: torch.Tensor,
    lse: torch.Tensor,
    row_max: torch.Tensor,
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
    block_m, block_n, warps = (64, 64, 4) if q.is_cuda else (64, 32, 4)
    _attention_kernel[(triton.cdiv(q_len, block_m), batch * q_heads)](
        q, k, v, out, lse, row_max, q_heads, kv_heads, q_len, kv_len, dim, scale * 1.4426950408889634,
        q_row_stride, k_row_stride, v_row_stride, out_row_stride,
        CAUSAL=bool(causal), BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_D=max(16, triton.next_power_of_2(dim)),
        num_warps=warps,
    )  # fmt: skip
