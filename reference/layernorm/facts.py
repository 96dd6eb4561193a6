"""What tests and `reference/measure.py` have to know of layernorm. Staff only."""

from __future__ import annotations

import torch

SIZES = ({"rows": 1, "cols": 1}, {"rows": 2, "cols": 7}, {"rows": 11, "cols": 300})
COUNTED = frozenset({"sum", "sub", "pow", "mul", "add"})


def oracle(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: torch.Tensor, center: torch.Tensor
) -> dict[str, torch.Tensor]:
    """The exercise's arithmetic, step by step; `COUNTED` names the steps that are operations.

    A square is a `pow` to torch. What is done once for a row, in place here, is not counted.
    """
    wide, count = x.double(), x.shape[1]
    mean = torch.sum(wide, dim=1, keepdim=True).div_(count).mul_(int(center))
    rest = torch.sub(wide, mean)
    scale = torch.sum(torch.square(rest), dim=1, keepdim=True).div_(count).add_(float(eps)).rsqrt_()
    return {"out": torch.add(torch.mul(torch.mul(rest, scale), weight.double()), bias.double())}


def honest(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: torch.Tensor, center: torch.Tensor
) -> dict[str, torch.Tensor]:
    """The answer as plain torch computes it in float32, rounded once, which has to pass."""
    wide = x.float()
    rest = wide - wide.mean(dim=1, keepdim=True) * center
    scale = (rest.square().mean(dim=1, keepdim=True) + eps).rsqrt()
    return {"out": (rest * scale * weight.float() + bias.float()).to(x.dtype)}


def library(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, out: torch.Tensor, *rest: float) -> None:
    """The operator that does the exercise, timed beside our kernels; it takes no place for its answer."""
    eps, center = float(rest[-2]), rest[-1]
    if center:
        out.copy_(torch.nn.functional.layer_norm(x, x.shape[1:], weight, bias, eps))
    else:
        out.copy_(torch.nn.functional.rms_norm(x, x.shape[1:], weight, eps) + bias)
