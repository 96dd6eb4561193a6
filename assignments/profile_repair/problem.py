"""RMSNorm of each head and rotary embedding: the answer in float64, and how far off an honest float32 kernel may be.

With x the 128 elements of a head of a token, and i from 0 to 63:

    y[j] = x[j] / sqrt(mean of x² + eps) · weight[j]
    out[i]      = y[i] · cos[i] - y[i + 64] · sin[i]
    out[i + 64] = y[i + 64] · cos[i] + y[i] · sin[i]

Nothing is rounded in between: `y` is no output, so only the result is rounded to the type.

Error of `y`, relative to it and in units of float32's eps. The 128 squares are all positive, and a chain of them is off
by about √128 / 2 (Higham and Mary 2019), a tree by less; six are allowed, and the root halves them. The root and two
products cost three more. Each term of the rotation is a product (one half) and enters a sum (another half): seven
units of |y[i] cos| + |y[i + 64] sin| in all, whatever of the two is left. The rounding to the output's type is half an
eps of that type.

Inputs are drawn in float32: none is wider, and a case of 2^28 elements is drawn anew for every call that is timed.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

DIM = 128
HALF = DIM // 2
FLOAT32_EPS = torch.finfo(torch.float32).eps

APART = {"q": 0, "cos": 0, "sin": 0, "out": 0}


def make_inputs(
    *, generator: torch.Generator, dtype: torch.dtype, distribution: str, tokens: int, heads: int
) -> dict[str, torch.Tensor]:
    """Return `q` (tokens, heads · 128), `weight` (128), `cos`, `sin` (tokens, 64; float32), `eps` (no dimensions)."""
    weight = 10 ** _uniform(generator, (DIM,), -1, 0.5) * _sign(generator, (DIM,))
    angles = _angles(generator, tokens)
    if distribution == "quarter":
        weight = torch.ones_like(weight)
        turned = torch.randint(2, (tokens, HALF), generator=generator, device=generator.device).float()
        cos, sin = 1 - turned, turned
    else:
        cos, sin = angles.cos(), angles.sin()
    q = _DISTRIBUTIONS[distribution](generator, tokens, heads, (weight, cos, sin))
    exponent = torch.randint(-6, -3, (), generator=generator, device=generator.device)
    return {
        "q": q.to(dtype).view(tokens, heads * DIM),
        "weight": weight.to(dtype),
        "cos": cos,
        "sin": sin,
        "eps": (10.0**exponent).float(),
    }


def expected(
    *, q: torch.Tensor, weight: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, eps: torch.Tensor
) -> dict[str, torch.Tensor]:
    """Return the normalised and rotated heads in float64."""
    low, high = _normalised(q, weight, eps)
    cos, sin = cos.double()[:, None], sin.double()[:, None]
    return {"out": torch.cat([low * cos - high * sin, high * cos + low * sin], dim=2).view(q.shape)}


def error_scale(
    *, q: torch.Tensor, weight: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, eps: torch.Tensor
) -> dict[str, torch.Tensor]:
    """Return the error bound of an honest kernel per element, in units of the output type's eps."""
    finfo = torch.finfo(q.dtype)
    out = expected(q=q, weight=weight, cos=cos, sin=sin, eps=eps)["out"].abs()
    low, high = (half.abs() for half in _normalised(q, weight, eps))
    cos, sin = cos.double().abs()[:, None], sin.double().abs()[:, None]
    terms = torch.cat([low * cos + high * sin, high * cos + low * sin], dim=2).view(q.shape)
    return {"out": 0.5 * out.clamp(min=finfo.tiny) + 7 * terms * (FLOAT32_EPS / finfo.eps)}


