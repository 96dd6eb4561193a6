"""LayerNorm and RMSNorm in plain PyTorch, to read beside the starter: program by program, and wrong in the same places."""

import torch


def layernorm(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor,
    out: torch.Tensor,
    rows: int,
    cols: int,
    x_row_stride: int,
    out_row_stride: int,
    eps: float,
    center: int,
) -> None:
    # A torch tensor knows its strides, so they are not used here. A kernel has only pointers, and needs them.
    # Your part: weight, bias and center are not used yet.
    # One program for each row.
    for row in range(rows):
        values = x[row].float()
        mean = values.sum() / cols
        # Your part: what remains of this difference when the mean is 10000 and the deviation 1?
        variance = (values * values).sum() / cols - mean * mean
        normal = (values - mean) * torch.rsqrt(variance + eps)
        out[row] = normal.to(out.dtype)
