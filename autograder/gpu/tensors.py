"""Mapped device memory as a tensor, without a copy."""

from __future__ import annotations

import torch


class _Bytes:
    """Says where memory is, in the form that torch reads; it has no bfloat16, hence bytes."""

    def __init__(self, address: int, size: int) -> None:
        self.__cuda_array_interface__ = {"shape": (size,), "typestr": "|u1", "data": (address, False), "version": 3}


def as_bytes(address: int, size: int) -> torch.Tensor:
    """The memory as a uint8 tensor of shape (size,); it is valid as long as the mapping is."""
    return torch.as_tensor(_Bytes(address, size), device="cuda")
