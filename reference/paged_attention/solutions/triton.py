"""Paged attention, the staff kernel: every sequence's keys in pieces of equal length, their results merged at the end.

Lengths differ, and only the device knows them. So the keys that each sequence's rows see are cut into pieces of
`piece` keys, and the pieces of all sequences are numbered through; the host launches as many programs as there can be
at most, and those without a piece end at once. A program finds its sequence from the lengths of all, then owns the
rows of one key head: the group of query heads that share it, times the queries. It walks over its keys BLOCK_N at a
time, looks up each one's page, and keeps the largest score, the sum and the weighted sum per row, as in rung 26. Its
result, divided by the sum, and the log-sum-exp go to scratch memory. A second kernel merges the pieces of a row:

    lse = log Σ exp(lse_i),    out = Σ exp(lse_i - lse) · out_i.

Pieces of equal length are what balances the load: neither the longest sequence nor the number of sequences decides how
long a call takes. Places without a key hold NaN, so values are masked when they are loaded: 0 · NaN is NaN.

Sources: Dao, Haziza, Massa and Sizov, "Flash-Decoding for long-context inference", 2023; Ye et al., "FlashInfer", 2025,
for the table of pages; Kwon et al., "Efficient memory management for large language model serving with PagedAttention",
2023.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _spans(indptr_ptr, last_ptr, batch, q_len, page_size, window, BLOCK_B: tl.constexpr):
    """For each sequence how many keys it has, and the first one that any of its rows sees."""
    b = tl.arange(0, BLOCK_B)
    start = tl.load(indptr_ptr + b, mask=b < batch, other=0)
    end = tl.load(indptr_ptr + b + 1, mask=b < batch, other=0)
    last = tl.load(last_ptr + b, mask=b < batch, other=0)
    kv_len = tl.where(end > start, (end - start - 1) * page_size + last, 0)
    first = tl.where(window > 0, tl.maximum(kv_len - q_len + 1 - window, 0), 0)
    return b, start, kv_len, first


@triton.jit
def _find(number, indptr_ptr, last_ptr, batch, q_len, page_size, window, piece, BLOCK_B: tl.constexpr):
    """The sequence of a piece, `batch` or more if there is none; its first key, its sequence's length and entry."""
    b, starts, lengths, firsts = _spans(indptr_ptr, last_ptr, batch, q_len, page_size, window, BLOCK_B)
    counts = (lengths - firsts + piece - 1) // piece
    ends = tl.cumsum(counts, axis=0)
    sequence = tl.sum((ends <= number).to(tl.int32), axis=0)
    mine = b == sequence
    within = number - tl.sum(tl.where(mine, ends - counts, 0), axis=0)
    start = tl.sum(tl.where(mine, firsts, 0), axis=0) + within * piece
    return sequence, start, tl.sum(tl.where(mine, lengths, 0), axis=0), tl.sum(tl.where(mine, starts, 0), axis=0)


# One program for all sizes: a kernel is compiled anew only for another width, type or alignment.
_SIZES = ["batch", "q_len", "q_heads", "kv_heads", "page_size", "window", "piece", "tiles"]


