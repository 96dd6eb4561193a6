"""Attention over a paged cache: lengths that end anywhere in a page, NaN in every place that no sequence uses.

Sequence b has the pages kv_indices[kv_indptr[b]:kv_indptr[b + 1]] in this order; the last holds last_page_len[b] keys,
the others page_size. With `kv_len` keys in all, row i of its `q_len` stands at place kv_len - q_len + i, and sees the
keys up to there, at most the latest `window` of them if window > 0:

    s[j] = scale · q[i] · k[j],  lse[i] = log Σ_j exp(s[j]),  out[i] = Σ_j exp(s[j] - lse[i]) · v[j]

Query head h reads key head h // (q_heads / kv_heads). A row that sees no key has out = 0 and lse = -inf.

Errors are those of rung 26, with p = exp(s - lse). A score is a float32 sum of `dim` products:
δs = (√dim + 4)·eps32·scale·Σ|q||k|, and the change of base and the subtracted maximum cost eps32·(2|s| + 2·max|s|)
more. Then |δout| ≤ Σ p|v|δs + |out|·Σ pδs. For tensor cores p is rounded to the input's type: eps/2 per product, in sum
at most Σ p|v|·eps/2, and with random signs about √(Σ p²v²)·eps/2, of which four are allowed. Summing n products, in
parts and then the parts, costs (√n + 8)·eps32·Σ p|v|, storing eps/2·|out|. The logarithm is off by Σ pδs, by
(√n + 8)·eps32, and by 5e-4 for those who sum the rounded p.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch

EPS32 = torch.finfo(torch.float32).eps
APART = {"q": 0, "out": 0, "lse": 0}
SUM_OF_ROUNDED = 5e-4
"""What the rounding of p may add to lse: half of float16's eps, in a row with a single key that counts."""


Table = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
"""Which pages the sequences have, int64: where each one's entries begin (batch + 1), entries, keys in last pages."""


def make_inputs(
    *,
    generator: torch.Generator,
    dtype: torch.dtype,
    distribution: str,
    batch: int,
    q_len: int,
    q_heads: int,
    kv_heads: int,
    dim: int,
    page_size: int,
    pages: int,
    entries: int,
    window: int,
) -> dict[str, torch.Tensor]:
    """Return the tensors of the manifest, and `window` and `scale`, numbers; `pages` is at least `entries`."""
    if pages < entries:
        raise ValueError(f"{entries} entries of the table need as many pages, not {pages}")
    table = _table(generator, distribution, batch, page_size, pages, entries)
    indptr, indices, last = table
    place = _places(table, page_size, pages)
    ends = (indices[indptr[1:] - 1] * page_size + last - 1)[indptr.diff() > 0]
    q = _normal(generator, batch, q_len, q_heads, dim)
    k = _normal(generator, pages * page_size, kv_heads, dim)
    v = _normal(generator, pages * page_size, kv_heads, dim)
    q, k, v = _values(generator, distribution, q, k, v, place, ends)
    k[place < 0] = torch.nan
    v[place < 0] = torch.nan
    near_usual = 0.8 + 0.4 * torch.rand((), generator=generator, device=generator.device)
    return {
        "q": q.to(dtype),
        "k_cache": k.to(dtype).view(pages, page_size, kv_heads, dim),
        "v_cache": v.to(dtype).view(pages, page_size, kv_heads, dim),
        "kv_indptr": indptr.int(),
        "kv_indices": indices.int(),
        "last_page_len": last.int(),
        "window": torch.tensor(window, dtype=torch.int64, device=generator.device),
        "scale": (near_usual / math.sqrt(dim)).float(),
    }


