"""Wrong: zeros, which most entries of a peaked row nearly are."""

import torch


def softmax(x: torch.Tensor, out: torch.Tensor, rows: int, cols: int, x_row_stride: int, out_row_stride: int) -> None:
    out.zero_()
