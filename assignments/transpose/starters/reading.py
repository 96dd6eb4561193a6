"""Transpose in plain PyTorch, to read beside the starter: program by program, and wrong in the same places."""

import torch

BLOCK = 32


def transpose(x: torch.Tensor, out: torch.Tensor, rows: int, cols: int, x_row_stride: int, out_row_stride: int) -> None:
    # A torch tensor knows its strides, so they are not used here. A kernel has only pointers, and needs them.
    # One program for each tile.
    for top in range(0, rows, BLOCK):
        for left in range(0, cols, BLOCK):
            tile = x[top : top + BLOCK, left : left + BLOCK]
            # Your part: this is the place that the tile came from. Where does it belong, and which way round?
            place = out[top : top + BLOCK, left : left + BLOCK]
            # Only what fits both shapes is written, as a kernel must not write outside of `out`.
            height, width = min(tile.shape[0], place.shape[0]), min(tile.shape[1], place.shape[1])
            place[:height, :width] = tile[:height, :width]
