"""Products with uniform numbers of 24 bits, which Philox-4x32 with ten rounds makes, four for each counter."""

from __future__ import annotations

import torch

_WORD = 0xFFFFFFFF


def make_inputs(
    *, generator: torch.Generator, dtype: torch.dtype, distribution: str, n: int
) -> dict[str, torch.Tensor]:
    """Return `x` of shape (n,) and `seed`, an integer of 62 bits; `distribution` is `normal`."""
    x = torch.empty(n, dtype=torch.float32, device=generator.device)
    seed = torch.randint(0, 2**62, (), generator=generator, device=generator.device)
    return {"x": getattr(x, f"{distribution}_")(generator=generator).to(dtype), "seed": seed}


def expected(*, x: torch.Tensor, seed: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the products, rounded once, of shape (n,), as float64."""
    words = torch.tensor([word for counter in range(-(-len(x) // 4)) for word in _philox(counter, int(seed))])
    uniform = (words[: len(x)] >> 8).float() / 2**24
    return {"out": (x * uniform.to(x.device)).double()}


def _philox(counter: int, seed: int) -> tuple[int, int, int, int]:
    """Four words of 32 bits."""
    c0, c1, c2, c3, low, high = counter, 0, 0, 0, seed & _WORD, seed >> 32
    for _ in range(10):
        a, b = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (b >> 32) ^ c1 ^ low, b & _WORD, (a >> 32) ^ c3 ^ high, a & _WORD
        low, high = (low + 0x9E3779B9) & _WORD, (high + 0xBB67AE85) & _WORD
    return c0, c1, c2, c3
