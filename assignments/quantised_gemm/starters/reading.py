"""Quantised GEMM in plain PyTorch, to read beside the starter: slice by slice, and wrong in the same places."""

import torch

BLOCK_K = 64


def quantised_gemm(
    a: torch.Tensor,
    b: torch.Tensor,
    a_scale: torch.Tensor,
    b_scale: torch.Tensor,
    out: torch.Tensor,
    m: int,
    n: int,
    k: int,
    a_row_stride: int,
    b_row_stride: int,
    out_row_stride: int,
) -> None:
    total = torch.zeros(m, n)
    for start in range(0, k, BLOCK_K):
        # Your part: sums of integers. These are floats, which hold integers up to 2^24 only.
        total += a[:, start : start + BLOCK_K].float() @ b[:, start : start + BLOCK_K].float().T
    # Your part: what does a 1 in this row and this column stand for?
    out.copy_(total)
