"""Wrong: 1/cols everywhere, which is close where a row is nearly uniform."""

import torch


def softmax(x: torch.Tensor, out: torch.Tensor, rows: int, cols: int, x_row_stride: int, out_row_stride: int) -> None:
    out.fill_(1.0 / cols)
