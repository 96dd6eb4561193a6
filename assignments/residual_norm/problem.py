"""Residual addition and RMSNorm: both answers in float64, and how far off an honest float32 kernel may be.

    s[i, j] = x[i, j] + r[i, j],    out[i, j] = s[i, j] / sqrt(mean of s[i, :]² + eps) · weight[j]

`s` has to be exact in its type. The sum of two numbers of p bits, rounded to P ≥ 2p + 2 bits and then to p, is the same
as rounded once (Figueroa 1995): float32 holds that for float16 and bfloat16, and float64 for float32. The norm is of
the `s` that was rounded; of the sum before that it would differ by up to half an eps of the type in every element.

Error of `out`, relative to it and in units of float32's eps. The squares are all positive, and chains of L of them are
off by about √L/2 (Higham and Mary 2019), a tree above them by less; four are allowed, and the root halves them. The
root and two products cost three more. The rounding to the output's type is half an eps of that type.

Inputs are drawn in float32: none is wider, and a case of 2^27 elements is drawn anew for every call that is timed.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

FLOAT32_EPS = torch.finfo(torch.float32).eps

APART = {"x": 0, "r": 0, "s": 0, "out": 0}


def make_inputs(
    *, generator: torch.Generator, dtype: torch.dtype, distribution: str, rows: int, cols: int
) -> dict[str, torch.Tensor]:
    """Return `x` and `r` of (rows, cols), `weight` of (cols) and `eps` of no dimensions (float32)."""
    x, r = _DISTRIBUTIONS[distribution](generator, rows, cols)
    order = torch.randperm(rows, generator=generator, device=generator.device)
    weight = 10 ** _uniform(generator, (cols,), -1, 0.5) * _sign(generator, (cols,))
    exponent = torch.randint(-6, -3, (), generator=generator, device=generator.device)
    return {
        # The scale of a row must say nothing about its place.
        "x": x.to(dtype)[order],
        "r": r.to(dtype)[order],
        "weight": weight.to(dtype),
        "eps": (10.0**exponent).float(),
    }


def expected(*, x: torch.Tensor, r: torch.Tensor, weight: torch.Tensor, eps: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the sum as its type holds it, and the norm of that, in float64."""
    s = (x.double() + r.double()).to(x.dtype).double()
    scale = (s.square().mean(dim=1, keepdim=True) + eps.double()).rsqrt()
    return {"s": s, "out": s * scale * weight.double()}


def error_scale(
    *, x: torch.Tensor, r: torch.Tensor, weight: torch.Tensor, eps: torch.Tensor
) -> dict[str, torch.Tensor]:
    """Return the error bound of an honest kernel per element, in units of the output type's eps; zero for the sum."""
    out = expected(x=x, r=r, weight=weight, eps=eps)["out"].abs()
    finfo = torch.finfo(x.dtype)
    arithmetic = 5 * out * (FLOAT32_EPS / finfo.eps)
    return {"s": torch.zeros_like(out), "out": 0.5 * out.clamp(min=finfo.tiny) + arithmetic}


Drawn = tuple[torch.Tensor, torch.Tensor]


def _decades(generator: torch.Generator, rows: int, cols: int) -> Drawn:
    """Row scales over five decades, from where `eps` counts to where it does not; `r` is smaller than `x`."""
    scale = 10 ** _uniform(generator, (rows, 1), -3, 2)
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


def _zeros(generator: torch.Generator, rows: int, cols: int) -> Drawn:
    """Half of all sums are zeros with signs: -0 + -0 is -0, every other one is +0."""
    x, r = _decades(generator, rows, cols)
    zero = _uniform(generator, (rows, cols), 0, 1) < 0.5
    zeros = [torch.zeros(rows, cols, device=x.device).copysign_(_sign(generator, (rows, cols))) for _ in range(2)]
    return torch.where(zero, zeros[0], x), torch.where(zero, zeros[1], r)


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
    "zeros": _zeros,
    "mixed": _mixed,
}
