"""Bias, GELU and dropout in plain PyTorch, to read beside the starter: program by program, and wrong in the same places."""

import torch

BLOCK_SIZE = 1024
WORD = 0xFFFFFFFF


def _philox(counter: torch.Tensor, seed: int) -> tuple[torch.Tensor, ...]:
    # What `tl.randint4x(seed, counter)` does: ten rounds, and four words of 32 bits for every counter.
    zero = torch.zeros_like(counter)
    words = (counter, zero, zero, zero)
    low, high = seed & WORD, seed >> 32
    for _ in range(10):
        # Products have 64 bits. An int64 holds them all, though it takes the first bit for a sign.
        first, second = words[0] * 0xD2511F53, words[2] * 0xCD9E8D57
        words = (
            (second >> 32 & WORD) ^ words[1] ^ low,
            second & WORD,
            (first >> 32 & WORD) ^ words[3] ^ high,
            first & WORD,
        )
        low, high = low + 0x9E3779B9 & WORD, high + 0xBB67AE85 & WORD
    return words


def bias_gelu_dropout(
    x: torch.Tensor,
    bias: torch.Tensor,
    out: torch.Tensor,
    mask: torch.Tensor,
    rows: int,
    cols: int,
    p: float,
    seed: int,
) -> None:
    # The kernel counts elements and ignores rows.
    size = rows * cols
    all_x, all_out, all_mask = x.view(size), out.view(size), mask.view(size)
    # One program for each block of elements.
    for start in range(0, size, BLOCK_SIZE):
        element = torch.arange(start, min(start + BLOCK_SIZE, size), device=x.device)
        v = all_x[element].float() + bias[element % cols].float()
        gelu = 0.5 * v * (1.0 + torch.erf(v * 0.7071067811865476))

        # Four words of 32 bits for the counter of this element's pack: eight numbers of 16 bits.
        first, second, third, fourth = _philox(element // 8, seed)
        # Your part: these are numbers of some element of the pack. Take this one's, and keep what is not less than p · 65536.
        keep = (first & 0xFFFF) >= 0

        # Your part: what is dropped is zero, and what is kept is divided by 1 - p.
        all_out[element] = gelu.to(out.dtype)
        all_mask[element] = keep.to(mask.dtype)
