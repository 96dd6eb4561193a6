"""What tests and `reference/measure.py` have to know of paged attention. Staff only."""

from __future__ import annotations

import torch
from torch.nn import functional

_SHAPE = dict.fromkeys(
    ("batch", "q_len", "q_heads", "kv_heads", "dim", "page_size", "pages", "entries", "window"), 1
)  # fmt: skip
SIZES = (
    _SHAPE,
    _SHAPE | {"batch": 3, "q_len": 4, "q_heads": 4, "kv_heads": 2, "dim": 8, "page_size": 3, "pages": 9, "entries": 7},
    _SHAPE | {"batch": 2, "q_heads": 2, "dim": 40, "page_size": 16, "pages": 20, "entries": 17, "window": 0},
)
COUNTED: frozenset[str] = frozenset()
"""Products of matrices are counted by torch's own counter; the exponentials are not counted, as everywhere."""
DRAWN = frozenset({"edges", "shared", "window", "window_and_edges", "chunk_longer", "chunk_window"})
"""Cases where what is drawn decides how much there is to do: the formulas of cost are exact in all others."""

Tensors = dict[str, torch.Tensor]


def oracle(**inputs: torch.Tensor) -> Tensors:
    """The exercise's arithmetic, row by row, over the keys that a row sees."""
    q, window, scale = inputs["q"], int(inputs["window"]), inputs["scale"].double()
    out, lse = torch.zeros_like(q, dtype=torch.float64), torch.full(q.shape[:3], -torch.inf, dtype=torch.float64)
    ratio, q_len = q.shape[2] // inputs["k_cache"].shape[2], q.shape[1]
    for b in range(q.shape[0]):
        k, v = _keys(b, inputs, "k_cache"), _keys(b, inputs, "v_cache")
        for i in range(q_len):
            end = len(k) - q_len + i + 1
            start = max(0, end - window) if window else 0
            for h in range(q.shape[2] if end > 0 else 0):
                scores = q[b, i, h : h + 1].double() @ k[start:end, h // ratio].double().T * scale
                lse[b, i, h] = torch.logsumexp(scores, 1)
                out[b, i, h] = (torch.exp(scores - lse[b, i, h]) @ v[start:end, h // ratio].double())[0]
    return {"out": out, "lse": lse}


def honest(**inputs: torch.Tensor) -> Tensors:
    """The answer as plain torch computes it in float32, rounded once, which has to pass."""
    q, window = inputs["q"], int(inputs["window"])
    ratio = q.shape[2] // inputs["k_cache"].shape[2]
    out, lse = torch.zeros_like(q), torch.full(q.shape[:3], -torch.inf)
    for b in range(q.shape[0]):
        k, v = (_keys(b, inputs, name).float().repeat_interleave(ratio, 1) for name in ("k_cache", "v_cache"))
        if not len(k):
            continue
        scores = torch.einsum("ihd,jhd->hij", q[b].float(), k) * inputs["scale"]
        last = torch.arange(q.shape[1])[:, None] + (len(k) - q.shape[1])
        key = torch.arange(len(k))
        scores = scores.masked_fill((key > last) | ((key <= last - window) if window else False), -torch.inf)
        sums = torch.logsumexp(scores, dim=-1)
        p = torch.exp(scores - sums.masked_fill(sums.isinf(), 0.0)[..., None])
        out[b], lse[b] = torch.einsum("hij,jhd->ihd", p, v).to(q.dtype), sums.T
    return {"out": out, "lse": lse}


def unread(**inputs: torch.Tensor) -> int:
    """Bytes of the inputs that no answer depends on: places without a key."""
    cache = inputs["k_cache"]
    used = torch.zeros(cache.shape[:2], dtype=torch.bool)
    for b in range(inputs["q"].shape[0]):
        pages = _pages(b, inputs)
        used[pages[:-1]] = True
        used[pages[-1:], : int(inputs["last_page_len"][b])] = True
    return 2 * int((~used).sum()) * cache.shape[2] * cache.shape[3] * cache.element_size()


def library(q: torch.Tensor, *others: torch.Tensor) -> None:
    """Pages gathered and torch's operator called, sequence by sequence: it writes no lse, and knows no window."""
    names = ("k_cache", "v_cache", "kv_indptr", "kv_indices", "last_page_len")
    inputs, out, scale = dict(zip(names, others, strict=False)), others[5], float(others[-1])
    for b in range(q.shape[0]):
        k, v = (_keys(b, inputs, name).transpose(0, 1)[None] for name in ("k_cache", "v_cache"))
        seen = torch.ones(q.shape[1], k.shape[2], dtype=torch.bool, device=q.device).tril(k.shape[2] - q.shape[1])
        rows = q[b].transpose(0, 1)[None]
        out[b] = functional.scaled_dot_product_attention(
            rows, k, v, attn_mask=None if q.shape[1] == 1 else seen, scale=scale, enable_gqa=True
        )[0].transpose(0, 1)


def _pages(b: int, inputs: Tensors) -> torch.Tensor:
    indptr = inputs["kv_indptr"]
    return inputs["kv_indices"][int(indptr[b]) : int(indptr[b + 1])].long()


def _keys(b: int, inputs: Tensors, name: str) -> torch.Tensor:
    """One sequence's keys or values, (kv_len, kv_heads, dim)."""
    pages, cache = _pages(b, inputs), inputs[name]
    missing = cache.shape[1] - int(inputs["last_page_len"][b]) if len(pages) else 0
    whole = cache[pages].flatten(0, 1)
    return whole[: len(whole) - missing]
