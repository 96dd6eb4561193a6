"""Fused mixture of experts: tokens that crowd and experts that starve, the answer in float64, how far off it may be.

Token t goes to the `top` experts with the largest logits, in falling order, the lower number first among equals:

    chosen[t, j]                   r[t, j] = exp(logits[t, chosen[t, j]]) / Σ_i exp(logits[t, chosen[t, i]])
    g = x[t] · gate_up[e, 0]ᵀ      u = x[t] · gate_up[e, 1]ᵀ      y = silu(g) · u      p = y · down[e]ᵀ
    out[t] = Σ_j r[t, j] · p[t, chosen[t, j]]                     silu(x) = x / (1 + exp(-x))

All is computed in float32, and may be rounded to x's type at three places: y, which tensor cores want so, each expert's
weighted output r · p, and out. Errors are those of rung 21 first: δg = (√hidden + 1)·eps32·Σ|x||w|, or 0 for integers
whose sums stay below 2^24, and the same for u; δy = (1.1·δg + 4·eps32·|g|)·|u| + |silu(g)|·δu. A rounded y is off by
eps/2 of itself; in p that is at most Σ|y||w|·eps/2, and with random signs about √(Σ y²w²)·eps/2, of which four are
allowed. Summing costs (√inner + 1)·eps32·Σ|y||w|. A weight is off by (2·|logit - largest| + 8)·eps32, relatively, and
so are its fellows. Then eps/2 of each r · p, (top + 1)·eps32 of their magnitudes for the sum, and eps/2 of out.

Inputs are drawn in float32: none is wider, and the ranked cases have up to 2^28 of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
from torch.nn import functional

EPS32 = torch.finfo(torch.float32).eps
EXACT_BELOW = 2.0**24
APART = {"x": 0, "logits": 0, "chosen": 0, "out": 0}
SLOPE = 1.1
"""The largest slope of silu."""
OF_ACTIVATION = 4.0
"""Units of float32's eps, relative to the argument, that an activation made of approximate functions may be off."""
SIGNS = 4.0
"""How many standard deviations roundings with random signs may add up to."""
LARGEST = 200.0
"""Of what activations are taken in `large`."""
FEW = 24
"""Positions of hidden that are left with small integers in `cancelling`."""
FAR = 40.0
"""How far below the others the logits lie of an expert that gets no token."""

Made = dict[str, torch.Tensor]


def make_inputs(
    *,
    generator: torch.Generator,
    dtype: torch.dtype,
    distribution: str,
    tokens: int,
    experts: int,
    top: int,
    hidden: int,
    inner: int,
) -> Made:
    """Return `x`, float32 `logits`, `gate_up`, `down` as in the manifest, and `top` as `asked`, for the oracle."""
    along = _scales(generator, hidden, 0.7)
    x = _normal(generator, tokens, hidden) * _scales(generator, tokens, 0.5)[:, None]
    x *= along / along.square().mean().sqrt()
    gate_up = _normal(generator, experts, 2, inner, hidden)
    gate_up *= _scales(generator, experts * 2 * inner, 0.4).view(experts, 2, inner, 1) / math.sqrt(hidden)
    down = _normal(generator, experts, hidden, inner)
    down *= _scales(generator, experts * hidden, 0.5).view(experts, hidden, 1) / math.sqrt(inner)
    made = {"x": x, "logits": _normal(generator, tokens, experts), "gate_up": gate_up, "down": down}
    _DISTRIBUTIONS[distribution](made, top, generator)
    cast = {name: value if name == "logits" else value.to(dtype) for name, value in made.items()}
    return cast | {"asked": torch.tensor(top, device=generator.device)}


def expected(
    *, x: torch.Tensor, logits: torch.Tensor, gate_up: torch.Tensor, down: torch.Tensor, asked: torch.Tensor
) -> Made:
    """Return `chosen`, int64 (tokens, top), and `out`, float64 (tokens, hidden)."""
    chosen, weights = _route(logits, int(asked))
    out = torch.zeros(x.shape, dtype=torch.float64, device=x.device)
    for expert, (token, place) in _groups(chosen, len(down)):
        rows = x[token].double()
        gate, up = (rows @ part.double().T for part in gate_up[expert])
        product = (functional.silu(gate) * up) @ down[expert].double().T
        out[token] += weights[token, place, None] * product
    return {"chosen": chosen, "out": out}


