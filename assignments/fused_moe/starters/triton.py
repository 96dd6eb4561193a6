"""Fused mixture of experts: tokens go to their best experts, and what these give is added up."""

import torch
import triton
import triton.language as tl


@triton.jit
def _moe_kernel(
    x_ptr,  # (tokens, hidden)
    logits_ptr,  # (tokens, experts), float32
    gate_up_ptr,  # (experts, 2, inner, hidden)
    down_ptr,  # (experts, hidden, inner)
    chosen_ptr,  # (tokens, top), int32
    out_ptr,  # (tokens, hidden)
    experts,
    top,
    hidden,
    inner,
    EXPERTS: tl.constexpr,
    HIDDEN: tl.constexpr,
    BLOCK: tl.constexpr,  # how many of inner at a time
):
    # One program for each token.
    token = tl.program_id(axis=0).to(tl.int64)
    expert = tl.arange(0, EXPERTS)
    logits = tl.load(logits_ptr + token * experts + expert, mask=expert < experts, other=float("-inf"))
    # Your part: this is a token's best expert only, with the weight 1.
    best = tl.argmax(logits, axis=0)
    tl.store(chosen_ptr + token * top, best)

    column = tl.arange(0, HIDDEN)
    x = tl.load(x_ptr + token * hidden + column, mask=column < hidden, other=0.0).to(tl.float32)
    total = tl.zeros((HIDDEN,), tl.float32)
    for start in range(0, inner, BLOCK):
        # Your part: each token reads all weights of its expert by itself. Let tokens that go to the same expert share them.
        i = start + tl.arange(0, BLOCK)
        mask = (i < inner)[:, None] & (column < hidden)[None, :]
        part = gate_up_ptr + best.to(tl.int64) * 2 * inner * hidden + i[:, None] * hidden + column[None, :]
        gate = tl.sum(tl.load(part, mask=mask, other=0.0).to(tl.float32) * x[None, :], axis=1)
        value = tl.sum(tl.load(part + inner * hidden, mask=mask, other=0.0).to(tl.float32) * x[None, :], axis=1)
        y = gate / (1.0 + tl.exp(-gate)) * value
        back = down_ptr + best.to(tl.int64) * hidden * inner + column[None, :] * inner + i[:, None]
        total += tl.sum(tl.load(back, mask=mask, other=0.0).to(tl.float32) * y[:, None], axis=0)
    tl.store(out_ptr + token * hidden + column, total.to(out_ptr.dtype.element_ty), mask=column < hidden)


def fused_moe(
    x: torch.Tensor, logits: torch.Tensor, gate_up: torch.Tensor, down: torch.Tensor, chosen: torch.Tensor,
    out: torch.Tensor, tokens: int, experts: int, top: int, hidden: int, inner: int,
) -> None:  # fmt: skip
    _moe_kernel[(tokens,)](
        x, logits, gate_up, down, chosen, out, experts, top, hidden, inner,
        EXPERTS=triton.next_power_of_2(experts), HIDDEN=triton.next_power_of_2(hidden), BLOCK=16,
    )  # fmt: skip
