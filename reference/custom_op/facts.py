"""What tests and `reference/measure.py` have to know of the custom op. Staff only."""

from __future__ import annotations

import torch

SIZES = (
    {"rows": 1, "cols": 1}, {"rows": 11, "cols": 300}, {"tests": 1}, {"tests": 60},
    *({"rows": 9, "cols": 201, "order": order} for order in (0, 3, 4, 5)), {"rows": 1, "cols": 1, "order": 0},
)  # fmt: skip
COUNTED = frozenset({"add", "sub", "pow", "sum", "mul"})

Tensors = dict[str, torch.Tensor]


def oracle(function: str, **inputs: torch.Tensor) -> Tensors:
    """The exercise's arithmetic, step by step; `COUNTED` names the steps that are operations.

    A square is a `pow` to torch. What is done once for a row, in place here, is not counted.
    """
    if function == "describe":
        return _described(inputs["like"])
    x, r, weight = inputs["x"], inputs["r"], inputs["weight"].double()
    cols = x.shape[1]
    s = torch.add(x.double(), r.double()).to(x.dtype).double()
    c = torch.sum(torch.square(s), dim=1, keepdim=True).div_(cols).add_(float(inputs["eps"])).rsqrt_()
    n = torch.mul(s, c)
    if function == "forward":
        return {"s": s, "out": torch.mul(n, weight)}
    ds, dout = inputs["ds"].double(), inputs["dout"].double()
    g = torch.mul(dout, weight)
    mean = torch.sum(torch.mul(g, n), dim=1, keepdim=True).div_(cols)
    dx = torch.add(ds, torch.mul(c, torch.sub(g, torch.mul(n, mean))))
    found = {"dx": dx, "dr": dx.clone(), "dweight": torch.sum(torch.mul(dout, n), dim=0)}
    return found if function == "gradients" else {"s": s, "out": torch.mul(n, weight), **found}


def honest(function: str, **inputs: torch.Tensor) -> Tensors:
    """The answers as torch's own autograd finds them in float32, rounded once, which have to pass."""
    if function == "describe":
        return _described(inputs["like"])
    x, dtype = inputs["x"], inputs["x"].dtype
    s = x + inputs["r"]
    wide, weight = s.float().requires_grad_(), inputs["weight"].float().requires_grad_()
    out = wide * (wide.square().mean(dim=1, keepdim=True) + inputs["eps"]).rsqrt() * weight
    if function == "forward":
        return {"s": s, "out": out.detach().to(dtype)}
    dx, dweight = torch.autograd.grad(out, (wide, weight), inputs["dout"].float())
    dx = (dx + inputs["ds"].float()).to(dtype)
    found = {"dx": dx, "dr": dx.clone(), "dweight": dweight.to(dtype)}
    return found if function == "gradients" else {"s": s, "out": out.detach().to(dtype), **found}


def _described(like: torch.Tensor) -> Tensors:
    """Test by test, of tensors that torch makes."""
    rows = []
    for kind, tall, wide, _ in like.tolist():
        made = torch.empty(tall, wide)
        rows.append(2 * [kind, *made.shape, *made.stride(), made.storage_offset(), 1])
    described = torch.tensor(rows, dtype=torch.int32)
    return {"real": described, "fake": described.clone()}
