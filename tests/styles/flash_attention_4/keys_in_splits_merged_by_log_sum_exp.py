"""Decoding style: splits of the keys work on their own, and a second kernel merges them by log-sum-exp."""

import torch
import triton
import triton.language as tl


@triton.jit
def _split_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    part_ptr,
    part_lse_ptr,
    part_max_ptr,
    q_heads,
    kv_heads,
    q_len,
    kv_len,
    dim,
    scale_log2,
    ldq,
    ldk,
    ldv,
    keys_per_split,
    rows_in_all,
    CAUSAL: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    head = tl.program_id(1).to(tl.int64)
    split = tl.program_id(2)
    kv_head = head // q_heads * kv_heads + head % q_heads // (q_heads // kv_heads)
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.arange(0, BLOCK_D)
    lanes = tl.arange(0, BLOCK_N)
    inside = (rows[:, None] < q_len) & (cols[None, :] < dim)
    q = tl.load(q_ptr + (head * q_len + rows[:, None]) * ldq + cols[None, :], mask=inside, other=0.0)
    k_ptr += kv_head * kv_len * ldk
    v_ptr += kv_head * kv_len * ldv

    begin = split * keys_per_split
    end = tl.minimum(begin + keys_per_split, kv_len)
    seen = tl.zeros((BLOCK_M,), tl.int32) + kv_len
    if CAUSAL:
        seen = tl.minimum(rows + 1 + kv_len - q_len, kv_len)
        end = tl.minimum(end, tl.program_id(0) * BLOCK_M + BLOCK_M + kv_len - q_len)

    m = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    peak = m
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    for start in range(begin, end, BLOCK_N):
        keys = start + lanes
        there = (keys[:, None] < kv_len) & (cols[None, :] < dim)
        k = tl.load(k_ptr + keys[:, None].to(tl.int64) * ldk + cols[None, :], mask=there, other=0.0)
        s = tl.dot(q, tl.trans(k)) * scale_log2
        # A split ends at its own last key, whatever the block would reach.
        visible = (keys[None, :] < seen[:, None]) & (keys[None, :] < begin + keys_per_split)
        s = tl.where(visible, s, float("-inf"))
        new = tl.max(s, axis=1)
        peak = tl.maximum(peak, new)
        new = tl.where(new > m + 8.0, new, m)
        base = tl.where(new == float("-inf"), 0.0, new)
        shrink = tl.exp2(m - base)
        p = tl.exp2(s - base[:, None])
        v = tl.load(v_ptr + keys[:, None].to(tl.int64) * ldv + cols[None, :], mask=there, other=0.0)
        total = total * shrink + tl.sum(p, axis=1)
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None])
        m = new

    some = total > 0.0
    safe = tl.where(some, total, 1.0)
    # Row numbers over all splits, heads and rows of q.
    place = split.to(tl.int64) * rows_in_all + head * q_len + rows
    tl.store(part_lse_ptr + place, tl.where(some, m + tl.log2(safe), float("-inf")), mask=rows < q_len)
    # The first split begins as the row does. Of the others the merge asks whether any block is above what it keeps.
    tl.store(part_max_ptr + place, tl.where(split == 0, m, peak), mask=rows < q_len)
    tl.store(part_ptr + place[:, None] * dim + cols[None, :], acc / safe[:, None], mask=inside)


@triton.jit
def _merge_kernel(
    part_ptr,
    part_lse_ptr,
    part_max_ptr,
    out_ptr,
    lse_ptr,
    row_max_ptr,
    rows_in_all,
    dim,
    ldo,
    SPLITS: tl.constexpr,
    BLOCK_R: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_R + tl.arange(0, BLOCK_R)
    cols = tl.arange(0, BLOCK_D)
    there = rows < rows_in_all
    top = tl.full((BLOCK_R,), float("-inf"), tl.float32)
    for split in tl.static_range(SPLITS):
        top = tl.maximum(top, tl.load(part_lse_ptr + split * rows_in_all + rows, mask=there, other=float("-inf")))
    base = tl.where(top == float("-inf"), 0.0, top)
    kept = tl.full((BLOCK_R,), float("-inf"), tl.float32)
    for split in tl.static_range(SPLITS):
        m = tl.load(part_max_ptr + split * rows_in_all + rows, mask=there, other=float("-inf"))
        kept = tl.where(m > kept + 8.0, m, kept)
    tl.store(row_max_ptr + rows, kept, mask=there)
    total = tl.zeros((BLOCK_R,), tl.float32)
    acc = tl.zeros((BLOCK_R, BLOCK_D), tl.float32)
    for split in tl.static_range(SPLITS):
        lse = tl.load(part_lse_ptr + split * rows_in_all + rows, mask=there, other=float("-inf"))
        weight = tl.exp2(lse - base)
        total += weight
        part = part_ptr + (split * rows_in_all + rows[:, None]) * dim + cols[None, :]
        acc += weight[:, None] * tl.load(part, mask=there[:, None] & (cols[None, :] < dim), other=0.0)
    some = total > 0.0
    safe = tl.where(some, total, 1.0)
    tl.store(lse_ptr + rows, tl.where(some, (top + tl.log2(safe)) * 0.6931471805599453, float("-inf")), mask=there)
    out = (acc / safe[:, None]).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + rows[:, None] * ldo + cols[None, :], out, mask=there[:, None] & (cols[None, :] < dim))


def attention(
    q, k, v, out, lse, row_max, batch, q_heads, kv_heads, q_len, kv_len, dim, causal, scale,
    q_row_stride, k_row_stride, v_row_stride, out_row_stride,
):  # fmt: skip
    block_m, block_n = (128, 64) if q_len > 64 else (32, 32)
    block_d = max(16, triton.next_power_of_2(dim))
    rows_in_all = batch * q_heads * q_len
    splits = min(4, triton.cdiv(kv_len, block_n))
    keys_per_split = triton.cdiv(kv_len, splits)
    part = torch.empty((splits, rows_in_all, dim), dtype=torch.float32, device=q.device)
    part_lse = torch.empty((splits, rows_in_all), dtype=torch.float32, device=q.device)
    part_max = torch.empty_like(part_lse)
    _split_kernel[(triton.cdiv(q_len, block_m), batch * q_heads, splits)](
        q, k, v, part, part_lse, part_max, q_heads, kv_heads, q_len, kv_len, dim, scale * 1.4426950408889634,
        q_row_stride, k_row_stride, v_row_stride, keys_per_split, rows_in_all,
        CAUSAL=bool(causal), BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_D=block_d, num_warps=8 if block_m == 128 else 4,
    )  # fmt: skip
    _merge_kernel[(triton.cdiv(rows_in_all, 16),)](
        part,
        part_lse,
        part_max,
        out,
        lse,
        row_max,
        rows_in_all,
        dim,
        out_row_stride,
        SPLITS=splits,
        BLOCK_R=16,
        BLOCK_D=block_d,
    )