def _normalised(q: torch.Tensor, weight: torch.Tensor, eps: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Both halves of every head, (tokens, heads, 64) each, after the norm and before the rotation."""
    x = q.double().view(q.shape[0], -1, DIM)
    scale = (x.square().mean(dim=2, keepdim=True) + eps.double()).rsqrt()
    y = x * scale * weight.double()
    return y[..., :HALF], y[..., HALF:]


Turn = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
"""`weight`, `cos` and `sin` of the case, for inputs that are made for them."""


def _angles(generator: torch.Generator, tokens: int) -> torch.Tensor:
    """Angles of rotary embedding at positions drawn for each token: neighbours in memory need not be so in the text."""
    position = torch.randint(4096, (tokens, 1), generator=generator, device=generator.device).float()
    pair = torch.arange(HALF, device=generator.device).float()
    return position * torch.exp(-math.log(10000) * pair / HALF)


def _decades(generator: torch.Generator, tokens: int, heads: int, _: Turn) -> torch.Tensor:
    """Scales of heads over five decades, and of elements over one."""
    scale = 10 ** _uniform(generator, (tokens, heads, 1), -3, 2)
    return _gauss(generator, tokens, heads).mul_(scale)


def _peaks(generator: torch.Generator, tokens: int, heads: int, _: Turn) -> torch.Tensor:
    """One value that makes nearly all of a head's sum of squares, often among the last, among small ones."""
    x = _gauss(generator, tokens, heads).mul_(0.1)
    place = torch.randint(DIM, (tokens, heads, 1), generator=generator, device=generator.device)
    place[::2] = DIM - 1 - place[::2] % 5
    return x.scatter_(2, place, 30 * _sign(generator, (tokens, heads, 1)))


def _tiny(generator: torch.Generator, tokens: int, heads: int, _: Turn) -> torch.Tensor:
    """Heads whose mean of squares is near `eps` or below, and some of zeros."""
    scale = 10 ** _uniform(generator, (tokens, heads, 1), -5, -2)
    nothing = _uniform(generator, (tokens, heads, 1), 0, 1) < 0.2
    return _gauss(generator, tokens, heads).mul_(scale).masked_fill_(nothing, 0.0)


def _large(generator: torch.Generator, tokens: int, heads: int, _: Turn) -> torch.Tensor:
    """Values up to 60000, whose squares no 16-bit type of 11 digits holds."""
    return _uniform(generator, (tokens, heads, DIM), 20000, 60000).mul_(_sign(generator, (tokens, heads, DIM)))


def _cancelling(generator: torch.Generator, tokens: int, heads: int, turn: Turn) -> torch.Tensor:
    """Of each pair the second is such that the rotation leaves a hundredth of the first, or of the second."""
    weight, cos, sin = turn
    low = _gauss(generator, tokens, heads)[..., :HALF]
    # With x[i] w[i] cos = x[i + 64] w[i + 64] sin the first is zero; a ratio within 50 keeps both in one decade or two.
    ratio = (cos / sin.abs().clamp(min=0.02).copysign(sin))[:, None] * (weight[:HALF] / weight[HALF:])
    high = low * ratio * (1 + 0.01 * _uniform(generator, (tokens, heads, HALF), -1, 1))
    return torch.cat([low, high], dim=2)


def _mixed(generator: torch.Generator, tokens: int, heads: int, _: Turn) -> torch.Tensor:
    """Heads of three kinds, side by side: scales over decades, one large value, small ones."""
    x = _gauss(generator, tokens, heads)
    kind = torch.randint(3, (tokens, heads, 1), generator=generator, device=generator.device)
    scale = 10 ** _uniform(generator, (tokens, heads, 1), -3, 2)
    x.mul_(torch.where(kind == 0, scale, torch.where(kind == 1, 0.1, 10 ** (0.6 * scale.log10() - 2.4))))
    place = torch.randint(DIM, (tokens, heads, 1), generator=generator, device=generator.device)
    peak = torch.where(kind == 1, 30 * _sign(generator, (tokens, heads, 1)), x.gather(2, place))
    return x.scatter_(2, place, peak)


def _gauss(generator: torch.Generator, tokens: int, heads: int) -> torch.Tensor:
    return torch.randn(tokens, heads, DIM, generator=generator, dtype=torch.float32, device=generator.device)


def _uniform(generator: torch.Generator, shape: tuple[int, ...], low: float, high: float) -> torch.Tensor:
    drawn = torch.empty(shape, dtype=torch.float32, device=generator.device)
    return drawn.uniform_(low, high, generator=generator)


def _sign(generator: torch.Generator, shape: tuple[int, ...]) -> torch.Tensor:
    return 1 - 2 * torch.randint(2, shape, generator=generator, device=generator.device).float()


_DISTRIBUTIONS: dict[str, Callable[[torch.Generator, int, int, Turn], torch.Tensor]] = {
    "decades": _decades,
    "quarter": _decades,
    "peaks": _peaks,
    "tiny": _tiny,
    "large": _large,
    "cancelling": _cancelling,
    "mixed": _mixed,
}