def expected(
    *, q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, kv_indptr: torch.Tensor,
    kv_indices: torch.Tensor, last_page_len: torch.Tensor, window: torch.Tensor, scale: torch.Tensor,
    at: torch.Tensor | None = None, length: int = 0,
) -> dict[str, torch.Tensor]:  # fmt: skip
    """Return `out` and `lse`, in float64; q has the sequences `at` of `length`, all of them if it is `None`."""
    del length
    out = torch.zeros(q.shape, dtype=torch.float64, device=q.device)
    lse = torch.full(q.shape[:3], -torch.inf, dtype=torch.float64, device=q.device)
    slots = _slots(k_cache, kv_indptr, kv_indices, last_page_len, q, at)
    for place, rows, keys, values in _groups(q, k_cache, v_cache, slots):
        scores = _scores(rows, keys, int(window), scale)
        sums = torch.logsumexp(scores, dim=-1)
        lse[place] = _by_query(sums)
        out[place] = _by_query(_probabilities(scores, sums) @ values[:, None])
    return {"out": out, "lse": lse}


def error_scale(
    *, q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, kv_indptr: torch.Tensor,
    kv_indices: torch.Tensor, last_page_len: torch.Tensor, window: torch.Tensor, scale: torch.Tensor,
    at: torch.Tensor | None = None, length: int = 0,
) -> dict[str, torch.Tensor]:  # fmt: skip
    """Return the error bounds of an honest kernel per element, in units of the outputs' eps; arguments as above."""
    del length
    eps, tiny = torch.finfo(q.dtype).eps, torch.finfo(q.dtype).tiny
    out_scale = torch.full(q.shape, tiny, dtype=torch.float64, device=q.device)
    lse_scale = torch.zeros(q.shape[:3], dtype=torch.float64, device=q.device)
    slots = _slots(k_cache, kv_indptr, kv_indices, last_page_len, q, at)
    for place, rows, keys, values in _groups(q, k_cache, v_cache, slots):
        scores = _scores(rows, keys, int(window), scale)
        p, v = _probabilities(scores, torch.logsumexp(scores, dim=-1)), values[:, None]
        summing = (math.sqrt(keys.shape[1]) + 8) * EPS32
        largest = scores.masked_fill(scores.isinf(), 0.0).abs().amax(dim=-1, keepdim=True)
        off = (rows.abs() @ keys.abs().mT[:, None]) * scale.double() * (math.sqrt(q.shape[3]) + 4)
        weighed = p * (off + 4 * largest) * EPS32
        out, absolute = p @ v, p @ v.abs()
        shifted = weighed.sum(dim=-1, keepdim=True)
        rounding = torch.minimum(absolute, 4 * (p.square() @ v.square()).sqrt()) + out.abs().clamp(min=tiny)
        shares = (weighed @ v.abs() + out.abs() * shifted + summing * absolute) / eps + 0.5 * rounding
        out_scale[place] = _by_query(shares)
        lse_scale[place] = _by_query((shifted[..., 0] + summing + SUM_OF_ROUNDED) / EPS32)
    return {"out": out_scale, "lse": lse_scale}


# --- the oracle's parts ----------------------------------------------------------------------------------------------


Place = tuple[int, slice, slice]
AT_ONCE = 2**25
"""Scores, or elements of keys, that are held beside each other in float64; some ten tensors are as large."""


def _slots(
    cache: torch.Tensor, indptr: torch.Tensor, indices: torch.Tensor, last: torch.Tensor, q: torch.Tensor,
    at: torch.Tensor | None,
) -> list[torch.Tensor]:  # fmt: skip
    """For each sequence of q, where its keys lie: numbers of slots in the flattened cache, in the sequence's order."""
    page_size = cache.shape[1]
    within = torch.arange(page_size, device=q.device)
    starts, filled = indptr.tolist(), last.tolist()
    found = []
    for b in range(q.shape[0]) if at is None else at.tolist():
        mine = indices[starts[b] : starts[b + 1]].long()
        kv_len = max(0, (len(mine) - 1) * page_size + filled[b]) if len(mine) else 0
        found.append((mine[:, None] * page_size + within).flatten()[:kv_len])
    return found


