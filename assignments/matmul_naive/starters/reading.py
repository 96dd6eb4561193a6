"""Naive matmul in plain PyTorch, to read beside the starter, and as wrong: program by program."""

import torch

BLOCK_N = 128


def matmul(
    a: torch.Tensor,
    b: torch.Tensor,
    c: torch.Tensor,
    m: int,
    n: int,
    k: int,
    a_row_stride: int,
    b_row_stride: int,
    c_row_stride: int,
) -> None:
    # torch's tensors know their strides, which are not needed here. A kernel has pointers only, and needs them.
    # One program for each piece of each row of c.
    for row in range(m):
        for left in range(0, n, BLOCK_N):
            # The mask: the last piece ends where the row ends.
            columns = slice(left, min(left + BLOCK_N, n))
            # Your part: this is the first product of every sum only. Walk along the row of a and down the rows of b.
            total = a[row, 0].float() * b[0, columns].float()
            c[row, columns] = total.to(c.dtype)