def error_scale(
    *, x: torch.Tensor, logits: torch.Tensor, gate_up: torch.Tensor, down: torch.Tensor, asked: torch.Tensor
) -> Made:
    """Return zeros for `chosen`, and the error bound of an honest kernel per element of `out`, in units of its eps."""
    chosen, weights = _route(logits, int(asked))
    finfo = torch.finfo(x.dtype)
    top, inner = chosen.shape[1], down.shape[2]
    taken = logits.double().gather(1, chosen)
    of_weight = 2.0 * (taken - taken[:, :1]).abs() + 8.0
    of_weight = of_weight + (weights * of_weight).sum(dim=1, keepdim=True)
    out = torch.zeros(x.shape, dtype=torch.float64, device=x.device)
    error, rounding = torch.zeros_like(out), torch.zeros_like(out)
    for expert, (token, place) in _groups(chosen, len(down)):
        rows, w = x[token].double(), down[expert].double().T
        gate, up = (rows @ part.double().T for part in gate_up[expert])
        off_gate, off_up = (_off(rows, part.double()) for part in gate_up[expert])
        active = functional.silu(gate)
        y = active * up
        off_y = (SLOPE * off_gate + OF_ACTIVATION * gate.abs()) * up.abs() + active.abs() * off_up
        absolute, stored = y.abs() @ w.abs(), y.abs().clamp(min=finfo.tiny)
        of_rounding = torch.minimum(stored @ w.abs(), SIGNS * (stored.square() @ w.square()).sqrt())
        weight = weights[token, place, None]
        weighted = weight * (y @ w)
        out[token] += weighted
        off = weight * (off_y @ w.abs() + (math.sqrt(inner) + 1) * absolute)
        error[token] += off + (of_weight[token, place, None] + top + 1) * weighted.abs()
        rounding[token] += weight * of_rounding + weighted.abs().clamp(min=finfo.tiny)
    scale = 0.5 * (rounding + out.abs().clamp(min=finfo.tiny)) + error * (EPS32 / finfo.eps)
    return {"chosen": torch.zeros_like(chosen, dtype=torch.float64), "out": scale}


def _off(rows: torch.Tensor, part: torch.Tensor) -> torch.Tensor:
    """How far a float32 sum of products may be off, in units of eps: nothing where integers stay below 2^24."""
    absolute = rows.abs() @ part.abs().T
    off = (math.sqrt(rows.shape[1]) + 1) * absolute
    if bool((rows == rows.round()).all()) and bool((part == part.round()).all()):
        off = torch.where(absolute < EXACT_BELOW, 0.0, off)
    return off


