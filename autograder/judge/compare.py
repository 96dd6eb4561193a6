"""Is an output right? NaN and Inf positions first, then the tolerance per element, then per row.

All of it works on private memory: the judge's snapshot of an output and its own oracle.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from autograder.assignment import Tolerance
from autograder.errors import HarnessError


@dataclass(frozen=True)
class Comparison:
    """What comparing one output found.

    Attributes:
        wrong: which elements are, bool, of the output's shape.
        allowed: the absolute difference allowed at each element, float64.
    """

    wrong: torch.Tensor
    allowed: torch.Tensor

    @property
    def right(self) -> bool:
        """Whether no element is wrong."""
        return not bool(self.wrong.any())


def compare(got: torch.Tensor, expected: torch.Tensor, scale: torch.Tensor, tolerance: Tolerance) -> Comparison:
    """Compare an output with the oracle.

    Args:
        got: the snapshot, in the output's dtype.
        expected: the oracle's values, float64 or an integer type, of the same shape.
        scale: the oracle's error bound per element without the machine precision, float64, not negative.
        tolerance: the output's rule.
    """
    if got.shape != expected.shape:
        raise HarnessError(f"the oracle gives the shape {tuple(expected.shape)}, the output has {tuple(got.shape)}")
    if tolerance.kind == "exact" or not got.dtype.is_floating_point:
        return _exact(got, expected)
    if tolerance.kind != "bounded":
        raise HarnessError(f"tolerance kind {tolerance.kind!r} is none of exact, bounded")
    return _bounded(got, expected.double(), scale, tolerance)


def same_bits(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Where two tensors of one dtype have the same bits, or are both NaN."""
    same = bits(one) == bits(other)
    return same | (one.isnan() & other.isnan()) if one.dtype.is_floating_point else same


MOST_APART = 0.02
"""Of the elements, how many may differ in their last bit from another right output for both to agree."""


def agree(got: torch.Tensor, checked: torch.Tensor, tolerance: Tolerance) -> bool:
    """Whether an output is as right as another one of the same inputs that was computed apart from it.

    All bits are the same; or, where the tolerance is not *exact*, at most `MOST_APART` of the elements differ, none by
    more than one unit in the last place. Whoever is refused is compared with the oracle.
    """
    if same_words(got, checked):
        return True
    if tolerance.kind == "exact" or not got.dtype.is_floating_point:
        return False
    apart = bits(got) != bits(checked)
    if int(apart.sum()) > MOST_APART * got.numel():
        return False
    one, other = got[apart], checked[apart]
    neighbours = (bits(one).long() - bits(other).long()).abs() == 1
    return bool((neighbours & one.isfinite() & other.isfinite() & (one.signbit() == other.signbit())).all())


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


def _exact(got: torch.Tensor, expected: torch.Tensor) -> Comparison:
    """Equality, after the oracle's value was rounded to the output's dtype; NaN equals NaN."""
    rounded = expected.to(got.dtype)
    right = got == rounded
    if got.dtype.is_floating_point:
        right |= got.isnan() & rounded.isnan()
    return Comparison(~right, torch.zeros(got.shape, dtype=torch.float64, device=got.device))


def _bounded(got: torch.Tensor, expected: torch.Tensor, scale: torch.Tensor, rule: Tolerance) -> Comparison:
    """`factor · eps · scale` for an element, `row_factor · eps · rms(scale)` for the rms of a row's errors."""
    info = torch.finfo(got.dtype)
    value, rounded = got.double(), expected.to(got.dtype).double()
    special = ~value.isfinite() | ~rounded.isfinite()
    wrong = special & ~((value == rounded) | (value.isnan() & rounded.isnan()))
    error = (value - expected).abs().masked_fill(special, 0.0)
    scale = scale.masked_fill(~rounded.isfinite() | ~scale.isfinite(), 0.0)
    # A result next to zero is rounded to a multiple of the smallest subnormal, whatever its scale.
    allowed = rule.factor * info.eps * scale + info.smallest_normal * info.eps
    wrong |= error > allowed
    found = Comparison(wrong, allowed)
    return _by_row(found, error, rule.row_factor * info.eps * _rms(scale) + info.smallest_normal, rule)


def _by_row(found: Comparison, error: torch.Tensor, row_allowed: torch.Tensor, rule: Tolerance) -> Comparison:
    """In a row without a wrong element whose errors are too large together, those above the row's rms are wrong."""
    if not rule.row_factor or error.numel() == 0:
        return found
    row_wrong = found.wrong.any(dim=-1, keepdim=True) if error.dim() else found.wrong
    bad = (_rms(error) > row_allowed) & ~row_wrong
    allowed = torch.where(bad, row_allowed.expand_as(error), found.allowed)
    return Comparison(found.wrong | (bad & (error > row_allowed)), allowed)


def _rms(values: torch.Tensor) -> torch.Tensor:
    """Root mean square along the last dimension, which is kept."""
    squares = values.square()
    return (squares.mean(dim=-1, keepdim=True) if values.dim() else squares).sqrt()
