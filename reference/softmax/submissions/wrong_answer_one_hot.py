"""Wrong: one at the largest value of a row, zero elsewhere."""

import torch


def softmax(x: torch.Tensor, out: torch.Tensor, rows: int, cols: int, x_row_stride: int, out_row_stride: int) -> None:
    out.zero_()
    out.scatter_(1, x.argmax(dim=1, keepdim=True), 1.0)