@triton.jit(do_not_specialize=_SIZES)
def _piece_kernel(
    q_ptr, k_ptr, v_ptr, indptr_ptr, indices_ptr, last_ptr, piece_out_ptr, piece_lse_ptr,
    batch, q_len, q_heads, kv_heads, dim, page_size, window, scale, piece, tiles,
    BLOCK_B: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    # Neighbours read the same pages: the key heads of a piece lie beside each other.
    program = tl.program_id(axis=0)
    tile, kv_head = program % tiles, program // tiles % kv_heads
    number = program // (tiles * kv_heads)
    sequence, start, kv_len, entry = _find(
        number, indptr_ptr, last_ptr, batch, q_len, page_size, window, piece, BLOCK_B
    )
    if sequence < batch:
        table = indices_ptr + entry
        # A row is a query and one of the heads that share the key head.
        group = q_heads // kv_heads
        row = tile * BLOCK_M + tl.arange(0, BLOCK_M)
        query, head = row // group, kv_head * group + row % group
        there = row < q_len * group
        last = kv_len - q_len + query
        earliest = tl.where(window > 0, last - window, -1)
        # What no row of this tile sees is not read.
        seen_by_last = kv_len - q_len + tl.minimum((tile * BLOCK_M + BLOCK_M - 1) // group, q_len - 1) + 1
        end = tl.minimum(start + piece, seen_by_last)

        column, key = tl.arange(0, BLOCK_D), tl.arange(0, BLOCK_N)
        place = (sequence.to(tl.int64) * q_len + query) * q_heads + head
        q_mask = there[:, None] & (column[None, :] < dim)
        q = tl.load(q_ptr + place[:, None] * dim + column[None, :], mask=q_mask, other=0.0)
        largest = tl.full((BLOCK_M,), float("-inf"), tl.float32)
        total = tl.zeros((BLOCK_M,), tl.float32)
        weighted = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
        for block in range(start, end, BLOCK_N):
            keys = block + key
            inside = keys < end
            page = tl.load(table + keys // page_size, mask=inside, other=0)
            slot = (page.to(tl.int64) * page_size + keys % page_size) * kv_heads + kv_head
            offsets = slot[:, None] * dim + column[None, :]
            mask = inside[:, None] & (column[None, :] < dim)
            k = tl.load(k_ptr + offsets, mask=mask, other=0.0)
            scores = tl.dot(q, tl.trans(k)) * scale
            seen = inside[None, :] & (keys[None, :] <= last[:, None]) & (keys[None, :] > earliest[:, None])
            scores = tl.where(seen, scores, float("-inf"))
            larger = tl.maximum(largest, tl.max(scores, axis=1))
            # A row that has seen no key yet has -inf everywhere, and -inf - -inf is no number.
            subtracted = tl.where(larger == float("-inf"), 0.0, larger)
            p = tl.exp2(scores - subtracted[:, None])
            shrink = tl.exp2(largest - subtracted)
            total = total * shrink + tl.sum(p, axis=1)
            v = tl.load(v_ptr + offsets, mask=mask, other=0.0)
            weighted = tl.dot(p.to(v.dtype), v, weighted * shrink[:, None])
            largest = larger
        sees = total > 0
        lse = tl.where(sees, largest + tl.log2(total), float("-inf"))
        out = weighted * tl.where(sees, 1.0 / total, 0.0)[:, None]
        scratch = (number.to(tl.int64) * q_len + query) * q_heads + head
        tl.store(piece_lse_ptr + scratch, lse, mask=there)
        tl.store(piece_out_ptr + scratch[:, None] * dim + column[None, :], out, mask=q_mask)


@triton.jit(do_not_specialize=["batch", "q_len", "q_heads", "page_size", "window", "piece"])
def _merge_kernel(
    piece_out_ptr, piece_lse_ptr, indptr_ptr, last_ptr, out_ptr, lse_ptr,
    batch, q_len, q_heads, dim, page_size, window, piece,
    BLOCK_B: tl.constexpr, BLOCK_P: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """A program merges the pieces of one row."""
    row = tl.program_id(axis=0)
    sequence, within = row // (q_len * q_heads), row % (q_len * q_heads)
    b, _starts, lengths, firsts = _spans(indptr_ptr, last_ptr, batch, q_len, page_size, window, BLOCK_B)
    counts = (lengths - firsts + piece - 1) // piece
    count = tl.sum(tl.where(b == sequence, counts, 0), axis=0)
    before = tl.sum(tl.where(b < sequence, counts, 0), axis=0)
    column = tl.arange(0, BLOCK_D)
    largest, total = float("-inf"), 0.0
    weighted = tl.zeros((BLOCK_D,), tl.float32)
    for block in range(0, count, BLOCK_P):
        number = block + tl.arange(0, BLOCK_P)
        place = (before + number).to(tl.int64) * (q_len * q_heads) + within
        lse = tl.load(piece_lse_ptr + place, mask=number < count, other=float("-inf"))
        mask = (number < count)[:, None] & (column < dim)[None, :]
        out = tl.load(piece_out_ptr + place[:, None] * dim + column[None, :], mask=mask, other=0.0)
        larger = tl.maximum(largest, tl.max(lse, axis=0))
        subtracted = tl.where(larger == float("-inf"), 0.0, larger)
        weight, shrink = tl.exp2(lse - subtracted), tl.exp2(largest - subtracted)
        total = total * shrink + tl.sum(weight, axis=0)
        weighted = weighted * shrink + tl.sum(out * weight[:, None], axis=0)
        largest = larger
    sees = total > 0
    answer = weighted * tl.where(sees, 1.0 / total, 0.0)
    tl.store(out_ptr + row.to(tl.int64) * dim + column, answer.to(out_ptr.dtype.element_ty), mask=column < dim)
    tl.store(lse_ptr + row, tl.where(sees, (largest + tl.log2(total)) * 0.6931471805599453, float("-inf")))


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
    block_m = 16 if rows <= 16 else 64
    tiles, block_n = triton.cdiv(rows, block_m), 64
    # More keys than this no sequence's rows can see, all sequences together.
    most = min(entries * page_size, batch * (window + q_len - 1)) if window else entries * page_size
    piece = _piece(most * kv_heads * tiles, q, block_n)
    pieces = most // piece + batch
    piece_out = torch.empty(pieces, q_len, q_heads, dim, dtype=torch.float32, device=q.device)
    piece_lse = torch.empty(pieces, q_len, q_heads, dtype=torch.float32, device=q.device)
    block_b, block_d = max(64, triton.next_power_of_2(batch)), max(16, triton.next_power_of_2(dim))
    _piece_kernel[(pieces * kv_heads * tiles,)](
        q, k_cache, v_cache, kv_indptr, kv_indices, last_page_len, piece_out, piece_lse,
        batch, q_len, q_heads, kv_heads, dim, page_size, window, scale * 1.4426950408889634, piece, tiles,
        BLOCK_B=block_b, BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_D=block_d, num_warps=4, num_stages=3,
    )  # fmt: skip
    _merge_kernel[(batch * q_len * q_heads,)](
        piece_out, piece_lse, kv_indptr, last_page_len, out, lse,
        batch, q_len, q_heads, dim, page_size, window, piece,
        BLOCK_B=block_b, BLOCK_P=64 if q.is_cuda else 16, BLOCK_D=block_d, num_warps=4,
    )  # fmt: skip


def _piece(work: int, q: torch.Tensor, block_n: int) -> int:
    """How many keys a program takes: about 12 pieces for each multiprocessor, and whole blocks."""
    if not q.is_cuda:
        return 2 * block_n  # The interpreter is slow: few programs, and still several pieces of a long sequence.
    programs = 12 * torch.cuda.get_device_properties(q.device).multi_processor_count
    return max(2, min(32, triton.cdiv(work // programs, block_n))) * block_n
