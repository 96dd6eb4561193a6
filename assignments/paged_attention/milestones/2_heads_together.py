"""Paged attention, second milestone: a program for each sequence and key head, so that keys are read once.

Its rows are the query heads that share the key head, times the queries: enough for the tensor cores. A sequence's
length decides how long its programs take, and with few sequences most of the GPU has no work.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _attention_kernel(
    q_ptr, k_ptr, v_ptr, indptr_ptr, indices_ptr, last_ptr, out_ptr, lse_ptr,
    q_len, q_heads, kv_heads, dim, page_size, window, scale,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    kv_head, sequence, tile = tl.program_id(axis=0), tl.program_id(axis=1), tl.program_id(axis=2)
    start, stop = tl.load(indptr_ptr + sequence), tl.load(indptr_ptr + sequence + 1)
    kv_len = tl.where(stop > start, (stop - start - 1) * page_size + tl.load(last_ptr + sequence), 0)
    first, end = tl.where(window > 0, tl.maximum(kv_len - q_len + 1 - window, 0), 0), kv_len

    # A row is a query and one of the heads that share the key head.
    group = q_heads // kv_heads
    row = tile * BLOCK_M + tl.arange(0, BLOCK_M)
    query, head, there = row // group, kv_head * group + row % group, row < q_len * group
    last = kv_len - q_len + query
    earliest = tl.where(window > 0, last - window, -1)
    column, key = tl.arange(0, BLOCK_D), tl.arange(0, BLOCK_N)
    place = (sequence.to(tl.int64) * q_len + query) * q_heads + head
    q_mask = there[:, None] & (column[None, :] < dim)
    q = tl.load(q_ptr + place[:, None] * dim + column[None, :], mask=q_mask, other=0.0)
    largest = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    weighted = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    for block in range(first, end, BLOCK_N):
        keys = block + key
        page = tl.load(indices_ptr + start + keys // page_size, mask=keys < end, other=0).to(tl.int64)
        offsets = ((page * page_size + keys % page_size) * kv_heads + kv_head)[:, None] * dim + column[None, :]
        mask = (keys < end)[:, None] & (column[None, :] < dim)
        k = tl.load(k_ptr + offsets, mask=mask, other=0.0)
        seen = (keys < end)[None, :] & (keys[None, :] <= last[:, None]) & (keys[None, :] > earliest[:, None])
        scores = tl.where(seen, tl.dot(q, tl.trans(k)) * scale, float("-inf"))
        larger = tl.maximum(largest, tl.max(scores, axis=1))
        subtracted = tl.where(larger == float("-inf"), 0.0, larger)
        p, shrink = tl.exp2(scores - subtracted[:, None]), tl.exp2(largest - subtracted)
        total = total * shrink + tl.sum(p, axis=1)
        v = tl.load(v_ptr + offsets, mask=mask, other=0.0)
        weighted = tl.dot(p.to(v.dtype), v, weighted * shrink[:, None])
        largest = larger
    out = weighted * tl.where(total > 0, 1.0 / total, 0.0)[:, None]
    lse = tl.where(total > 0, (largest + tl.log2(total)) * 0.6931471805599453, float("-inf"))
    tl.store(out_ptr + place[:, None] * dim + column[None, :], out.to(out_ptr.dtype.element_ty), mask=q_mask)
    tl.store(lse_ptr + place, lse, mask=there)


def paged_attention(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    kv_indptr: torch.Tensor,
    kv_indices: torch.Tensor,
    last_page_len: torch.Tensor,
    out: torch.Tensor,
    lse: torch.Tensor,
    batch: int,
    q_len: int,
    q_heads: int,
    kv_heads: int,
    dim: int,
    page_size: int,
    entries: int,  # noqa: ARG001 - needed only by who splits sequences
    window: int,
    scale: float,
) -> None:
    rows = q_len * (q_heads // kv_heads)
    block_m = 16 if rows <= 16 else 64
    _attention_kernel[(kv_heads, batch, triton.cdiv(rows, block_m))](
        q, k_cache, v_cache, kv_indptr, kv_indices, last_page_len, out, lse,
        q_len, q_heads, kv_heads, dim, page_size, window, scale * 1.4426950408889634,
        BLOCK_M=block_m, BLOCK_N=64, BLOCK_D=max(16, triton.next_power_of_2(dim)), num_warps=4,
    )  # fmt: skip
