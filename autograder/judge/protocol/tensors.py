"""Tensors by name, their types, and their memory as plain bits."""

from __future__ import annotations

import torch

from autograder.errors import HarnessError

Tensors = dict[str, torch.Tensor]


def dtype_of(name: str) -> torch.dtype:
    """The torch dtype that a manifest calls `name`."""
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise HarnessError(f"torch has no dtype {name!r}")
    return dtype


def same_words(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether all bits of two contiguous tensors of one shape and dtype are the same.

    Eight bytes at a time, as far as they go: comparing single bytes takes eight times as long.
    """
    flat, flat_other = one.reshape(-1).view(torch.uint8), other.reshape(-1).view(torch.uint8)
    if not _aligned(flat, flat_other):
        return torch.equal(flat, flat_other)
    whole = flat.numel() // _WORD_BYTES * _WORD_BYTES
    words, other_words = flat[:whole].view(torch.int64), flat_other[:whole].view(torch.int64)
    return torch.equal(words, other_words) and torch.equal(flat[whole:], flat_other[whole:])


_WORD_BYTES = 8


def _aligned(*memory: torch.Tensor) -> bool:
    """Whether eight bytes at a time can be read: a view of a piece may begin anywhere."""
    return all(one.storage_offset() % _WORD_BYTES == 0 and one.data_ptr() % _WORD_BYTES == 0 for one in memory)


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """The same memory as integers of the same width."""
    return tensor.view(_BITS[tensor.element_size()])


_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
