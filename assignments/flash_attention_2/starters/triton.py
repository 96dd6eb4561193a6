"""Attention: a program per tile of rows of q, which never leaves its scores in memory."""

import torch
import triton
import triton.language as tl


@triton.jit
def _attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, q_heads, kv_heads, q_len, kv_len, dim, scale,
    q_row_stride, k_row_stride, v_row_stride, out_row_stride,
    CAUSAL: tl.constexpr,  # whether a row sees only the keys up to its own
    BLOCK_M: tl.constexpr,  # rows of q per program
    BLOCK_N: tl.constexpr,  # keys per block
    BLOCK_D: tl.constexpr,  # dim, rounded up to a power of two
):  # fmt: skip
    first, head = tl.program_id(axis=0) * BLOCK_M, tl.program_id(axis=1)
    # A group of query heads shares a key head.
    kv_head = head // q_heads * kv_heads + head % q_heads // (q_heads // kv_heads)
    row, column, key = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_D), tl.arange(0, BLOCK_N)
    rows = first + row
    q_start = q_ptr + (head.to(tl.int64) * q_len + first) * q_row_stride
    q_mask = (rows[:, None] < q_len) & (column[None, :] < dim)
    q = tl.load(q_start + row[:, None] * q_row_stride + column[None, :], mask=q_mask, other=0.0)
    k_start = k_ptr + kv_head.to(tl.int64) * kv_len * k_row_stride
    v_start = v_ptr + kv_head.to(tl.int64) * kv_len * v_row_stride

    # Your part: this looks at the first block of keys only, and lets every row see all of it. Walk over all blocks; keep
    # the largest score and the sum of each row, and rescale what you have when the largest score grows. Then `causal`.
    mask = (key[:, None] < kv_len) & (column[None, :] < dim)
    k = tl.load(k_start + key[:, None] * k_row_stride + column[None, :], mask=mask, other=0.0)
    v = tl.load(v_start + key[:, None] * v_row_stride + column[None, :], mask=mask, other=0.0)
    scores = tl.where(key[None, :] < kv_len, tl.dot(q, tl.trans(k)) * scale, float("-inf"))
    largest = tl.max(scores, axis=1)
    p = tl.exp(scores - largest[:, None])
    total = tl.sum(p, axis=1)
    out = tl.dot(p.to(v.dtype), v) / total[:, None]

    tl.store(lse_ptr + head.to(tl.int64) * q_len + rows, largest + tl.log(total), mask=rows < q_len)
    out_start = out_ptr + (head.to(tl.int64) * q_len + first) * out_row_stride
    tl.store(out_start + row[:, None] * out_row_stride + column[None, :], out.to(out_ptr.dtype.element_ty), mask=q_mask)


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
    # The judge calls this function. It writes its answers into `out` and `lse`; what it returns is ignored.
    _attention_kernel[(triton.cdiv(q_len, 64), batch * q_heads)](
        q, k, v, out, lse, q_heads, kv_heads, q_len, kv_len, dim, scale,
        q_row_stride, k_row_stride, v_row_stride, out_row_stride,
        CAUSAL=bool(causal), BLOCK_M=64, BLOCK_N=64, BLOCK_D=max(16, triton.next_power_of_2(dim)),
    )  # fmt: skip
