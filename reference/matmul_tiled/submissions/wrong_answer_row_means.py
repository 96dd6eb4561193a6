"""Wrong: every row filled with its mean."""

import torch


def matmul(
    a: torch.Tensor,
    b: torch.Tensor,
    c: torch.Tensor,
    m: int,
    n: int,
    k: int,
    a_row_stride: int,
    b_row_stride: int,
    c_row_stride: int,
) -> None:
    c.copy_((a.double() @ b.double()).mean(dim=1, keepdim=True).expand(m, n))
