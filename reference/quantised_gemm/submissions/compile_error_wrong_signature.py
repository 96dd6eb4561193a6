"""Does not load: the strides are missing from the entry."""

import torch


def quantised_gemm(
    a: torch.Tensor, b: torch.Tensor, a_scale: torch.Tensor, b_scale: torch.Tensor, out: torch.Tensor, m: int, n: int, k: int
) -> None:
    out.copy_((a.double() @ b.double().T) * a_scale[:, None] * b_scale[None, :])
