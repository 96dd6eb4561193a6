"""Right, and slow: every expert works for all tokens of a block, with weight 0 for those that did not choose it."""

import torch
import triton
import triton.language as tl


@triton.jit
def _route_kernel(logits_ptr, chosen_ptr, share_ptr, experts, top, EXPERTS: tl.constexpr):
    """A row of weights for each token, 0 where an expert is not chosen."""
    token, number = tl.program_id(axis=0).to(tl.int64), tl.arange(0, EXPERTS)
    scores = tl.load(logits_ptr + token * experts + number, mask=number < experts, other=float("-inf"))
    shifted = tl.exp(scores - tl.max(scores, axis=0))
    taken = number < 0
    for j in range(top):
        best = tl.argmax(tl.where(taken, float("-inf"), scores), axis=0, tie_break_left=True)
        tl.store(chosen_ptr + token * top + j, best)
        taken = taken | (number == best)
    kept = tl.where(taken, shifted, 0.0)
    tl.store(share_ptr + token * experts + number, kept / tl.sum(kept, axis=0), mask=number < experts)


@triton.jit
def _dense_kernel(
    x_ptr, up_ptr, down_ptr, share_ptr, out_ptr, tokens, experts, hidden, inner, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    t = (tl.program_id(axis=0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    h = (tl.program_id(axis=1) * COLUMNS + tl.arange(0, COLUMNS))[None, :]
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for expert in range(experts):
        share = tl.load(share_ptr + t * experts + expert, mask=t < tokens, other=0.0)
        if tl.max(tl.max(share, axis=1), axis=0) > 0.0:
            p = tl.zeros((ROWS, COLUMNS), tl.float32)
            for first in range(0, inner, 32):
                i = first + tl.arange(0, 32)
                gate = tl.zeros((ROWS, 32), tl.float32)
                up = tl.zeros((ROWS, 32), tl.float32)
                for start in range(0, hidden, 64):
                    k = start + tl.arange(0, 64)
                    x = tl.load(x_ptr + t * hidden + k[None, :], mask=(t < tokens) & (k < hidden)[None, :], other=0.0)
                    w = up_ptr + (expert * 2 * inner + i)[None, :].to(tl.int64) * hidden + k[:, None]
                    mask = (i < inner)[None, :] & (k < hidden)[:, None]
                    gate += tl.dot(x, tl.load(w, mask=mask, other=0.0))
                    up += tl.dot(x, tl.load(w + inner * hidden, mask=mask, other=0.0))
                y = (gate * tl.sigmoid(gate) * up).to(x_ptr.dtype.element_ty)
                w = down_ptr + (expert * hidden + h).to(tl.int64) * inner + i[:, None]
                p += tl.dot(y, tl.load(w, mask=(h < hidden) & (i < inner)[:, None], other=0.0))
            total += share * p
    tl.store(out_ptr + t * hidden + h, total.to(out_ptr.dtype.element_ty), mask=(t < tokens) & (h < hidden))


def fused_moe(
    x: torch.Tensor, logits: torch.Tensor, gate_up: torch.Tensor, down: torch.Tensor, chosen: torch.Tensor,
    out: torch.Tensor, tokens: int, experts: int, top: int, hidden: int, inner: int,
) -> None:  # fmt: skip
    share = torch.empty((tokens, experts), dtype=torch.float32, device=x.device)
    _route_kernel[(tokens,)](logits, chosen, share, experts, top, EXPERTS=triton.next_power_of_2(experts))
    grid = (triton.cdiv(tokens, 32), triton.cdiv(hidden, 64))
    _dense_kernel[grid](x, gate_up, down, share, out, tokens, experts, hidden, inner, ROWS=32, COLUMNS=64)
