"""Wrong: of equal logits the last is taken, and every choice weighs the same."""

import torch
import triton
import triton.language as tl


@triton.jit
def _route_kernel(logits_ptr, chosen_ptr, experts, top, EXPERTS: tl.constexpr):
    token, number = tl.program_id(axis=0), tl.arange(0, EXPERTS)
    scores = tl.load(logits_ptr + token * experts + number, mask=number < experts, other=float("-inf"))
    for j in range(top):
        best = tl.max(tl.where(scores == tl.max(scores, axis=0), number, -1), axis=0)
        tl.store(chosen_ptr + token * top + j, best)
        scores = tl.where(number == best, float("-inf"), scores)


@triton.jit
def _token_kernel(x_ptr, up_ptr, down_ptr, chosen_ptr, out_ptr, top, hidden, inner, H: tl.constexpr, I: tl.constexpr):
    token = tl.program_id(axis=0)
    h, i = tl.arange(0, H), tl.arange(0, I)
    mask = (i < inner)[:, None] & (h < hidden)[None, :]
    x = tl.load(x_ptr + token * hidden + h, mask=h < hidden, other=0.0).to(tl.float32)[None, :]
    total = tl.zeros((H,), tl.float32)
    for j in range(top):
        expert = tl.load(chosen_ptr + token * top + j)
        w = up_ptr + expert * 2 * inner * hidden + i[:, None] * hidden + h[None, :]
        gate = tl.sum(tl.load(w, mask=mask, other=0.0) * x, axis=1)
        y = gate * tl.sigmoid(gate) * tl.sum(tl.load(w + inner * hidden, mask=mask, other=0.0) * x, axis=1)
        back = tl.load(down_ptr + (expert * hidden + h[None, :]) * inner + i[:, None], mask=mask, other=0.0)
        total += tl.sum(back * y[:, None], axis=0)
    tl.store(out_ptr + token * hidden + h, total / top, mask=h < hidden)


def fused_moe(
    x: torch.Tensor, logits: torch.Tensor, gate_up: torch.Tensor, down: torch.Tensor, chosen: torch.Tensor,
    out: torch.Tensor, tokens: int, experts: int, top: int, hidden: int, inner: int,
) -> None:  # fmt: skip
    _route_kernel[(tokens,)](logits, chosen, experts, top, EXPERTS=triton.next_power_of_2(experts))
    _token_kernel[(tokens,)](
        x, gate_up, down, chosen, out, top, hidden, inner, H=triton.next_power_of_2(hidden), I=triton.next_power_of_2(inner)
    )
