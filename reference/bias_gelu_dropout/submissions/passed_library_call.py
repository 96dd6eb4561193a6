"""Right, and not the exercise: torch computes GELU, and Philox with 64-bit integers."""

import torch


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
    numbers = _numbers(rows * cols, seed, x.device)
    mask.copy_((numbers.double() >= p * 65536).reshape(rows, cols))
    gelu = torch.nn.functional.gelu(x.double() + bias.double())
    out.copy_(gelu * mask * (1 / (1 - p) if p < 1 else 0.0))


def _numbers(size: int, seed: int, device: torch.device) -> torch.Tensor:
    word = 0xFFFFFFFF
    c0 = torch.arange((size + 7) // 8, device=device)
    c1 = c2 = c3 = torch.zeros_like(c0)
    low, high = seed & word, seed >> 32
    for _ in range(10):
        # The product wraps around 2**64, and the shift brings a sign with it.
        first, second = c0 * 0xD2511F53, c2 * 0xCD9E8D57
        c0, c1 = (second >> 32 & word) ^ c1 ^ low, second & word
        c2, c3 = (first >> 32 & word) ^ c3 ^ high, first & word
        low, high = low + 0x9E3779B9 & word, high + 0xBB67AE85 & word
    halves = [half for c in (c0, c1, c2, c3) for half in (c & 0xFFFF, c >> 16)]
    return torch.stack(halves, dim=-1).flatten()[:size]
