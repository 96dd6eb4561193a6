"""Does not load: raises while it is imported."""

import torch


BLOCK_SIZES = {1024: 4, 2048: 8}
WARPS = BLOCK_SIZES[4096]


def softmax(x: torch.Tensor, out: torch.Tensor, rows: int, cols: int, x_row_stride: int, out_row_stride: int) -> None:
    out.copy_(x)
