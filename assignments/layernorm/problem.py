"""LayerNorm and RMSNorm: rows that cancel in a careless variance, the answer in float64, how far off float32 may be.

    out[i, j] = (x[i, j] - m[i]) / sqrt(v[i] + eps) · weight[j] + bias[j],    v[i] = mean of (x[i, :] - m[i])²

with m[i] the mean of the row where `center` is 1, and 0 where it is 0.

Error of an honest float32 kernel, in units of eps and with r = 1/sqrt(v + eps). The mean of n numbers is off by at most
a few roundings of sums as large as mean|x|, in any sensible order (Higham and Mary 2019); four are allowed, and every
element of the row is off by |weight|·r times that. A mean that is off by d makes v larger by d², and r smaller by
r·d²/(2·(v + eps)). The sum of the squares, all positive, the root and the product cost six more of |out - bias|, the
last sum half of |out|, and the rounding to the output's type half an eps of that type.

Inputs are drawn in float32: none is wider, and a case of 2^28 elements is drawn anew for every call that is timed.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

FLOAT32_EPS = torch.finfo(torch.float32).eps
APART = {"x": 0, "out": 0}


def make_inputs(
    *, generator: torch.Generator, dtype: torch.dtype, distribution: str, rows: int, cols: int
) -> dict[str, torch.Tensor]:
    """Return `x` of (rows, cols), `weight` and `bias` of (cols), `eps` (float32) and `center` (int64) of no dimensions.

    Distributions whose name begins with `rms_` have `center` 0.
    """
    name = distribution.removeprefix("rms_")
    x = _DISTRIBUTIONS[name](generator, rows, cols)
    weight = 10 ** _uniform(generator, (cols,), -1, 0.5) * _sign(generator, (cols,))
    exponent = torch.randint(-6, -3, (), generator=generator, device=generator.device)
    return {
        # The scale and offset of a row must say nothing about its place.
        "x": x.to(dtype)[torch.randperm(rows, generator=generator, device=generator.device)],
        "weight": weight.to(dtype),
        "bias": _uniform(generator, (cols,), -2, 2).to(dtype),
        "eps": (10.0**exponent).float(),
        "center": torch.tensor(int(name == distribution), device=generator.device),
    }


def expected(
    *, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: torch.Tensor, center: torch.Tensor
) -> dict[str, torch.Tensor]:
    """Return the normalised rows, in float64."""
    rest, scale = _normal_form(x, eps, center)
    return {"out": rest * scale * weight.double() + bias.double()}


def error_scale(
    *, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: torch.Tensor, center: torch.Tensor
) -> dict[str, torch.Tensor]:
    """Return the error bound of an honest kernel per element, in units of the output type's eps."""
    rest, scale = _normal_form(x, eps, center)
    wide = weight.double()
    scaled = rest * scale * wide
    out = scaled + bias.double()
    of_mean = 4 * x.double().abs().mean(dim=1, keepdim=True) * center.double()
    widened = 0.5 * FLOAT32_EPS * (of_mean * scale).square()
    arithmetic = of_mean * scale * wide.abs() + scaled.abs() * (6 + widened) + 0.5 * out.abs()
    finfo = torch.finfo(x.dtype)
    rounding = 0.5 * out.abs().clamp(min=finfo.tiny)
    return {"out": rounding + arithmetic * (FLOAT32_EPS / finfo.eps)}


