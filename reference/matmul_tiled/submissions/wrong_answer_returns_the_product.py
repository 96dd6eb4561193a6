"""Wrong: returns the product instead of writing it into `c`."""

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
) -> torch.Tensor:
    product = torch.empty_like(c)
    product.copy_(a.float() @ b.float())
    return product
