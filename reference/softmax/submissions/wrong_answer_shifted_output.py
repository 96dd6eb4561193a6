"""Wrong: the right values, each one column to the left."""

import torch


def softmax(x: torch.Tensor, out: torch.Tensor, rows: int, cols: int, x_row_stride: int, out_row_stride: int) -> None:
    out.copy_(torch.softmax(x.double(), dim=1).roll(-1, dims=1))
