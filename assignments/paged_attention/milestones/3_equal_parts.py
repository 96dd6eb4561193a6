"""Paged attention, third milestone: every sequence's keys in as many equal parts, merged by a second kernel.

A long sequence now keeps many programs busy. With lengths that differ the longest sequence still has the largest parts.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _part_kernel(
    q_ptr, k_ptr, v_ptr, indptr_ptr, indices_ptr, last_ptr, part_out_ptr, part_lse_ptr,
    q_len, q_heads, kv_heads, dim, page_size, window, scale, parts, tiles,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    kv_head, sequence = tl.program_id(axis=0), tl.program_id(axis=1)
    tile, part = tl.program_id(axis=2) % tiles, tl.program_id(axis=2) // tiles
    start, stop = tl.load(indptr_ptr + sequence), tl.load(indptr_ptr + sequence + 1)
    kv_len = tl.where(stop > start, (stop - start - 1) * page_size + tl.load(last_ptr + sequence), 0)
    first = tl.where(window > 0, tl.maximum(kv_len - q_len + 1 - window, 0), 0)
    length = tl.cdiv(tl.cdiv(kv_len - first, parts), BLOCK_N) * BLOCK_N
    first += part * length
    end = tl.minimum(first + length, kv_len)

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
    scratch = place * parts + part
    tl.store(part_out_ptr + scratch[:, None] * dim + column[None, :], out, mask=q_mask)
    tl.store(part_lse_ptr + scratch, tl.where(total > 0, largest + tl.log2(total), float("-inf")), mask=there)


@triton.jit
def _merge_kernel(
    part_out_ptr, part_lse_ptr, out_ptr, lse_ptr, dim, parts, BLOCK_P: tl.constexpr, BLOCK_D: tl.constexpr
):
    """A program merges the parts of one row."""
    row, part, column = tl.program_id(axis=0).to(tl.int64), tl.arange(0, BLOCK_P), tl.arange(0, BLOCK_D)
    lse = tl.load(part_lse_ptr + row * parts + part, mask=part < parts, other=float("-inf"))
    mask = (part < parts)[:, None] & (column < dim)[None, :]
    out = tl.load(part_out_ptr + (row * parts + part)[:, None] * dim + column[None, :], mask=mask, other=0.0)
    largest = tl.max(lse, axis=0)
    weight = tl.exp2(lse - tl.where(largest == float("-inf"), 0.0, largest))
    total = tl.sum(weight, axis=0)
    answer = tl.sum(out * weight[:, None], axis=0) * tl.where(total > 0, 1.0 / total, 0.0)
    tl.store(out_ptr + row * dim + column, answer.to(out_ptr.dtype.element_ty), mask=column < dim)
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
    entries: int,
    window: int,
    scale: float,
) -> None:
    rows = q_len * (q_heads // kv_heads)
    block_m, block_d = 16 if rows <= 16 else 64, max(16, triton.next_power_of_2(dim))
    tiles = triton.cdiv(rows, block_m)
    # Some 8 programs for each multiprocessor of a large GPU; parts of one block at least.
    parts = min(triton.cdiv(1024, batch * kv_heads * tiles), triton.cdiv(entries * page_size, 64 * batch), 128)
    part_out = torch.empty(batch, q_len, q_heads, parts, dim, dtype=torch.float32, device=q.device)
    part_lse = torch.empty(batch, q_len, q_heads, parts, dtype=torch.float32, device=q.device)
    _part_kernel[(kv_heads, batch, tiles * parts)](
        q, k_cache, v_cache, kv_indptr, kv_indices, last_page_len, part_out, part_lse,
        q_len, q_heads, kv_heads, dim, page_size, window, scale * 1.4426950408889634, parts, tiles,
        BLOCK_M=block_m, BLOCK_N=64, BLOCK_D=block_d, num_warps=4,
    )  # fmt: skip
    _merge_kernel[(batch * q_len * q_heads,)](
        part_out, part_lse, out, lse, dim, parts, BLOCK_P=triton.next_power_of_2(parts), BLOCK_D=block_d, num_warps=4
    )
