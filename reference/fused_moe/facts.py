"""What tests and `reference/measure.py` have to know of the mixture of experts. Staff only."""

from __future__ import annotations

import torch
from torch.nn import functional

SIZES = (
    {"tokens": 1, "experts": 1, "top": 1, "hidden": 1, "inner": 1},
    {"tokens": 5, "experts": 3, "top": 2, "hidden": 210, "inner": 20},
    {"tokens": 40, "experts": 6, "top": 1, "hidden": 33, "inner": 17},
    {"tokens": 9, "experts": 8, "top": 8, "hidden": 24, "inner": 40},
)
COUNTED = frozenset({"silu", "mul", "add"})
"""Products of matrices are counted by torch's own counter; the softmax over a few logits is not counted."""
DRAWN = frozenset(
    {"empty", "all_to_one", "all_to_three", "ties", "low_bits", "confident", "seven", "readable", "ranked_few"}
)
"""Cases where some experts may get no token, so that their weights are not read."""

Tensors = dict[str, torch.Tensor]


def oracle(
    x: torch.Tensor, logits: torch.Tensor, gate_up: torch.Tensor, down: torch.Tensor, asked: torch.Tensor
) -> Tensors:
    """The exercise's arithmetic, token by token; `COUNTED` names the steps that are operations."""
    top = int(asked)
    chosen = torch.zeros(len(x), top, dtype=torch.int32)
    out = torch.zeros(x.shape, dtype=torch.float64)
    for t, row in enumerate(logits.tolist()):
        experts = sorted(range(len(row)), key=lambda e, row=row: -row[e])[:top]
        chosen[t] = torch.tensor(experts)
        weights = torch.softmax(logits[t, experts].double(), dim=0)
        for weight, expert in zip(weights, experts, strict=True):
            gate, up = (x[t : t + 1].double() @ part.double().T for part in gate_up[expert])
            product = torch.mul(functional.silu(gate), up) @ down[expert].double().T
            out[t] = torch.add(out[t], torch.mul(product[0], weight))
    return {"chosen": chosen, "out": out}


def honest(
    x: torch.Tensor, logits: torch.Tensor, gate_up: torch.Tensor, down: torch.Tensor, asked: torch.Tensor
) -> Tensors:
    """The answer as plain torch computes it in float32, rounded as a kernel for tensor cores does: it has to pass."""
    values, order = logits.sort(dim=1, descending=True, stable=True)
    chosen, weights = order[:, : int(asked)], torch.softmax(values[:, : int(asked)], dim=1)
    out = torch.zeros(x.shape, dtype=torch.float32)
    for expert in range(len(down)):
        token, place = (chosen == expert).nonzero(as_tuple=True)
        gate, up = (x[token].float() @ part.float().T for part in gate_up[expert])
        y = (functional.silu(gate) * up).to(x.dtype)
        product = weights[token, place, None] * (y.float() @ down[expert].float().T)
        out[token] += product.to(x.dtype).float()
    return {"chosen": chosen.int(), "out": out.to(x.dtype)}


def unread(
    x: torch.Tensor, logits: torch.Tensor, gate_up: torch.Tensor, down: torch.Tensor, asked: torch.Tensor
) -> int:
    """Bytes of the experts that no token goes to."""
    order = logits.sort(dim=1, descending=True, stable=True).indices[:, : int(asked)]
    empty = logits.shape[1] - len(order.unique())
    return empty * (gate_up[0].numel() + down[0].numel()) * x.element_size()


def library(
    x: torch.Tensor,
    logits: torch.Tensor,
    gate_up: torch.Tensor,
    down: torch.Tensor,
    chosen: torch.Tensor,
    out: torch.Tensor,
    _tokens: int,
    experts: int,
    top: int,
    *_: int,
) -> None:
    """The exercise by torch's operators, expert by expert, as model code writes it; timed beside our kernels."""
    values, order = logits.topk(top, dim=1)
    weights = torch.softmax(values, dim=1).to(x.dtype)
    chosen.copy_(order)
    out.zero_()
    for expert in range(experts):
        token, place = (order == expert).nonzero(as_tuple=True)
        rows = x[token]
        y = functional.silu(rows @ gate_up[expert, 0].T) * (rows @ gate_up[expert, 1].T)
        out.index_add_(0, token, (y @ down[expert].T) * weights[token, place, None])
