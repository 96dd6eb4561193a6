"""What tests and `reference/measure.py` have to know of norm_rope. Staff only."""

from __future__ import annotations

import torch

SIZES = ({"tokens": 1, "heads": 1}, {"tokens": 3, "heads": 2}, {"tokens": 11, "heads": 7})
COUNTED = frozenset({"add", "sub", "pow", "sum", "mul"})

_DIM, _HALF = 128, 64


def oracle(
    q: torch.Tensor, weight: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, eps: torch.Tensor
) -> dict[str, torch.Tensor]:
    """The exercise's arithmetic, step by step; `COUNTED` names the steps that are operations.

    A square is a `pow` to torch. What is done once for a head, in place here, is not counted.
    """
    x = q.double().reshape(q.shape[0], -1, _DIM)
    scale = torch.sum(torch.square(x), dim=2, keepdim=True).div_(_DIM).add_(float(eps)).rsqrt_()
    y = torch.mul(torch.mul(x, scale), weight.double())
    low, high, c, s = y[..., :_HALF], y[..., _HALF:], cos.double()[:, None], sin.double()[:, None]
    first = torch.sub(torch.mul(low, c), torch.mul(high, s))
    second = torch.add(torch.mul(high, c), torch.mul(low, s))
    return {"out": torch.cat([first, second], dim=2).view(q.shape)}


def honest(
    q: torch.Tensor, weight: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, eps: torch.Tensor
) -> dict[str, torch.Tensor]:
    """The answer as plain torch computes it in float32, rounded once, which has to pass."""
    return {"out": _rotated(q, weight, cos, sin, float(eps)).to(q.dtype)}


def library(
    q: torch.Tensor, weight: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, out: torch.Tensor, *rest: float
) -> None:
    """The exercise as model code writes it, operator by operator; timed beside our kernels."""
    out.copy_(_rotated(q, weight, cos, sin, rest[-1]))


def _rotated(q: torch.Tensor, weight: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, eps: float) -> torch.Tensor:
    wide = q.float().reshape(q.shape[0], -1, _DIM)
    y = wide * (wide.square().mean(dim=2, keepdim=True) + eps).rsqrt() * weight.float()
    low, high, c, s = y[..., :_HALF], y[..., _HALF:], cos[:, None], sin[:, None]
    return torch.cat([low * c - high * s, high * c + low * s], dim=2).view(q.shape)
