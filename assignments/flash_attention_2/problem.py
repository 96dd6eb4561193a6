"""Attention: inputs in which every key can matter, the answer in float64, and how far off an honest kernel may be.

    s[i, j] = scale · q[i] · k[j],  lse[i] = log Σ_j exp(s[i, j]),  out[i] = Σ_j exp(s[i, j] - lse[i]) · v[j]

over the keys j that row i sees. Query head h reads key head h // (q_heads / kv_heads). If `causal`, row i sees the keys
j ≤ i + kv_len - q_len: the last row sees all of them. A row that sees none has out = 0 and lse = -inf.

Errors, with p = exp(s - lse). A score is a float32 sum of `dim` products: δs = (√dim + 4)·eps32·scale·Σ|q||k|, and the
change of base and the subtracted maximum cost eps32·(2|s| + 2·max|s|) more. Then |δout| ≤ Σ p|v|δs + |out|·Σ pδs. For
tensor cores p is rounded to the input's type: eps/2 per product, in sum at most Σ p|v|·eps/2, and with random signs
about √(Σ p²v²)·eps/2, of which four are allowed. Summing n products costs (√n + 8)·eps32·Σ p|v|, storing eps/2·|out|.
The logarithm is off by Σ pδs, by (√n + 8)·eps32, and by 5e-4 for those who sum the rounded p.

Inputs are drawn in float32: none is wider, and a case of 2^24 elements is drawn anew for every call that is timed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch

EPS32 = torch.finfo(torch.float32).eps
APART = {"q": 2, "out": 2, "lse": 2}
SUM_OF_ROUNDED = 5e-4
"""What the rounding of p may add to lse: half of float16's eps, in a row with a single key that counts."""


def make_inputs(
    *,
    generator: torch.Generator,
    dtype: torch.dtype,
    distribution: str,
    batch: int,
    q_heads: int,
    kv_heads: int,
    q_len: int,
    kv_len: int,
    dim: int,
    causal: int,
) -> dict[str, torch.Tensor]:
    """Return `q`, `k` and `v` of shapes (batch, heads, length, dim), and `causal` and `scale`, numbers."""
    q = _normal(generator, batch, q_heads, q_len, dim)
    k = _normal(generator, batch, kv_heads, kv_len, dim)
    v = _normal(generator, batch, kv_heads, kv_len, dim)
    q, k, v = _DISTRIBUTIONS[distribution](generator, q, k, v)
    near_usual = 0.8 + 0.4 * torch.rand((), generator=generator, device=generator.device)
    return {
        "q": q.to(dtype),
        "k": k.to(dtype),
        "v": v.to(dtype),
        "causal": torch.tensor(causal, dtype=torch.int64, device=generator.device),
        "scale": (near_usual / math.sqrt(dim)).float(),
    }


def expected(
    *, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: torch.Tensor, scale: torch.Tensor,
    at: torch.Tensor | None = None, length: int = 0,
) -> dict[str, torch.Tensor]:  # fmt: skip
    """Return `out` and `lse`, in float64; q has the rows `at` of `length`."""
    seen = _seen(q, k, causal, at, length)
    out, lse = torch.empty(q.shape, dtype=torch.float64, device=q.device), _empty_rows(q)
    for place, other in _heads(q, k):
        scores = _scores(q[place], k[other], seen, scale)
        lse[place] = torch.logsumexp(scores, dim=-1)
        out[place] = _probabilities(scores, lse[place]) @ v[other].double()
    return {"out": out, "lse": lse}


def error_scale(
    *, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: torch.Tensor, scale: torch.Tensor,
    at: torch.Tensor | None = None, length: int = 0,
) -> dict[str, torch.Tensor]:  # fmt: skip
    """Return the error bounds of an honest kernel per element, in units of the outputs' eps; rows as in `expected`."""
    seen = _seen(q, k, causal, at, length)
    eps, tiny = torch.finfo(q.dtype).eps, torch.finfo(q.dtype).tiny
    out_scale, lse_scale = torch.empty(q.shape, dtype=torch.float64, device=q.device), _empty_rows(q)
    summing = (math.sqrt(k.shape[2]) + 8) * EPS32
    for place, other in _heads(q, k):
        scores = _scores(q[place], k[other], seen, scale)
        p = _probabilities(scores, torch.logsumexp(scores, dim=-1))
        values = v[other].double()
        largest = scores.masked_fill(scores.isinf(), 0.0).abs().amax(dim=-1, keepdim=True)
        off = (q[place].double().abs() @ k[other].double().abs().T) * scale.double() * (math.sqrt(q.shape[3]) + 4)
        weighed = p * (off + 4 * largest) * EPS32
        out, absolute = p @ values, p @ values.abs()
        shifted = weighed.sum(dim=-1, keepdim=True)
        rounding = torch.minimum(absolute, 4 * (p.square() @ values.square()).sqrt()) + out.abs().clamp(min=tiny)
        out_scale[place] = (weighed @ values.abs() + out.abs() * shifted + summing * absolute) / eps + 0.5 * rounding
        lse_scale[place] = (shifted[:, 0] + summing + SUM_OF_ROUNDED) / EPS32
    return {"out": out_scale, "lse": lse_scale}


