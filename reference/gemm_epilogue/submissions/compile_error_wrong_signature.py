"""Does not load: parts and the strides are missing from the entry."""

import torch


def gemm_epilogue(
    a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor, residual: torch.Tensor, out: torch.Tensor, m: int, n: int, k: int
) -> None:
    out.copy_(a.float() @ b[0].float().T + bias.float() + residual.float())
