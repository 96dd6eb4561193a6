"""How much of an output is right though the student's kernels did nothing: what else computed it.

An output is poisoned before the call, so that what is right there was written by something. An element only counts
where writing it took work. It does not where its right value is one that memory is filled with before the kernel runs
(0 or 1, say), or what stands at the same place of an input: an honest file fills its output and adds to it with
atomics, or copies an input and works in place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from autograder.judge.correctness.compare import same_bits
from autograder.judge.protocol.tensors import Tensors


@dataclass(frozen=True)
class Output:
    """One output of a call in which the student's kernels did nothing.

    Attributes:
        got: what stands in it.
        expected: the oracle's values, of the same shape.
        right: which elements are right and no longer the judge's poison, bool.
    """

    got: torch.Tensor
    expected: torch.Tensor
    right: torch.Tensor


def share(outputs: Mapping[str, Output], inputs: Tensors) -> float:
    """The share of the elements that take work that are right, over all outputs; 0 where no element takes work."""
    right = total = 0
    for output in outputs.values():
        counts = _takes_work(output.expected.to(output.got.dtype), inputs)
        right += int((counts & output.right & _takes_work(output.got, inputs)).sum())
        total += int(counts.sum())
    return right / total if total else 0.0


def _takes_work(values: torch.Tensor, inputs: Tensors) -> torch.Tensor:
    """Which elements are neither a value to fill memory with nor a copy from the same place of an input."""
    given = _fills(values)
    for one in inputs.values():
        if one.numel() == values.numel() and one.dim():
            given |= same_bits(values, one.reshape(values.shape).to(values.dtype))
    return ~given


def _fills(values: torch.Tensor) -> torch.Tensor:
    """Which elements are 0, 1 or -1, not finite, or the least or the greatest of their type; of truth values all."""
    if values.dtype is torch.bool:
        return torch.ones_like(values)
    info = torch.finfo(values.dtype) if values.dtype.is_floating_point else torch.iinfo(values.dtype)
    given = (values == 0) | (values == 1) | (values == info.min) | (values == info.max)
    if info.min < 0:
        given |= values == -1
    return given | ~values.isfinite()
