"""Fails when called: a block has to be a power of two, and the number of experts is none."""

import torch
import triton
import triton.language as tl


@triton.jit
def _best_kernel(logits_ptr, chosen_ptr, top, EXPERTS: tl.constexpr):
    token = tl.program_id(axis=0)
    logits = tl.load(logits_ptr + token * EXPERTS + tl.arange(0, EXPERTS))
    tl.store(chosen_ptr + token * top, tl.argmax(logits, axis=0))


def fused_moe(
    x: torch.Tensor, logits: torch.Tensor, gate_up: torch.Tensor, down: torch.Tensor, chosen: torch.Tensor,
    out: torch.Tensor, tokens: int, experts: int, top: int, hidden: int, inner: int,
) -> None:  # fmt: skip
    _best_kernel[(tokens,)](logits, chosen, top, EXPERTS=max(3, experts // 2 * 2 + 1))
