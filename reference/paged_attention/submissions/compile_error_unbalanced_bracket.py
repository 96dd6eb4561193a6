"""Not Python: a bracket is never closed."""

import torch


def paged_attention(q: torch.Tensor, k_cache: torch.Tensor
    return None
