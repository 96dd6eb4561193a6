"""Paged attention: a program for each row of q, which looks up where its sequence's keys lie."""

import torch
import triton
import triton.language as tl


@triton.jit
def _attention_kernel(
    q_ptr, k_ptr, v_ptr, indptr_ptr, indices_ptr, last_ptr, out_ptr, lse_ptr,
    q_len, q_heads, kv_heads, dim, page_size, window, scale,
    BLOCK_N: tl.constexpr,  # page_size, rounded up to a power of two
    BLOCK_D: tl.constexpr,  # dim, rounded up to a power of two
):  # fmt: skip
    row = tl.program_id(axis=0)
    head, query, sequence = row % q_heads, row // q_heads % q_len, row // q_heads // q_len
    kv_head = head // (q_heads // kv_heads)  # a group of query heads shares a key head
    start, stop = tl.load(indptr_ptr + sequence), tl.load(indptr_ptr + sequence + 1)
    slot, column = tl.arange(0, BLOCK_N), tl.arange(0, BLOCK_D)
    q = tl.load(q_ptr + row.to(tl.int64) * dim + column, mask=column < dim, other=0.0).to(tl.float32)

    # Your part: this looks at the first page only, as if it were full, and lets every row see all of it. Walk over all
    # pages of the sequence, with an online softmax; the last page has last_page_len keys, and a sequence may have no
    # page. Then the later queries of a chunk, and `window`.
    page = tl.load(indices_ptr + start, mask=start < stop, other=0).to(tl.int64)
    seen = slot < page_size
    offsets = ((page * page_size + slot) * kv_heads + kv_head)[:, None] * dim + column[None, :]
    mask = seen[:, None] & (column[None, :] < dim)
    k = tl.load(k_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    v = tl.load(v_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    scores = tl.where(seen, tl.sum(k * q[None, :], axis=1) * scale, float("-inf"))
    largest = tl.max(scores, axis=0)
    p = tl.exp(scores - largest)
    total = tl.sum(p, axis=0)
    out = tl.sum(v * p[:, None], axis=0) / total

    tl.store(out_ptr + row.to(tl.int64) * dim + column, out.to(out_ptr.dtype.element_ty), mask=column < dim)
    tl.store(lse_ptr + row, largest + tl.log(total))


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
    # The judge calls this function. It writes its answers into `out` and `lse`; what it returns is ignored.
    _attention_kernel[(batch * q_len * q_heads,)](
        q, k_cache, v_cache, kv_indptr, kv_indices, last_page_len, out, lse,
        q_len, q_heads, kv_heads, dim, page_size, window, scale,
        BLOCK_N=triton.next_power_of_2(page_size), BLOCK_D=triton.next_power_of_2(dim), num_warps=1,
    )  # fmt: skip
