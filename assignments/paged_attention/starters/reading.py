"""Paged attention in plain PyTorch, to read beside the starter: program by program, and wrong in the same places."""

import torch


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
    # One program for each row of q.
    for program in range(batch * q_len * q_heads):
        head, query, sequence = program % q_heads, program // q_heads % q_len, program // q_heads // q_len
        kv_head = head // (q_heads // kv_heads)  # a group of query heads shares a key head
        start, stop = int(kv_indptr[sequence]), int(kv_indptr[sequence + 1])
        # Your part: this looks at the first page only, as if it were full, and lets every row see all of it. Walk over
        # all pages of the sequence, with an online softmax; the last page has last_page_len keys, and a sequence may
        # have no page. Then the later queries of a chunk, and `window`.
        page = int(kv_indices[start]) if start < stop else 0
        k, v = k_cache[page, :, kv_head].float(), v_cache[page, :, kv_head].float()
        scores = k @ q[sequence, query, head].float() * scale
        largest = scores.max()
        p = torch.exp(scores - largest)
        total = p.sum()

        out[sequence, query, head] = (p @ v / total).to(out.dtype)
        lse[sequence, query, head] = largest + torch.log(total)
