"""Does not load: the entry lacks arguments."""

import torch


def nvfp4_quantise(x: torch.Tensor, packed: torch.Tensor, scales: torch.Tensor) -> None:
    scales.fill_(56)
    packed.zero_()
