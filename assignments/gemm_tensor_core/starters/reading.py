"""Tensor-core GEMM in plain PyTorch, to read beside the starter: program by program, and wrong in the same places."""

import torch

BLOCK_M, BLOCK_N, BLOCK_K = 64, 64, 32


def gemm(
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
    # One program for each tile of c.
    for top in range(0, m, BLOCK_M):
        for left in range(0, n, BLOCK_N):
            # Columns of c are rows of b: a tile of b is transposed, which costs a tensor core nothing.
            of_a = a[top : top + BLOCK_M, :BLOCK_K].float()
            of_b = b[left : left + BLOCK_N, :BLOCK_K].float().T
            # Your part: this is the first slice of K only. Walk over all of them, and add their products up in float32.
            sums = of_a @ of_b
            c[top : top + BLOCK_M, left : left + BLOCK_N] = sums.to(c.dtype)
