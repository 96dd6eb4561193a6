"""What tests and `reference/measure.py` have to know of bias, GELU and dropout. Staff only."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import torch

SIZES = ({"rows": 1, "cols": 1}, {"rows": 2, "cols": 7}, {"rows": 9, "cols": 320})
COUNTED = frozenset({"add", "mul", "erf"})


def oracle(x: torch.Tensor, bias: torch.Tensor, p: torch.Tensor, seed: torch.Tensor) -> dict[str, torch.Tensor]:
    """The exercise's arithmetic, step by step; `COUNTED` names the steps that are operations."""
    mask, scale = _mask(x, p, seed), 1 / (1 - float(p)) if float(p) < 1 else 0.0
    v = torch.add(x.double(), bias.double())
    phi = torch.mul(torch.add(torch.erf(torch.mul(v, math.sqrt(0.5))), 1.0), 0.5)
    return {"out": torch.mul(torch.mul(v, phi), torch.where(mask == 1, scale, 0.0).double()), "mask": mask}


def honest(x: torch.Tensor, bias: torch.Tensor, p: torch.Tensor, seed: torch.Tensor) -> dict[str, torch.Tensor]:
    """The answer as plain torch computes it in float32, rounded once, which has to pass."""
    mask, scale = _mask(x, p, seed), 1 / (1 - p) if p < 1 else torch.zeros(())
    gelu = torch.nn.functional.gelu(x.float() + bias.float())
    return {"out": (gelu * mask * scale).to(x.dtype), "mask": mask}


def library(x: torch.Tensor, bias: torch.Tensor, out: torch.Tensor, mask: torch.Tensor, *rest: float) -> None:
    """Torch's operators, one after another, timed beside our kernels; not right, for the random numbers are torch's."""
    kept, keep = torch.native_dropout(torch.nn.functional.gelu(x + bias), float(rest[-2]), train=True)
    out.copy_(kept)
    mask.copy_(keep)


def _mask(x: torch.Tensor, p: torch.Tensor, seed: torch.Tensor) -> torch.Tensor:
    """The mask, by a second implementation of Philox: with numpy, whose 64-bit integers have no sign."""
    counter = np.arange((x.numel() + 7) // 8, dtype=np.uint64)
    words = _philox(counter, int(seed) & 0xFFFFFFFF, int(seed) >> 32)
    numbers = np.stack([words & np.uint64(0xFFFF), words >> np.uint64(16)], axis=-1).transpose(1, 0, 2).ravel()
    kept = numbers[: x.numel()] >= float(p) * 65536
    return torch.from_numpy(kept.astype(np.uint8)).reshape(x.shape).to(x.device)


def _philox(counter: npt.NDArray[np.uint64], low: int, high: int) -> npt.NDArray[np.uint64]:
    """Four words for each counter, of the shape (4, counters)."""
    word, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    c0, c1, c2, c3 = counter, np.zeros_like(counter), np.zeros_like(counter), np.zeros_like(counter)
    for round_number in range(10):
        first, second = c0 * np.uint64(0xD2511F53), c2 * np.uint64(0xCD9E8D57)
        key_low = np.uint64(low + round_number * 0x9E3779B9 & 0xFFFFFFFF)
        key_high = np.uint64(high + round_number * 0xBB67AE85 & 0xFFFFFFFF)
        c0, c1, c2, c3 = (second >> half) ^ c1 ^ key_low, second & word, (first >> half) ^ c3 ^ key_high, first & word
    return np.stack([c0, c1, c2, c3])