def _route(logits: torch.Tensor, top: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The experts of each token and their weights in float64, (tokens, top)."""
    order = logits.sort(dim=1, descending=True, stable=True).indices[:, :top]
    return order, torch.softmax(logits.double().gather(1, order), dim=1)


def _groups(chosen: torch.Tensor, experts: int) -> Iterator[tuple[int, tuple[torch.Tensor, torch.Tensor]]]:
    """For each expert that has any: its tokens, and as which of their choices they have it."""
    for expert in range(experts):
        token, place = (chosen == expert).nonzero(as_tuple=True)
        if len(token):
            yield expert, (token, place)


# --- what is drawn: every function changes what was made ----------------------------------------------------------


def _spread(_made: Made, _top: int, _generator: torch.Generator) -> None:
    """As drawn: every expert is as likely as any other."""


def _skewed(made: Made, top: int, generator: torch.Generator) -> None:
    """Some experts are crowded, most have few tokens; a quarter of them, one at least, have none."""
    logits, experts = made["logits"], made["logits"].shape[1]
    rank = torch.randperm(experts, generator=generator, device=generator.device)
    logits -= (4.0 / experts) * rank
    # The choice needs `top` others.
    empty = min(max(1, experts // 4), experts - top)
    logits -= FAR * (rank >= experts - empty)


def _same(made: Made, top: int, generator: torch.Generator) -> None:
    """All tokens go to the same `top` experts, and nobody to any other."""
    favoured = torch.randperm(made["logits"].shape[1], generator=generator, device=generator.device)[:top]
    made["logits"][:, favoured] += FAR


def _ties(made: Made, _top: int, generator: torch.Generator) -> None:
    """Logits are -1, 0 or 1: among equals the lower number goes first."""
    shape = made["logits"].shape
    made["logits"] = torch.randint(-1, 2, shape, generator=generator, device=generator.device).float()


def _low(made: Made, _top: int, generator: torch.Generator) -> None:
    """The logits of a token differ in their lowest bits only; any rounding makes them equal."""
    steps = made["logits"].argsort(dim=1).float()
    sign = torch.randint(0, 2, (len(steps), 1), generator=generator, device=generator.device) * 2.0 - 1.0
    made["logits"] = sign * (4.0 + 4.0 * EPS32 * steps)


def _confident(made: Made, _top: int, _generator: torch.Generator) -> None:
    """Logits of hundreds, whose exponentials are beyond float32."""
    made["logits"] *= 300.0


def _large(made: Made, _top: int, _generator: torch.Generator) -> None:
    """Gates of both signs up to LARGEST, whose exponentials are beyond float32."""
    x = made["x"]
    x *= 1.0 / x.square().mean(dim=1, keepdim=True).sqrt()
    gate_up = made["gate_up"]
    gate_up *= LARGEST / 5.0 / gate_up.norm(dim=-1, keepdim=True).clamp(min=1e-6)
    made["down"] *= 0.1


def _cancelling(made: Made, _top: int, generator: torch.Generator) -> None:
    """Integers, half of hidden in pairs whose products cancel: the sum on its way is large, what is left is small."""
    x, gate_up = made["x"], made["gate_up"]
    tokens, hidden = x.shape
    order = torch.randperm(hidden, generator=generator, device=generator.device)
    pairs = max(0, hidden - FEW) // 2
    one, other, rest = order[:pairs], order[pairs : 2 * pairs], order[2 * pairs :]
    x[:, one] = x[:, other] = _integers(generator, 127, tokens, pairs)
    x[:, rest] = _integers(generator, 1, tokens, hidden - 2 * pairs)
    gate_up.copy_(_integers(generator, 31, *gate_up.shape))
    gate_up[..., other] = -gate_up[..., one]
    gate_up[..., rest] = gate_up[..., rest].sign()


def _readable(made: Made, _top: int, generator: torch.Generator) -> None:
    """Expert e gives e + 1 everywhere, and a token's choices weigh as 4 to 2 to 1, and so on."""
    experts, _, inner, hidden = made["gate_up"].shape
    made["x"].fill_(1.0)
    made["gate_up"][:, 0] = 32.0 / hidden
    made["gate_up"][:, 1] = 1.0 / (32.0 * hidden)
    made["down"][:] = torch.arange(1, experts + 1, device=generator.device)[:, None, None] / inner
    made["logits"] = math.log(2.0) * made["logits"].argsort(dim=1).float()


def _scales(generator: torch.Generator, count: int, decades: float) -> torch.Tensor:
    """Powers of ten from `-decades` to `+decades`, all of them present, in a random order."""
    exponents = torch.linspace(-decades, decades, count, dtype=torch.float32, device=generator.device)
    return 10 ** exponents[torch.randperm(count, generator=generator, device=generator.device)]


def _normal(generator: torch.Generator, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=generator, dtype=torch.float32, device=generator.device)


def _integers(generator: torch.Generator, most: int, *shape: int) -> torch.Tensor:
    return torch.randint(-most, most + 1, shape, generator=generator, device=generator.device).float()


_DISTRIBUTIONS: dict[str, Callable[[Made, int, torch.Generator], None]] = {
    "spread": _spread,
    "skewed": _skewed,
    "same": _same,
    "ties": _ties,
    "low": _low,
    "confident": _confident,
    "large": _large,
    "cancelling": _cancelling,
    "readable": _readable,
}
