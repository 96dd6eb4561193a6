"""A custom op around residual addition and RMSNorm: its results, what its fake kernel says of them, its gradients.

    s = x + r, rounded,    c[i] = 1 / sqrt(mean of s[i, :]² + eps),    n = s · c,    out = n · weight
    g = dout · weight,     dx = dr = ds + c · (g - n · mean of (g · n)[i, :]),    dweight[j] = sum of (dout · n)[:, j]

`s` and `out` are those of rung 10, with its bounds. Errors of the gradients, in units of float32's eps: c is off by 3.5
of its own size (a sum of squares by chains, four, which the root halves; the root itself), n by 4.5, g by half, a
product of both by 5.5. Their mean is off by that and four for its sum, relative to A, the mean of |g · n|. So n · mean
is off by at most 15 · |n| · A, and the difference, times c, by 5 · c · |g| + 20 · c · |n| · A; adding ds rounds dx once
more. A term of dweight is off by 5.5 and the sum by √rows / 2 and four, relative to the sum of the terms' sizes. Each
gradient is rounded to its type: half an eps of that.

What a fake kernel has to say are whole numbers: results have the type and shape of x, rows one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

FLOAT32_EPS = torch.finfo(torch.float32).eps
KINDS = 2
"""Types that `describe` asks for: float32 and float16."""

Tensors = dict[str, torch.Tensor]


def make_inputs(
    *, generator: torch.Generator, function: str, dtype: torch.dtype, distribution: str, **size: int
) -> Tensors:
    """Return the function's inputs: matrices of (rows, cols), `weight` of (cols), `eps`; `like` of (tests, 4)."""
    if function == "describe":
        return {"like": _like(generator, distribution, size["tests"])}
    rows, cols = size["rows"], size["cols"]
    x, r = _DISTRIBUTIONS[distribution](generator, rows, cols)
    # The scale of a row must say nothing about its place.
    order = torch.randperm(rows, generator=generator, device=generator.device)
    weight = 10 ** _uniform(generator, (cols,), -1, 0.5) * _sign(generator, (cols,))
    exponent = torch.randint(-6, -3, (), generator=generator, device=generator.device)
    made = {"x": x.to(dtype)[order], "r": r.to(dtype)[order], "weight": weight.to(dtype)}
    made["eps"] = (10.0**exponent).float()
    if function != "forward":
        made["ds"], made["dout"] = _upstream(generator, made, size.get("order", 0))
    return made


def expected(*, function: str, **inputs: torch.Tensor) -> Tensors:
    """Return what the function's outputs have to be: float64, or int32 for `describe`."""
    if function == "describe":
        described = _described(inputs["like"])
        return {"real": described, "fake": described.clone()}
    s, n, c = _norm(**inputs)
    found = {"s": s, "out": n * inputs["weight"].double()}
    if function != "forward":
        found |= _gradients(n, c, **inputs)
    return {name: found[name] for name in _OUTPUTS[function]}


def error_scale(*, function: str, **inputs: torch.Tensor) -> Tensors:
    """Return how far off an honest answer may be, per element, in units of its type's eps; zero for whole numbers."""
    if function == "describe":
        return dict.fromkeys(("real", "fake"), torch.zeros(len(inputs["like"]), 14, dtype=torch.float64))
    s, n, c = _norm(**inputs)
    out = (n * inputs["weight"].double()).abs()
    terms = {"s": (torch.zeros_like(s), torch.zeros_like(s)), "out": (5 * out, out)}
    if function != "forward":
        weight, dout = inputs["weight"].double(), inputs["dout"].double()
        exact = _gradients(n, c, **inputs)
        g = (dout * weight).abs()
        mean = (g * n.abs()).mean(dim=1, keepdim=True)
        dx = c * (5 * g + 20 * n.abs() * mean) + exact["dx"].abs()
        terms["dx"] = terms["dr"] = (dx, exact["dx"].abs())
        sums = (dout * n).abs().sum(dim=0)
        terms["dweight"] = ((9.5 + math.sqrt(len(s)) / 2) * sums, exact["dweight"].abs())
    finfo = torch.finfo(inputs["x"].dtype)
    scales = {
        name: arithmetic * (FLOAT32_EPS / finfo.eps) + 0.5 * value.clamp(min=finfo.tiny)
        for name, (arithmetic, value) in terms.items()
    }
    scales["s"] = terms["s"][0]
    return {name: scales[name] for name in _OUTPUTS[function]}


_OUTPUTS = {
    "forward": ("s", "out"),
    "gradients": ("dx", "dr", "dweight"),
    "traced": ("s", "out", "dx", "dr", "dweight"),
}


