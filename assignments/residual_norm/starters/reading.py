"""Residual addition and norm in plain PyTorch, to read beside the starter: program by program, and wrong in the same places."""

import torch


def residual_norm(
    x: torch.Tensor,
    r: torch.Tensor,
    weight: torch.Tensor,
    s: torch.Tensor,
    out: torch.Tensor,
    rows: int,
    cols: int,
    x_row_stride: int,
    r_row_stride: int,
    s_row_stride: int,
    out_row_stride: int,
    eps: float,
) -> None:
    # A torch tensor knows its strides, so they are not used here. A kernel has only pointers, and needs them.
    # Your part: the residual stream and the weight are not used yet.
    # One program for each row.
    for row in range(rows):
        # What is stored is rounded. Which of the two sums does the norm use?
        total = x[row].float()
        s[row] = total.to(s.dtype)
        mean_square = (total * total).sum() / cols
        out[row] = (total * torch.rsqrt(mean_square + eps)).to(out.dtype)
