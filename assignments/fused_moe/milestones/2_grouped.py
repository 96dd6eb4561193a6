"""Pairs in the order of experts, one launch for all experts' products; rows are copied first, nothing is fused."""

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
def _order_kernel(chosen_ptr, order_ptr, begins_ptr, pairs, BLOCK: tl.constexpr):
    """The pairs of one expert, behind those of all lower experts; where its rows begin, and where the next one's do."""
    expert = tl.program_id(axis=0)
    lane, place = tl.arange(0, BLOCK), 0
    for start in range(0, pairs, BLOCK):
        theirs = tl.load(chosen_ptr + start + lane, mask=start + lane < pairs, other=expert)
        place += tl.sum((theirs < expert).to(tl.int32), axis=0)
    tl.store(begins_ptr + expert, place)
    for start in range(0, pairs, BLOCK):
        theirs = tl.load(chosen_ptr + start + lane, mask=start + lane < pairs, other=-1)
        mine = (theirs == expert).to(tl.int32)
        tl.store(order_ptr + place + tl.cumsum(mine, axis=0) - 1, start + lane, mask=mine == 1)
        place += tl.sum(mine, axis=0)
    tl.store(begins_ptr + expert + 1, place, mask=expert == tl.num_programs(axis=0) - 1)


@triton.jit
def _gather_kernel(x_ptr, order_ptr, rows_ptr, top, hidden, BLOCK: tl.constexpr):
    row, column = tl.program_id(axis=0).to(tl.int64), tl.arange(0, BLOCK)
    token = tl.load(order_ptr + row).to(tl.int64) // top
    x = tl.load(x_ptr + token * hidden + column, mask=column < hidden)
    tl.store(rows_ptr + row * hidden + column, x, mask=column < hidden)


@triton.jit
def _product_kernel(a_ptr, b_ptr, begins_ptr, c_ptr, n, k, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Store a · b[expert]ᵀ in float32, for the rows of an expert: a tile of rows, a tile of columns, and an expert."""
    expert = tl.program_id(axis=2)
    first = tl.load(begins_ptr + expert) + tl.program_id(axis=0) * ROWS
    end = tl.load(begins_ptr + expert + 1)
    if first < end:
        rows, inside = first + tl.arange(0, ROWS), tl.arange(0, 64)
        columns = tl.program_id(axis=1) * BLOCK + tl.arange(0, BLOCK)
        sums = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
        for start in range(0, k, 64):
            there = inside < k - start
            a = a_ptr + rows.to(tl.int64)[:, None] * k + start + inside[None, :]
            b = b_ptr + (expert.to(tl.int64) * n + columns)[None, :] * k + start + inside[:, None]
            left = tl.load(a, mask=(rows < end)[:, None] & there[None, :], other=0.0)
            right = tl.load(b, mask=there[:, None] & (columns < n)[None, :], other=0.0)
            sums = tl.dot(left, right, sums)
        mask = (rows < end)[:, None] & (columns < n)[None, :]
        tl.store(c_ptr + rows.to(tl.int64)[:, None] * n + columns[None, :], sums, mask=mask)


@triton.jit
def _activate_kernel(h_ptr, y_ptr, inner, BLOCK: tl.constexpr):
    row, column = tl.program_id(axis=0).to(tl.int64), tl.arange(0, BLOCK)
    gate = tl.load(h_ptr + row * 2 * inner + column, mask=column < inner, other=0.0)
    value = tl.load(h_ptr + row * 2 * inner + inner + column, mask=column < inner, other=0.0)
    y = gate / (1.0 + tl.exp(-gate)) * value
    tl.store(y_ptr + row * inner + column, y.to(y_ptr.dtype.element_ty), mask=column < inner)


@triton.jit
def _where_kernel(order_ptr, places_ptr, pairs, BLOCK: tl.constexpr):
    """For each pair the row that it became."""
    row = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(places_ptr + tl.load(order_ptr + row, mask=row < pairs, other=0), row, mask=row < pairs)


@triton.jit
def _combine_kernel(p_ptr, places_ptr, weights_ptr, out_ptr, top, hidden, BLOCK: tl.constexpr):
    token = tl.program_id(axis=0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for j in range(top):
        row = tl.load(places_ptr + token * top + j).to(tl.int64)
        weight = tl.load(weights_ptr + token * top + j)
        total += weight * tl.load(p_ptr + row * hidden + column, mask=column < hidden, other=0.0)
    tl.store(out_ptr + token * hidden + column, total.to(out_ptr.dtype.element_ty), mask=column < hidden)


def fused_moe(
    x: torch.Tensor, logits: torch.Tensor, gate_up: torch.Tensor, down: torch.Tensor, chosen: torch.Tensor,
    out: torch.Tensor, tokens: int, experts: int, top: int, hidden: int, inner: int,
) -> None:  # fmt: skip
    pairs = tokens * top
    weights, h, p = (
        torch.empty(n, dtype=torch.float32, device=x.device) for n in (pairs, pairs * 2 * inner, pairs * hidden)
    )
    order, begins, places = (torch.empty(n, dtype=torch.int32, device=x.device) for n in (pairs, experts + 1, pairs))
    rows, y = (torch.empty(pairs * n, dtype=x.dtype, device=x.device) for n in (hidden, inner))
    of_hidden, of_inner = triton.next_power_of_2(hidden), triton.next_power_of_2(inner)
    _route_kernel[(tokens,)](
        logits, chosen, weights, experts, top, EXPERTS=max(triton.next_power_of_2(experts), triton.next_power_of_2(top))
    )
    _order_kernel[(experts,)](chosen, order, begins, pairs, BLOCK=1024)
    _gather_kernel[(pairs,)](x, order, rows, top, hidden, BLOCK=of_hidden)
    # Tiles for all tokens and every expert: most programs find nothing to do.
    tiles = triton.cdiv(tokens, 64)
    _product_kernel[(tiles, triton.cdiv(2 * inner, 128), experts)](
        rows, gate_up, begins, h, 2 * inner, hidden, ROWS=64, BLOCK=128
    )
    _activate_kernel[(pairs,)](h, y, inner, BLOCK=of_inner)
    _product_kernel[(tiles, triton.cdiv(hidden, 128), experts)](y, down, begins, p, hidden, inner, ROWS=64, BLOCK=128)
    _where_kernel[(triton.cdiv(pairs, 1024),)](order, places, pairs, BLOCK=1024)
    _combine_kernel[(tokens,)](p, places, weights, out, top, hidden, BLOCK=of_hidden)