def _groups(
    q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, slots: list[torch.Tensor]
) -> Iterator[tuple[Place, torch.Tensor, torch.Tensor, torch.Tensor]]:
    """Of every sequence that has keys, as many key heads at a time as fit, in float64.

    Yields:
        where the answers go; rows (key heads, query heads of each, q_len, dim); keys and values (key heads, keys, dim).
    """
    kv_heads = k_cache.shape[2]
    ratio = q.shape[2] // kv_heads
    k, v = k_cache.flatten(0, 1), v_cache.flatten(0, 1)
    for b, mine in enumerate(slots):
        if not len(mine):
            continue
        step = max(1, AT_ONCE // (max(ratio * q.shape[1], q.shape[3]) * len(mine)))
        for first in range(0, kv_heads, step):
            heads = slice(first, min(first + step, kv_heads))
            place = (b, slice(None), slice(heads.start * ratio, heads.stop * ratio))
            rows = q[place].double().permute(1, 0, 2).unflatten(0, (-1, ratio))
            yield place, rows, k[mine, heads].double().transpose(0, 1), v[mine, heads].double().transpose(0, 1)


def _by_query(grouped: torch.Tensor) -> torch.Tensor:
    """(key heads, query heads of each, q_len, …) as (q_len, query heads, …)."""
    return grouped.flatten(0, 1).transpose(0, 1)


def _scores(rows: torch.Tensor, keys: torch.Tensor, window: int, scale: torch.Tensor) -> torch.Tensor:
    scores = (rows @ keys.mT[:, None]) * scale.double()
    q_len, kv_len = scores.shape[-2:]
    number = torch.arange(kv_len, device=rows.device)
    last = torch.arange(q_len, device=rows.device)[:, None] + (kv_len - q_len)
    hidden = number > last
    if window > 0:
        hidden |= number <= last - window
    return scores.masked_fill(hidden, -torch.inf)


def _probabilities(scores: torch.Tensor, lse: torch.Tensor) -> torch.Tensor:
    """exp(s - lse); zeros in a row that sees no key."""
    return torch.exp(scores - lse.masked_fill(lse.isinf(), 0.0)[..., None])


# --- what is drawn ---------------------------------------------------------------------------------------------------


def _table(
    generator: torch.Generator, distribution: str, batch: int, page_size: int, pages: int, entries: int
) -> Table:
    """Pages in a random order. Lengths are at the edges of pages, or spread from 1 to 8 with half a page missing."""
    edges = distribution == "edges"
    used = min(entries, batch - max(1, batch // 4) if edges and batch > 1 else batch)
    weight = 8 ** _spread(generator, used, 0.0, 1.0).double()
    if edges and used > 1:
        weight[0] = 0.0  # It has a single key.
    count = 1 + ((entries - used) * (weight / weight.sum())).long()
    late = torch.arange(used, device=generator.device).flip(0) < entries - int(count.sum())
    count += late
    missing = _missing(generator, used, page_size, edges=edges)
    who = torch.randperm(batch, generator=generator, device=generator.device)[:used]
    counts = torch.zeros(batch, dtype=torch.int64, device=generator.device)
    last = torch.zeros_like(counts)
    counts[who], last[who] = count, page_size - missing
    indptr = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    indices = torch.randperm(pages, generator=generator, device=generator.device)[:entries]
    if distribution == "shared":
        indices = _shared(indices, indptr)
    return indptr, indices, last


def _missing(generator: torch.Generator, used: int, page_size: int, *, edges: bool) -> torch.Tensor:
    """How many keys the last pages lack: (used · (page_size - 1)) // 2 in all; at edges all but one, none, in turn."""
    if edges:
        return (torch.arange(used, device=generator.device) + 1) % 2 * (page_size - 1)
    half = torch.randint(0, page_size, (used // 2,), generator=generator, device=generator.device)
    middle = half.new_full((used % 2,), (page_size - 1) // 2)
    together = torch.cat([half, page_size - 1 - half, middle])
    return together[torch.randperm(used, generator=generator, device=generator.device)]


def _shared(indices: torch.Tensor, indptr: torch.Tensor) -> torch.Tensor:
    """All sequences begin with the same pages, as those that share a prompt do; the last page is everyone's own."""
    start = indptr[:-1].repeat_interleave(indptr.diff())
    end = indptr[1:].repeat_interleave(indptr.diff())
    entry = torch.arange(len(indices), device=indices.device)
    longest = int(indptr.diff().argmax())
    most = int(indptr.diff().max())
    shared = (entry < end - 1) & (entry - start < max(1, most // 2))
    return torch.where(shared, indices[indptr[longest] + (entry - start).clamp(max=most - 1)], indices)


def _places(table: Table, page_size: int, pages: int) -> torch.Tensor:
    """For each slot of the cache the place in its sequence, (pages · page_size); -1 where no key is."""
    indptr, indices, last = table
    entry, counts = torch.arange(len(indices), device=indices.device), indptr.diff()
    first = indptr[:-1].repeat_interleave(counts)
    is_last = entry == indptr[1:].repeat_interleave(counts) - 1
    filled = torch.where(is_last, last.repeat_interleave(counts), page_size)
    slot = torch.arange(page_size, device=entry.device)
    number = (entry - first)[:, None] * page_size + slot
    place = torch.full((pages, page_size), -1, dtype=torch.int64, device=entry.device)
    place[indices] = torch.where(slot < filled[:, None], number, -1)
    return place.flatten()


Three = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def _values(
    generator: torch.Generator, distribution: str, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
    place: torch.Tensor, ends: torch.Tensor,
) -> Three:  # fmt: skip
    """What stands in q and, slot by slot, in k and v: each distribution is described where it is made.

    `place` is that of each slot in its sequence, and `ends` are the slots of the sequences' last keys.
    """
    if distribution == "late":
        # Some keys that every row looks for, at random places and at the very end; what they hold is large.
        direction = torch.ones(q.shape[3], dtype=torch.float32, device=q.device)
        used = (place >= 0).nonzero()[:, 0]
        chosen = torch.randperm(len(used), generator=generator, device=generator.device)[: max(1, len(used) // 24)]
        k[used[chosen]] += 2.0 * direction
        k[ends] += 1.5 * direction
        v[used[chosen]] *= 4.0
        return 0.5 * q + 0.5 * direction, k, v
    if distribution == "readable":
        # All scores are equal, and v[j] is j + 1 with a sign: a row's answer is the mean of the keys that it sees.
        sign = 1.0 - 2.0 * torch.randint(0, 2, (v.shape[2],), generator=generator, device=generator.device).float()
        return q.sign(), torch.zeros_like(k), (place + 1).float()[:, None, None] * sign + torch.zeros_like(v)
    # Rows of q from nearly uniform to peaked, columns of v over two decades, each in a random order.
    rows = 10 ** _spread(generator, q.shape[0] * q.shape[1] * q.shape[2], -1.5, 0.5)
    q = q * rows.view(*q.shape[:3], 1)
    v *= 10 ** _spread(generator, v.shape[2], -1.0, 1.0)
    if distribution == "sharp":
        # Scores fifty times as large as usual: without the maximum subtracted, exp is infinite, or zero everywhere.
        return q.clamp(-3, 3) * 50**0.5, k * 50**0.5, v
    if distribution not in {"ragged", "edges", "shared"}:
        raise ValueError(distribution)
    return q, k, v


def _spread(generator: torch.Generator, count: int, low: float, high: float) -> torch.Tensor:
    """Numbers from `low` to `high`, evenly, in a random order."""
    even = torch.linspace(low, high, count, dtype=torch.float32, device=generator.device)
    return even[torch.randperm(count, generator=generator, device=generator.device)]


def _normal(generator: torch.Generator, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=generator, dtype=torch.float32, device=generator.device)
