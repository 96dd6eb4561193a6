"""Product with an epilogue: inputs that show every rounding on the way, the answer in float64, how far off it may be.

    h[p, i, j] = Σ_l a[i, l] · b[p, j, l] + bias[p, j]
    one part:   out = gelu(h[0]) + residual            gelu(x) = x · (1 + tanh(√(2/π) · (x + 0.044715 · x³))) / 2
    two parts:  out = silu(h[0]) · h[1] + residual     silu(x) = x / (1 + exp(-x))

All of it is to be computed in float32 and rounded once. Summing costs about (√k + 1)·eps·Σ|a||b| (Higham and Mary
2019, "A new approach to probabilistic rounding error analysis"; nothing where integers stay below 2**24, the bias
among them, with which a sum may begin), and adding the bias eps·(|h| + |bias|). An activation hands errors on by its
slope, which is at most 1.13 for gelu and 1.1 for silu, and adds a few eps of its argument, not of its value: for
negative x both subtract nearly equal numbers. Adding the residual costs eps of both terms, and the rounding to the
output's type eps/2 of that type, relative to out.

Inputs are drawn in float32: none is wider, and a case of 2^26 elements is drawn anew for every call that is timed.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch.nn import functional

FLOAT32_EPS = torch.finfo(torch.float32).eps
EXACT_BELOW = 2.0**24
APART = {"a": 0, "residual": 0, "out": 0}
SLOPE = 1.13
OF_ACTIVATION = 4.0
"""Units of float32's eps, relative to the argument, that an activation made of approximate functions may be off."""
LARGEST = 180.0
"""Of what activations are taken: beyond it a gate times a value leaves float16."""
KEPT = 0.25
"""The share of residuals that oppose nothing."""
FEW = 24
"""Positions of K that are left with small integers, so that what is left of a sum is small."""


def make_inputs(
    *, generator: torch.Generator, dtype: torch.dtype, distribution: str, m: int, n: int, k: int, parts: int
) -> dict[str, torch.Tensor]:
    """Return `a` (m, k), `b` (parts, n, k), `bias` (parts, n) and `residual` (m, n); the answer fits the type."""
    a, b, bias = _drawn(generator, m, n, k, parts)
    made = {"a": a, "b": b, "bias": bias, "residual": _normal(generator, m, n) * _scales(generator, m, 1.0)[:, None]}
    _DISTRIBUTIONS[distribution](made, dtype, generator)
    return {name: value.to(dtype) for name, value in made.items()}


def expected(
    *, a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor, residual: torch.Tensor
) -> dict[str, torch.Tensor]:
    """Return the answer in float64."""
    return {"out": _activated(_linear(a, b, bias)) + residual.double()}


def error_scale(
    *, a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor, residual: torch.Tensor
) -> dict[str, torch.Tensor]:
    """Return the error bound of an honest kernel per element, in units of the output type's eps."""
    h = _linear(a, b, bias)
    active = _activated(h)
    out = active + residual.double()
    before = _error_before(a, b, bias)
    if h.shape[0] == 1:
        error = SLOPE * before[0] + OF_ACTIVATION * h[0].abs()
    else:
        error = (SLOPE * before[0] + OF_ACTIVATION * h[0].abs()) * h[1].abs() + functional.silu(h[0]).abs() * before[1]
    error += active.abs() + residual.double().abs()
    finfo = torch.finfo(a.dtype)
    return {"out": 0.5 * out.abs().clamp(min=finfo.tiny) + error * (FLOAT32_EPS / finfo.eps)}


