"""Right, and not the exercise: torch copies a transposed view."""

import torch


def transpose(x: torch.Tensor, out: torch.Tensor, rows: int, cols: int, x_row_stride: int, out_row_stride: int) -> None:
    out.copy_(x.t())
