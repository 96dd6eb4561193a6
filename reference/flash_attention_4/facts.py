"""What tests and `reference/measure.py` have to know of FlashAttention 4. Staff only."""

from __future__ import annotations

import math

import torch
from torch.nn import functional

_SHAPE = {"batch": 1, "q_heads": 1, "kv_heads": 1, "q_len": 1, "kv_len": 1, "dim": 1, "causal": 1}
SIZES = (
    _SHAPE,
    _SHAPE | {"batch": 2, "q_heads": 4, "kv_heads": 2, "q_len": 9, "kv_len": 5, "dim": 8},
    _SHAPE | {"q_heads": 2, "kv_heads": 1, "q_len": 33, "kv_len": 250, "dim": 40, "causal": 0},
)
COUNTED: frozenset[str] = frozenset()
"""Products of matrices are counted by torch's own counter; the exponentials are not counted, as everywhere."""


def oracle(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: torch.Tensor, scale: torch.Tensor
) -> dict[str, torch.Tensor]:
    """The exercise's arithmetic, row by row, over the keys that a row sees."""
    out, lse = torch.zeros_like(q, dtype=torch.float64), torch.full(q.shape[:3], -torch.inf, dtype=torch.float64)
    row_max = lse.clone()
    ratio, (length, keys) = q.shape[1] // k.shape[1], (q.shape[2], k.shape[2])
    for b in range(q.shape[0]):
        for h in range(q.shape[1]):
            for i in range(length):
                seen = max(0, i + 1 + keys - length) if bool(causal) else keys
                if seen == 0:
                    continue
                row, head = q[b, h, i : i + 1].double(), h // ratio
                scores = row @ k[b, head, :seen].double().T * scale.double()
                lse[b, h, i] = torch.logsumexp(scores, 1)
                out[b, h, i] = (torch.exp(scores - lse[b, h, i]) @ v[b, head, :seen].double())[0]
                row_max[b, h, i] = _middle_of_what_is_kept([float(score) / math.log(2) for score in scores[0]])
    return {"out": out, "lse": lse, "row_max": row_max}


def _middle_of_what_is_kept(scores: list[float]) -> float:
    """A row's maximum may end 8 below its largest score, or at it; or in its first block if it can never have moved."""
    largest = max(scores)
    moves = largest > min(scores[0], scores[-1]) + 8 - 1e-3 * (1 + abs(largest))
    return (largest - 8 + (largest if moves else max(scores[:128] + scores[-128:]))) / 2


def honest(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: torch.Tensor, scale: torch.Tensor
) -> dict[str, torch.Tensor]:
    """The answer as plain torch computes it in float32, rounded once, which has to pass."""
    ratio = q.shape[1] // k.shape[1]
    k, v = (each.float().repeat_interleave(ratio, dim=1) for each in (k, v))
    scores = q.float() @ k.mT * scale
    if bool(causal):
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool).tril(scores.shape[-1] - scores.shape[-2])
        scores = scores.masked_fill(~seen, -torch.inf)
    lse = torch.logsumexp(scores, dim=-1)
    p = torch.exp(scores - lse.masked_fill(lse.isinf(), 0.0)[..., None])
    kept = torch.full_like(lse, -torch.inf)
    for first in range(0, scores.shape[-1], 64):
        largest = scores[..., first : first + 64].amax(dim=-1) / math.log(2)
        kept = torch.where(largest > kept + 8, largest, kept)
    return {"out": (p @ v).to(q.dtype), "lse": lse, "row_max": kept}


def library(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    out: torch.Tensor,
    lse: torch.Tensor,  # noqa: ARG001
    row_max: torch.Tensor,  # noqa: ARG001
    *_: int,
) -> None:
    """The operator that does the exercise, timed beside our kernels: whatever torch chooses; square masks only."""
    causal, scale = bool(_[6]), float(_[7])
    out.copy_(functional.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale, enable_gqa=True))
