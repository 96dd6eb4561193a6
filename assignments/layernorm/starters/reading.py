"""LayerNorm and RMSNorm in plain PyTorch, to read beside the starter, and as wrong: program by program."""

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
    # torch's tensors know their strides, which are not needed here. A kernel has pointers only, and needs them.
    # Your part: weight, bias and center are not used yet.
    # One program for each row.
    for row in range(rows):
        values = x[row].float()
        mean = values.sum() / cols
        # Your part: what is left of this difference when the mean is 10000 and the deviation 1?
        variance = (values * values).sum() / cols - mean * mean
        normal = (values - mean) * torch.rsqrt(variance + eps)
        out[row] = normal.to(out.dtype)
