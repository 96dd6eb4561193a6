"""Softmax in plain PyTorch, to read beside the starter: program by program, and wrong in the same places."""

import torch


def softmax(
    x: torch.Tensor,
    out: torch.Tensor,
    rows: int,
    cols: int,
    x_row_stride: int,
    out_row_stride: int,
) -> None:
    # A torch tensor knows its strides, so they are not used here. A kernel has only pointers, and needs them.
    # One program for each row. The kernel's block is longer than the row: what do the lanes beyond it add to the sum?
    block_size = 1 << (cols - 1).bit_length()
    for row in range(rows):
        lanes = torch.zeros(block_size, dtype=torch.float32, device=x.device)
        lanes[:cols] = x[row]
        # Your part: what is exp(10000)?
        numerator = torch.exp(lanes)
        out[row] = (numerator / numerator.sum())[:cols].to(out.dtype)
