"""Scan and histogram in plain PyTorch, to read beside the starter: program by program, and wrong in the same places."""

import torch

TILE = 1024
BLOCK = 4096


def scan_histogram(
    x: torch.Tensor, keys: torch.Tensor, prefix: torch.Tensor, counts: torch.Tensor, n: int, m: int
) -> None:
    # One program for each tile of x, all side by side on a GPU: none of them knows what came before.
    for start in range(0, n, TILE):
        tile = slice(start, min(start + TILE, n))
        # Your part: these are the running sums inside the tile. What came before the tile has to be added.
        prefix[tile] = torch.cumsum(x[tile].float(), dim=0).to(prefix.dtype)
    # One program for each block of keys.
    for start in range(0, m, BLOCK):
        block = keys[start : min(start + BLOCK, m)]
        # Your part: every program has counts of its own keys, and all of them store to the same place.
        counts.copy_(torch.bincount(block.long(), minlength=256))