def _normal_form(x: torch.Tensor, eps: torch.Tensor, center: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """What is left of every row without its mean, and by what it is multiplied."""
    wide = x.double()
    rest = wide - wide.mean(dim=1, keepdim=True) * center.double()
    return rest, (rest.square().mean(dim=1, keepdim=True) + eps.double()).rsqrt()


def _decades(generator: torch.Generator, rows: int, cols: int) -> torch.Tensor:
    """Row scales over five decades, from where `eps` counts to where it does not, and offsets of the same size."""
    scale = 10 ** _uniform(generator, (rows, 1), -3, 2)
    return _gauss(generator, rows, cols).add_(_uniform(generator, (rows, 1), -3, 3)).mul_(scale)


def _offset(generator: torch.Generator, rows: int, cols: int) -> torch.Tensor:
    """Means that are 300 to 10000 times the deviation, with either sign: mean(x²) - mean² has no digit left."""
    scale = 10 ** _uniform(generator, (rows, 1), -1, 0.3)
    mean = scale * 10 ** _uniform(generator, (rows, 1), 2.5, 4) * _sign(generator, (rows, 1))
    return _gauss(generator, rows, cols).mul_(scale).add_(mean)


def _constant(generator: torch.Generator, rows: int, cols: int) -> torch.Tensor:
    """Rows of one value, whose variance is zero, and rows of two values."""
    value = torch.randint(-40, 40, (rows, 1), generator=generator, device=generator.device).float()
    other = torch.randint(0, 2, (rows, cols), generator=generator, dtype=torch.float32, device=generator.device)
    other[::2] = 0
    return value + other


def _peaks(generator: torch.Generator, rows: int, cols: int) -> torch.Tensor:
    """One value that makes nearly all of the variance, often in the last columns, among small ones."""
    x = _gauss(generator, rows, cols).mul_(0.1)
    row = torch.arange(rows, device=generator.device)
    place = torch.randint(cols, (rows,), generator=generator, device=generator.device)
    place[::2] = cols - 1 - place[::2] % min(cols, 5)
    x[row, place] = 30 * _sign(generator, (rows,))
    return x


def _special(generator: torch.Generator, rows: int, cols: int) -> torch.Tensor:
    """Every other row has one infinity or NaN, often last: that row is NaN everywhere, and no other one is."""
    x = _decades(generator, rows, cols)
    kinds = torch.tensor([torch.inf, -torch.inf, torch.nan], device=generator.device)
    row = torch.arange(0, rows, 2, device=generator.device)
    place = torch.randint(cols, row.shape, generator=generator, device=generator.device)
    place[::2] = cols - 1
    x[row, place] = kinds[row // 2 % len(kinds)]
    return x


def _largest(generator: torch.Generator, rows: int, cols: int) -> torch.Tensor:
    """Numbers of both signs from half of float16's largest on: float32 has room for their squares."""
    return _uniform(generator, (rows, cols), 0.5, 1) * _sign(generator, (rows, cols)) * torch.finfo(torch.float16).max


def _mixed(generator: torch.Generator, rows: int, cols: int) -> torch.Tensor:
    """Rows of all the kinds above in one matrix."""
    kinds = (_decades, _offset, _constant, _peaks)
    x = torch.empty(rows, cols, dtype=torch.float32, device=generator.device)
    for number, make in enumerate(kinds[:rows]):
        count = len(range(number, rows, len(kinds)))
        x[number :: len(kinds)] = make(generator, count, cols)
    return x


def _gauss(generator: torch.Generator, rows: int, cols: int) -> torch.Tensor:
    return torch.randn(rows, cols, generator=generator, dtype=torch.float32, device=generator.device)


def _uniform(generator: torch.Generator, shape: tuple[int, ...], low: float, high: float) -> torch.Tensor:
    drawn = torch.empty(shape, dtype=torch.float32, device=generator.device)
    return drawn.uniform_(low, high, generator=generator)


def _sign(generator: torch.Generator, shape: tuple[int, ...]) -> torch.Tensor:
    return 1 - 2 * torch.randint(2, shape, generator=generator, device=generator.device).float()


_DISTRIBUTIONS: dict[str, Callable[[torch.Generator, int, int], torch.Tensor]] = {
    "decades": _decades,
    "offset": _offset,
    "constant": _constant,
    "peaks": _peaks,
    "special": _special,
    "largest": _largest,
    "mixed": _mixed,
}
