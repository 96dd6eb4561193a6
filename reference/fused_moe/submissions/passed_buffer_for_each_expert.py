"""Right: every expert has a buffer with room for all tokens, filled in the order of tokens, and three batched kernels."""

import torch
import triton
import triton.language as tl


@triton.jit
def _rank_kernel(logits_ptr, chosen_ptr, experts, top, EXPERTS: tl.constexpr):
    """An expert's place in a token's order is how many experts come before it."""
    token = tl.program_id(axis=0).to(tl.int64)
    e, o = tl.arange(0, EXPERTS)[:, None], tl.arange(0, EXPERTS)[None, :]
    mine = tl.load(logits_ptr + token * experts + e, mask=e < experts, other=0.0)
    other = tl.load(logits_ptr + token * experts + o, mask=o < experts, other=0.0)
    before = ((other > mine) | ((other == mine) & (o < e))) & (o < experts)
    rank = tl.sum(before.to(tl.int32), axis=1)[:, None]
    tl.store(chosen_ptr + token * top + rank, e, mask=(e < experts) & (rank < top))


@triton.jit
def _fill_kernel(chosen_ptr, slots_ptr, count_ptr, tokens, top, TOP: tl.constexpr):
    """Goes through all tokens, one after another, and gives each chosen expert's next slot to it."""
    expert = tl.program_id(axis=0)
    j, count = tl.arange(0, TOP), 0
    for token in range(tokens):
        theirs = tl.load(chosen_ptr + token * top + j, mask=j < top, other=-1)
        wanted = tl.max((theirs == expert).to(tl.int32), axis=0)
        which = tl.max(tl.where(theirs == expert, j, 0), axis=0)
        tl.store(slots_ptr + expert * tokens + count, token * top + which, mask=wanted == 1)
        count += wanted
    tl.store(count_ptr + expert, count)


@triton.jit
def _hidden_kernel(x_ptr, w_ptr, slots_ptr, count_ptr, y_ptr, tokens, top, hidden, inner, B: tl.constexpr):
    expert, first = tl.program_id(axis=0).to(tl.int64), tl.program_id(axis=1) * B
    count = tl.load(count_ptr + expert)
    if first >= count:
        return
    r = first + tl.arange(0, B)
    pair = tl.load(slots_ptr + expert * tokens + r, mask=r < count, other=0)
    n, k = tl.program_id(axis=2) * B + tl.arange(0, B), tl.arange(0, B)
    gate, up = tl.zeros((B, B), tl.float32), tl.zeros((B, B), tl.float32)
    for start in range(0, hidden, B):
        c = start + k
        a = tl.load(
            x_ptr + (pair // top).to(tl.int64)[:, None] * hidden + c[None, :],
            mask=(r < count)[:, None] & (c < hidden)[None, :], other=0.0,
        )  # fmt: skip
        w = w_ptr + (2 * expert * inner + n)[None, :] * hidden + c[:, None]
        ok = (n < inner)[None, :] & (c < hidden)[:, None]
        gate += tl.dot(a, tl.load(w, mask=ok, other=0.0))
        up += tl.dot(a, tl.load(w + inner * hidden, mask=ok, other=0.0))
    at = y_ptr + (expert * tokens + r)[:, None] * inner + n[None, :]
    y = gate * up / (1.0 + tl.exp(-gate))
    tl.store(at, y.to(y_ptr.dtype.element_ty), mask=(r < count)[:, None] & (n < inner)[None, :])


@triton.jit
def _back_kernel(y_ptr, w_ptr, slots_ptr, count_ptr, p_ptr, tokens, hidden, inner, B: tl.constexpr):
    expert, first = tl.program_id(axis=0).to(tl.int64), tl.program_id(axis=1) * B
    count = tl.load(count_ptr + expert)
    if first >= count:
        return
    r = first + tl.arange(0, B)
    n, k = tl.program_id(axis=2) * B + tl.arange(0, B), tl.arange(0, B)
    p = tl.zeros((B, B), tl.float32)
    for start in range(0, inner, B):
        c = start + k
        a = tl.load(
            y_ptr + (expert * tokens + r)[:, None] * inner + c[None, :],
            mask=(r < count)[:, None] & (c < inner)[None, :], other=0.0,
        )  # fmt: skip
        w = w_ptr + (expert * hidden + n)[None, :] * inner + c[:, None]
        p += tl.dot(a, tl.load(w, mask=(n < hidden)[None, :] & (c < inner)[:, None], other=0.0))
    pair = tl.load(slots_ptr + expert * tokens + r, mask=r < count, other=0).to(tl.int64)
    tl.store(p_ptr + pair[:, None] * hidden + n[None, :], p, mask=(r < count)[:, None] & (n < hidden)[None, :])


@triton.jit
def _mix_kernel(logits_ptr, chosen_ptr, p_ptr, out_ptr, experts, top, hidden, TOP: tl.constexpr, H: tl.constexpr):
    token, j, h = tl.program_id(axis=0).to(tl.int64), tl.arange(0, TOP), tl.arange(0, H)
    expert = tl.load(chosen_ptr + token * top + j, mask=j < top, other=0)
    score = tl.load(logits_ptr + token * experts + expert, mask=j < top, other=float("-inf"))
    weight = tl.softmax(score)
    mask = (j < top)[:, None] & (h < hidden)[None, :]
    p = tl.load(p_ptr + (token * top + j)[:, None] * hidden + h[None, :], mask=mask, other=0.0)
    out = tl.sum(weight[:, None] * p, axis=0)
    tl.store(out_ptr + token * hidden + h, out.to(out_ptr.dtype.element_ty), mask=h < hidden)


def fused_moe(
    x: torch.Tensor, logits: torch.Tensor, gate_up: torch.Tensor, down: torch.Tensor, chosen: torch.Tensor,
    out: torch.Tensor, tokens: int, experts: int, top: int, hidden: int, inner: int,
) -> None:  # fmt: skip
    slots = torch.empty((experts, tokens), dtype=torch.int32, device=x.device)
    count = torch.empty(experts, dtype=torch.int32, device=x.device)
    y = torch.empty((experts, tokens, inner), dtype=x.dtype, device=x.device)
    p = torch.empty((tokens * top, hidden), dtype=torch.float32, device=x.device)
    power = triton.next_power_of_2
    _rank_kernel[(tokens,)](logits, chosen, experts, top, EXPERTS=power(experts))
    _fill_kernel[(experts,)](chosen, slots, count, tokens, top, TOP=power(top))
    rows = triton.cdiv(tokens, 32)
    _hidden_kernel[(experts, rows, triton.cdiv(inner, 32))](
        x, gate_up, slots, count, y, tokens, top, hidden, inner, B=32
    )
    _back_kernel[(experts, rows, triton.cdiv(hidden, 32))](y, down, slots, count, p, tokens, hidden, inner, B=32)
    _mix_kernel[(tokens,)](logits, chosen, p, out, experts, top, hidden, TOP=power(top), H=power(hidden))
