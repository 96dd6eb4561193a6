"""One launch for each expert and product: each is simple, and most of the GPU waits when an expert has few tokens."""

import torch
import triton
import triton.language as tl


@triton.jit
def _route_kernel(logits_ptr, chosen_ptr, weights_ptr, experts, top, EXPERTS: tl.constexpr):
    token = tl.program_id(axis=0).to(tl.int64)
    expert = tl.arange(0, EXPERTS)
    logits = tl.load(logits_ptr + token * experts + expert, mask=expert < experts, other=float("-inf"))
    largest = tl.max(logits, axis=0)
    powers = tl.zeros((EXPERTS,), tl.float32)
    for j in range(top):
        best = tl.max(logits, axis=0)
        found = tl.min(tl.where(logits == best, expert, EXPERTS), axis=0)
        logits = tl.where(expert == found, float("-inf"), logits)
        tl.store(chosen_ptr + token * top + j, found)
        powers = tl.where(expert == j, tl.exp(best - largest), powers)
    tl.store(weights_ptr + token * top + expert, powers / tl.sum(powers, axis=0), mask=expert < top)


@triton.jit
def _list_kernel(chosen_ptr, lists_ptr, counts_ptr, pairs, tokens, BLOCK: tl.constexpr):
    """The pairs of one expert: the list has room for all tokens, as none goes to an expert twice."""
    expert = tl.program_id(axis=0)
    lane, count = tl.arange(0, BLOCK), 0
    for start in range(0, pairs, BLOCK):
        theirs = tl.load(chosen_ptr + start + lane, mask=start + lane < pairs, other=-1)
        mine = (theirs == expert).to(tl.int32)
        place = count + tl.cumsum(mine, axis=0) - 1
        tl.store(lists_ptr + expert.to(tl.int64) * tokens + place, start + lane, mask=mine == 1)
        count += tl.sum(mine, axis=0)
    tl.store(counts_ptr + expert, count)


@triton.jit
def _up_kernel(x_ptr, w_ptr, list_ptr, count_ptr, y_ptr, top, hidden, inner, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    count = tl.load(count_ptr)
    rows = tl.program_id(axis=0) * ROWS + tl.arange(0, ROWS)
    if tl.program_id(axis=0) * ROWS < count:
        pair = tl.load(list_ptr + rows, mask=rows < count, other=0).to(tl.int64)
        columns, inside = tl.program_id(axis=1) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, 32)
        gate = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
        value = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
        for start in range(0, hidden, 32):
            there = inside < hidden - start
            at = (pair // top)[:, None] * hidden + start + inside[None, :]
            x = tl.load(x_ptr + at, mask=(rows < count)[:, None] & there[None, :], other=0.0)
            w = w_ptr + columns[None, :].to(tl.int64) * hidden + start + inside[:, None]
            mask = there[:, None] & (columns < inner)[None, :]
            gate = tl.dot(x, tl.load(w, mask=mask, other=0.0), gate)
            value = tl.dot(x, tl.load(w + inner * hidden, mask=mask, other=0.0), value)
        y = gate / (1.0 + tl.exp(-gate)) * value
        mask = (rows < count)[:, None] & (columns < inner)[None, :]
        tl.store(y_ptr + pair[:, None] * inner + columns[None, :], y.to(y_ptr.dtype.element_ty), mask=mask)


@triton.jit
def _down_kernel(
    y_ptr, w_ptr, list_ptr, count_ptr, weights_ptr, parts_ptr, hidden, inner, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    count = tl.load(count_ptr)
    rows = tl.program_id(axis=0) * ROWS + tl.arange(0, ROWS)
    if tl.program_id(axis=0) * ROWS < count:
        pair = tl.load(list_ptr + rows, mask=rows < count, other=0).to(tl.int64)
        columns, inside = tl.program_id(axis=1) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, 32)
        sums = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
        for start in range(0, inner, 32):
            there = inside < inner - start
            at = pair[:, None] * inner + start + inside[None, :]
            y = tl.load(y_ptr + at, mask=(rows < count)[:, None] & there[None, :], other=0.0)
            w = w_ptr + columns[None, :].to(tl.int64) * inner + start + inside[:, None]
            sums = tl.dot(y, tl.load(w, mask=there[:, None] & (columns < hidden)[None, :], other=0.0), sums)
        sums *= tl.load(weights_ptr + pair, mask=rows < count, other=0.0)[:, None]
        mask = (rows < count)[:, None] & (columns < hidden)[None, :]
        tl.store(parts_ptr + pair[:, None] * hidden + columns[None, :], sums, mask=mask)


@triton.jit
def _combine_kernel(parts_ptr, out_ptr, top, hidden, BLOCK: tl.constexpr):
    token = tl.program_id(axis=0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for j in range(top):
        total += tl.load(parts_ptr + (token * top + j) * hidden + column, mask=column < hidden, other=0.0)
    tl.store(out_ptr + token * hidden + column, total.to(out_ptr.dtype.element_ty), mask=column < hidden)


def fused_moe(
    x: torch.Tensor, logits: torch.Tensor, gate_up: torch.Tensor, down: torch.Tensor, chosen: torch.Tensor,
    out: torch.Tensor, tokens: int, experts: int, top: int, hidden: int, inner: int,
) -> None:  # fmt: skip
    pairs = tokens * top
    weights = torch.empty(pairs, dtype=torch.float32, device=x.device)
    lists = torch.empty((experts, tokens), dtype=torch.int32, device=x.device)
    counts = torch.empty(experts, dtype=torch.int32, device=x.device)
    y = torch.empty((pairs, inner), dtype=x.dtype, device=x.device)
    parts = torch.empty((pairs, hidden), dtype=torch.float32, device=x.device)
    _route_kernel[(tokens,)](
        logits, chosen, weights, experts, top, EXPERTS=max(triton.next_power_of_2(experts), triton.next_power_of_2(top))
    )
    _list_kernel[(experts,)](chosen, lists, counts, pairs, tokens, BLOCK=1024)
    for expert in range(experts):
        of_expert = lists[expert], counts[expert:]
        # Tiles for all tokens, as the host does not know how many come.
        tiles = triton.cdiv(tokens, 64)
        _up_kernel[(tiles, triton.cdiv(inner, 64))](
            x, gate_up[expert], *of_expert, y, top, hidden, inner, ROWS=64, BLOCK=64
        )
        _down_kernel[(tiles, triton.cdiv(hidden, 64))](
            y, down[expert], *of_expert, weights, parts, hidden, inner, ROWS=64, BLOCK=64
        )
    _combine_kernel[(tokens,)](parts, out, top, hidden, BLOCK=triton.next_power_of_2(hidden))
