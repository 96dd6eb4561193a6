"""Naive matmul in plain PyTorch, to read beside the starter: program by program, and wrong in the same places."""

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
    # A torch tensor knows its strides, so they are not used here. A kernel has only pointers, and needs them.
    # One program for each piece of each row of c.
    for row in range(m):
        for left in range(0, n, BLOCK_N):
            # The mask: the last piece ends where the row ends.
            columns = slice(left, min(left + BLOCK_N, n))
            # Your part: this is the first product of every sum only. Walk along the row of a and down the rows of b.
            total = a[row, 0].float() * b[0, columns].float()
            c[row, columns] = total.to(c.dtype)
