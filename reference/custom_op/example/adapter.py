"""Calls the example's op in a graph that was traced at another size, and goes back through it."""

from __future__ import annotations

import torch
import torch._dynamo  # The first call of an op would import it, and take seconds.
from functorch.compile import aot_function, nop


def scale_and_back(
    x: torch.Tensor,
    a: torch.Tensor,
    dy: torch.Tensor,
    y: torch.Tensor,
    dx: torch.Tensor,
    da: torch.Tensor,
    rows: int,
    cols: int,
) -> None:
    """Fill y and the gradients of x and a."""

    def layer(x: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
        made = torch.ops.ladder.scale_rows(x, a)
        return made.view(made.shape[0] * made.shape[1]).view(made.shape)

    graph = aot_function(layer, fw_compiler=nop, bw_compiler=nop, dynamic=True)
    graph(*(one.new_ones(shape).requires_grad_() for one, shape in ((x, (5, 9)), (a, (5,)))))
    leaves = [one.detach().requires_grad_() for one in (x, a)]
    result = graph(*leaves)
    y.copy_(result)
    for output, gradient in zip((dx, da), torch.autograd.grad(result, leaves, dy), strict=True):
        output.copy_(gradient)
