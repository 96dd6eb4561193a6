"""Does not load: imports what is not there."""

import fast_softmax
import torch


def softmax(x: torch.Tensor, out: torch.Tensor, rows: int, cols: int, x_row_stride: int, out_row_stride: int) -> None:
    fast_softmax.run(x, out)
