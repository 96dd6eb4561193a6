"""Does not load: the entry takes no lengths."""

import torch


def topk_sort(keys: torch.Tensor, values: torch.Tensor, indices: torch.Tensor, rows: int, n: int, k: int) -> None:
    values.copy_(keys[:, :k])