def _norm(
    *, x: torch.Tensor, r: torch.Tensor, eps: torch.Tensor, **_: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The sum as its type holds it, that normalised, and the factor of each row."""
    s = (x.double() + r.double()).to(x.dtype).double()
    c = (s.square().mean(dim=1, keepdim=True) + eps.double()).rsqrt()
    return s, s * c, c


def _gradients(
    n: torch.Tensor,
    c: torch.Tensor,
    *,
    weight: torch.Tensor,
    ds: torch.Tensor,
    dout: torch.Tensor,
    **_: torch.Tensor,
) -> Tensors:
    g = dout.double() * weight.double()
    dx = ds.double() + c * (g - n * (g * n).mean(dim=1, keepdim=True))
    return {"dx": dx, "dr": dx.clone(), "dweight": (dout.double() * n).sum(dim=0)}


def _upstream(generator: torch.Generator, made: Tensors, order: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The gradients of s and out: in dx both count about the same. With order 3, rows of dout are all the same one."""
    s = made["x"].float() + made["r"].float()
    rows, cols = s.shape
    scale = 10 ** _uniform(generator, (rows, 1), -1.5, 0)
    dout = _gauss(generator, rows, cols).mul_(scale)
    if order == 3:
        dout = dout[:1].expand(rows, cols).contiguous()
    size = (s.square().mean(dim=1, keepdim=True) + 1e-6).rsqrt()
    ds = _gauss(generator, rows, cols).mul_(scale * size * 10 ** _uniform(generator, (rows, 1), -0.5, 0.5))
    dtype = made["x"].dtype
    return ds.mul_(float(order != 4)).to(dtype), dout.mul_(float(order != 5)).to(dtype)


def _like(generator: torch.Generator, distribution: str, tests: int) -> torch.Tensor:
    """Sizes from 2 on, and the types and orders that the distribution stands for."""

    def drawn(low: int, high: int) -> torch.Tensor:
        return torch.randint(low, high, (tests,), generator=generator, device=generator.device)

    kind = drawn(0, KINDS) if distribution in {"half", "any"} else drawn(0, 1)
    if distribution == "half":
        kind = kind.clamp(min=1)
    order = {"columns": drawn(1, 2), "parts": drawn(2, 4), "any": drawn(0, 4)}.get(distribution, drawn(0, 1))
    return torch.stack([kind, drawn(2, 30), drawn(2, 90), order], dim=1).int()


def _described(like: torch.Tensor) -> torch.Tensor:
    """Type, rows, columns, strides, offset and device of two results, whatever order the inputs have."""
    kind, rows, cols, _ = like.unbind(dim=1)
    one = torch.ones_like(kind)
    numbers = [kind, rows, cols, cols, one, 0 * one, one]
    return torch.stack([*numbers, *numbers], dim=1)


Drawn = tuple[torch.Tensor, torch.Tensor]


def _decades(generator: torch.Generator, rows: int, cols: int) -> Drawn:
    """Row scales over four decades, from where `eps` counts to where it does not; `r` is smaller than `x`."""
    scale = 10 ** _uniform(generator, (rows, 1), -2.5, 1.5)
    return _gauss(generator, rows, cols).mul_(scale), _gauss(generator, rows, cols).mul_(0.3 * scale)


def _cancelling(generator: torch.Generator, rows: int, cols: int) -> Drawn:
    """`r` is nearly `-x`: what is left shows every digit that was thrown away."""
    x = _gauss(generator, rows, cols).mul_(5)
    return x, -x * (1 + 0.05 * _uniform(generator, (rows, cols), -1, 1))


def _peaks(generator: torch.Generator, rows: int, cols: int) -> Drawn:
    """One value that makes nearly all of the sum of squares, often in the last columns, among small ones."""
    x = _gauss(generator, rows, cols).mul_(0.1)
    row = torch.arange(rows, device=generator.device)
    place = torch.randint(cols, (rows,), generator=generator, device=generator.device)
    place[::2] = cols - 1 - place[::2] % min(cols, 5)
    x[row, place] = 30 * _sign(generator, (rows,))
    return x, _gauss(generator, rows, cols).mul_(0.1)


def _mixed(generator: torch.Generator, rows: int, cols: int) -> Drawn:
    """Rows of all the kinds above in one matrix."""
    kinds = (_decades, _cancelling, _peaks)
    x = torch.empty(rows, cols, dtype=torch.float32, device=generator.device)
    r = torch.empty_like(x)
    for number, make in enumerate(kinds[:rows]):
        count = len(range(number, rows, len(kinds)))
        x[number :: len(kinds)], r[number :: len(kinds)] = make(generator, count, cols)
    return x, r


def _gauss(generator: torch.Generator, rows: int, cols: int) -> torch.Tensor:
    return torch.randn(rows, cols, generator=generator, dtype=torch.float32, device=generator.device)


def _uniform(generator: torch.Generator, shape: tuple[int, ...], low: float, high: float) -> torch.Tensor:
    drawn = torch.empty(shape, dtype=torch.float32, device=generator.device)
    return drawn.uniform_(low, high, generator=generator)


def _sign(generator: torch.Generator, shape: tuple[int, ...]) -> torch.Tensor:
    return 1 - 2 * torch.randint(2, shape, generator=generator, device=generator.device).float()


_DISTRIBUTIONS: dict[str, Callable[[torch.Generator, int, int], Drawn]] = {
    "decades": _decades,
    "cancelling": _cancelling,
    "peaks": _peaks,
    "mixed": _mixed,
}
