"""Paged attention, first milestone: a program for each row of q, which walks over its sequence page by page.

The query heads of a group read the same keys, each for itself; no tensor core is used.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _attention_kernel(
    q_ptr, k_ptr, v_ptr, indptr_ptr, indices_ptr, last_ptr, out_ptr, lse_ptr,
    q_len, q_heads, kv_heads, dim, page_size, window, scale, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(axis=0)
    head, query = row % q_heads, row // q_heads % q_len
    sequence, kv_head = row // q_heads // q_len, head // (q_heads // kv_heads)
    start, stop = tl.load(indptr_ptr + sequence), tl.load(indptr_ptr + sequence + 1)
    kv_len = tl.where(stop > start, (stop - start - 1) * page_size + tl.load(last_ptr + sequence), 0)
    last = kv_len - q_len + query
    first = tl.where(window > 0, tl.maximum(last - window + 1, 0), 0)
    slot, column = tl.arange(0, BLOCK_N), tl.arange(0, BLOCK_D)
    q = tl.load(q_ptr + row.to(tl.int64) * dim + column, mask=column < dim, other=0.0).to(tl.float32)
    largest, total = float("-inf"), 0.0
    weighted = tl.zeros((BLOCK_D,), tl.float32)
    for page_number in range(first // page_size, (last + page_size) // page_size):
        page = tl.load(indices_ptr + start + page_number).to(tl.int64)
        keys = page_number * page_size + slot
        seen = (slot < page_size) & (keys >= first) & (keys <= last)
        offsets = ((page * page_size + slot) * kv_heads + kv_head)[:, None] * dim + column[None, :]
        mask = seen[:, None] & (column[None, :] < dim)
        k = tl.load(k_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
        scores = tl.where(seen, tl.sum(k * q[None, :], axis=1) * scale, float("-inf"))
        larger = tl.maximum(largest, tl.max(scores, axis=0))
        p, shrink = tl.exp2(scores - larger), tl.exp2(largest - larger)
        v = tl.load(v_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
        total = total * shrink + tl.sum(p, axis=0)
        weighted = weighted * shrink + tl.sum(v * p[:, None], axis=0)
        largest = larger
    out = weighted * tl.where(total > 0, 1.0 / total, 0.0)
    tl.store(out_ptr + row.to(tl.int64) * dim + column, out.to(out_ptr.dtype.element_ty), mask=column < dim)
    tl.store(lse_ptr + row, tl.where(total > 0, (largest + tl.log2(total)) * 0.6931471805599453, float("-inf")))


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
    _attention_kernel[(batch * q_len * q_heads,)](
        q, k_cache, v_cache, kv_indptr, kv_indices, last_page_len, out, lse,
        q_len, q_heads, kv_heads, dim, page_size, window, scale * 1.4426950408889634,
        BLOCK_N=triton.next_power_of_2(page_size), BLOCK_D=triton.next_power_of_2(dim), num_warps=1,
    )  # fmt: skip
