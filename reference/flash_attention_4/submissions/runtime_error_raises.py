"""Fails when called: it knows no lengths but multiples of 64."""

import torch


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
    if q_len % 64 or kv_len % 64:
        raise ValueError(f"lengths have to be multiples of 64, got {q_len} and {kv_len}")
    out.zero_()
    lse.zero_()
    row_max.zero_()
