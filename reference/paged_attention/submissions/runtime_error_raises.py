"""Fails when called: it knows no pages but those of 16 keys."""

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
    if page_size != 16:
        raise ValueError(f"pages have to have 16 keys, not {page_size}")
    out.zero_()
    lse.zero_()
