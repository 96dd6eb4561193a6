"""Not Python: a bracket is never closed."""

import torch


def attention(q: torch.Tensor, k: torch.Tensor
    return None