def _empty_rows(q: torch.Tensor) -> torch.Tensor:
    return torch.empty(q.shape[:3], dtype=torch.float64, device=q.device)


def _heads(q: torch.Tensor, k: torch.Tensor) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Every query head and the key head that it reads: one at a time, so that long rows fit in memory."""
    ratio = q.shape[1] // k.shape[1]
    for batch in range(q.shape[0]):
        for head in range(q.shape[1]):
            yield (batch, head), (batch, head // ratio)


def _seen(
    q: torch.Tensor, k: torch.Tensor, causal: torch.Tensor, at: torch.Tensor | None, length: int
) -> torch.Tensor | None:
    """How many keys each row of q sees, none of them or fewer than none included; `None`: all of them."""
    if not bool(causal):
        return None
    rows = torch.arange(q.shape[2], device=q.device) if at is None else at
    return rows + 1 + (k.shape[2] - (length or q.shape[2]))


def _scores(q: torch.Tensor, k: torch.Tensor, seen: torch.Tensor | None, scale: torch.Tensor) -> torch.Tensor:
    scores = (q.double() @ k.double().T) * scale.double()
    if seen is None:
        return scores
    return scores.masked_fill(torch.arange(k.shape[0], device=q.device) >= seen[:, None], -torch.inf)


def _probabilities(scores: torch.Tensor, lse: torch.Tensor) -> torch.Tensor:
    """exp(s - lse); zeros in a row that sees no key."""
    return torch.exp(scores - lse.masked_fill(lse.isinf(), 0.0)[:, None])


Three = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def _decades(generator: torch.Generator, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Three:
    """Rows of q from nearly uniform to peaked, columns of v over two decades, each in a random order."""
    rows = 10 ** _spread(generator, q.shape[2], -1.5, 0.5)
    columns = 10 ** _spread(generator, v.shape[3], -1.0, 1.0)
    return q * rows[:, None], k, v * columns


def _sharp(generator: torch.Generator, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Three:
    """Scores fifty times as large as usual: without the maximum subtracted, exp is infinite, or zero everywhere."""
    q, k, v = _decades(generator, q, k, v)
    return q.clamp(-3, 3) * 50**0.5, k * 50**0.5, v


def _far_below(generator: torch.Generator, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Three:
    """All scores lie near -12800: a mask of -10000 would be above them."""
    size = (12800**2 / q.shape[3]) ** 0.25
    sign = 1.0 - 2.0 * torch.randint(0, 2, (q.shape[3],), generator=generator, device=generator.device).float()
    return size * sign + torch.zeros_like(q), -size * sign + 0.01 * k, v


def _late(generator: torch.Generator, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Three:
    """A few keys that every row looks for, at random places and at the very end; what they hold is large."""
    direction = torch.ones(q.shape[3], dtype=torch.float32, device=q.device)
    count = max(1, k.shape[2] // 24)
    wanted = torch.randperm(k.shape[2], generator=generator, device=generator.device)[:count]
    k[:, :, wanted] += 2.0 * direction
    k[:, :, -1] += 1.5 * direction
    v[:, :, wanted] *= 4.0
    return 0.5 * q + 0.5 * direction, k, v


def _readable(generator: torch.Generator, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Three:
    """All scores are equal, and v[j] = j + 1: a row's answer is the mean of the keys it sees."""
    number = torch.arange(1, k.shape[2] + 1, dtype=torch.float32, device=q.device)
    sign = 1.0 - 2.0 * torch.randint(0, 2, (v.shape[3],), generator=generator, device=generator.device).float()
    return q.sign(), torch.zeros_like(k), number[:, None] * sign + torch.zeros_like(v)


def _spread(generator: torch.Generator, count: int, low: float, high: float) -> torch.Tensor:
    """Numbers from `low` to `high`, evenly, in a random order."""
    even = torch.linspace(low, high, count, dtype=torch.float32, device=generator.device)
    return even[torch.randperm(count, generator=generator, device=generator.device)]


def _normal(generator: torch.Generator, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=generator, dtype=torch.float32, device=generator.device)


_DISTRIBUTIONS: dict[str, Callable[[torch.Generator, torch.Tensor, torch.Tensor, torch.Tensor], Three]] = {
    "decades": _decades,
    "sharp": _sharp,
    "late": _late,
    "far_below": _far_below,
    "readable": _readable,
}
