"""Celsius to Fahrenheit in plain PyTorch, block by block: to read beside the starter, and wrong in the same place."""

import torch

BLOCK_SIZE = 256


def fahrenheit(x: torch.Tensor, out: torch.Tensor, n: int) -> None:
    programs = (n + BLOCK_SIZE - 1) // BLOCK_SIZE  # n / BLOCK_SIZE, rounded up
    for program in range(programs):
        first = program * 512  # Your part: where does the block of this program begin?
        block = slice(first, min(first + BLOCK_SIZE, n))
        out[block] = 1.8 * x[block] + 32.0