def _linear(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """The product with every part of b, and its bias: parts × m × n."""
    return torch.stack([a.double() @ part.double().T for part in b]) + bias.double()[:, None, :]


def _activated(h: torch.Tensor) -> torch.Tensor:
    return functional.gelu(h[0], approximate="tanh") if h.shape[0] == 1 else functional.silu(h[0]) * h[1]


def _error_before(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """How far h may be off, in units of float32's eps: parts × m × n."""
    absolute = torch.stack([a.double().abs() @ part.double().abs().T for part in b])
    added = bias.double().abs()[:, None, :]
    summing = (math.sqrt(a.shape[1]) + 1) * absolute
    if all(bool((value == value.round()).all()) for value in (a, b, bias)):
        summing = torch.where(absolute + added < EXACT_BELOW, 0.0, summing)
    return summing + _linear(a, b, bias).abs() + added


def _drawn(
    generator: torch.Generator, m: int, n: int, k: int, parts: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Factors and bias: scales along rows of a, rows of b and K, each in a random order; |h| stays below about 60."""
    along_k = _scales(generator, k, 1.0)
    along_k = along_k / along_k.square().mean().sqrt()
    a = _normal(generator, m, k) * _scales(generator, m, 0.7)[:, None] * along_k[None, :]
    b = _normal(generator, parts * n, k) * _scales(generator, parts * n, 0.4)[:, None] / math.sqrt(k)
    return a, b.reshape(parts, n, k), _normal(generator, parts, n)


Made = dict[str, torch.Tensor]


def _spread(made: Made, _dtype: torch.dtype, _generator: torch.Generator) -> None:
    """As drawn: h lies where the activations bend, and beyond."""


def _opposed(made: Made, dtype: torch.dtype, generator: torch.Generator) -> None:
    """The residual takes away nearly all of what the activation gave: what is left, rounding on the way would lose."""
    for name in ("a", "b", "bias"):
        made[name] = made[name].to(dtype).double()
    active = _activated(_linear(made["a"], made["b"], made["bias"]))
    kept = torch.rand(active.shape, generator=generator, device=generator.device) < KEPT
    made["residual"] = torch.where(kept, made["residual"], -active)


def _large(made: Made, _dtype: torch.dtype, _generator: torch.Generator) -> None:
    """Arguments up to 180 of both signs, whose exponentials are beyond float32."""
    factor = LARGEST / _linear(made["a"], made["b"], made["bias"]).abs().amax()
    made["b"], made["bias"] = made["b"] * factor, made["bias"] * factor


def _integers(made: Made, _dtype: torch.dtype, generator: torch.Generator) -> None:
    """Integers, half of K in pairs whose products cancel: the sum on its way is large, what is left of it is small."""
    (m, k), (parts, n, _) = made["a"].shape, made["b"].shape
    a, b = _integers_between(generator, -1, 1, m, k), _integers_between(generator, -1, 1, parts * n, k)
    a[:, torch.randperm(k, generator=generator, device=generator.device)[: max(0, k - FEW)]] = 0
    order = torch.randperm(k, generator=generator, device=generator.device)
    one, other = order[: k // 4], order[k // 4 : 2 * (k // 4)]
    a[:, one] = a[:, other] = _integers_between(generator, -127, 127, m, k // 4)
    b[:, one] = _integers_between(generator, -31, 31, parts * n, k // 4)
    b[:, other] = -b[:, one]
    # The bias too: a sum that begins with it is as exact as one that it is added to.
    made["bias"] = _integers_between(generator, -2, 2, parts, n)
    made["a"], made["b"] = a, b.reshape(parts, n, k)


def _special(made: Made, dtype: torch.dtype, generator: torch.Generator) -> None:
    """Infinities, NaN and large numbers among the residuals, and a NaN in every eighth row of a, often last."""
    most, (m, k) = torch.finfo(dtype).max, made["a"].shape
    telling = torch.tensor([torch.inf, -torch.inf, torch.nan, most / 2, -most / 2], device=generator.device)
    shape = made["residual"].shape
    which = torch.randint(8 * len(telling), shape, generator=generator, device=generator.device)
    made["residual"] = torch.where(which < len(telling), telling[which % len(telling)], made["residual"])
    row = torch.randperm(m, generator=generator, device=generator.device)[: (m + 7) // 8]
    place = torch.randint(k, row.shape, generator=generator, device=generator.device)
    place[::2] = k - 1
    made["a"][row, place] = torch.nan


def _scales(generator: torch.Generator, count: int, decades: float) -> torch.Tensor:
    """Powers of ten from `-decades` to `+decades`, all of them present, in a random order."""
    exponents = torch.linspace(-decades, decades, count, dtype=torch.float32, device=generator.device)
    return 10 ** exponents[torch.randperm(count, generator=generator, device=generator.device)]


def _normal(generator: torch.Generator, rows: int, columns: int) -> torch.Tensor:
    return torch.randn(rows, columns, generator=generator, dtype=torch.float32, device=generator.device)


def _integers_between(generator: torch.Generator, low: int, high: int, rows: int, columns: int) -> torch.Tensor:
    return torch.randint(low, high + 1, (rows, columns), generator=generator, device=generator.device).float()


_DISTRIBUTIONS: dict[str, Callable[[Made, torch.dtype, torch.Generator], None]] = {
    "spread": _spread,
    "opposed": _opposed,
    "large": _large,
    "integers": _integers,
    "special": _special,
}
