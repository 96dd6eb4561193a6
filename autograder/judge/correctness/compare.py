"""Is an output right? NaN and Inf positions first, then the tolerance per element, then per row.

All of it works on private memory: the judge's snapshot of an output and its own oracle.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from autograder.assignment import Tolerance
from autograder.errors import HarnessError
from autograder.judge.protocol.tensors import bits, same_words


@dataclass(frozen=True)
class Comparison:
    """What comparing one output found.

    Attributes:
        wrong: which elements are, bool, of the output's shape.
        allowed: the absolute difference allowed at each element, float64; NaN where a check of the problem's decides.
    """

    wrong: torch.Tensor
    allowed: torch.Tensor

    @property
    def right(self) -> bool:
        """Whether no element is wrong."""
        return not bool(self.wrong.any())


class Damage:
    """What comparing an output piece by piece found.

    Args:
        along: the dimension along which the pieces follow each other.

    Attributes:
        any: whether an element is wrong.
    """

    def __init__(self, along: int = 0) -> None:
        self._along = along
        self._wrong: list[torch.Tensor] = []
        self._firsts: list[tuple[tuple[int, ...], torch.Tensor, float]] = []
        self._begun = 0
        self.any = False

    def add(self, found: Comparison, expected: torch.Tensor) -> None:
        """The next piece, and what it has to be."""
        self._wrong.append(found.wrong)
        if not found.right:
            self.any = True
            index = first_of(found.wrong)
            place = tuple(number + self._begun * (dim == self._along) for dim, number in enumerate(index))
            self._firsts.append((place, expected[index].clone(), float(found.allowed[index])))
        self._begun += found.wrong.shape[self._along] if found.wrong.dim() else 0

    @property
    def wrong(self) -> torch.Tensor:
        """Which elements are wrong, bool, of the output's shape."""
        return self._wrong[0] if len(self._wrong) == 1 else torch.cat(self._wrong, dim=self._along)

    @property
    def first(self) -> tuple[torch.Tensor, float]:
        """Of the first wrong element, row by row."""
        _, expected, allowed = min(self._firsts, key=lambda one: one[0])
        return expected, allowed


def first_of(wrong: torch.Tensor) -> tuple[int, ...]:
    """The index of the first wrong element, row by row."""
    flat = int(wrong.reshape(-1).to(torch.uint8).argmax())
    return tuple(int(number) for number in torch.unravel_index(torch.tensor(flat), wrong.shape))


def compare(got: torch.Tensor, expected: torch.Tensor, scale: torch.Tensor, tolerance: Tolerance) -> Comparison:
    """Compare an output with the oracle.

    Args:
        got: the snapshot, in the output's dtype.
        expected: the oracle's values, float64 or an integer type, of the same shape; anything for a checked output.
        scale: the oracle's error bound per element without the machine precision, float64, not negative.
        tolerance: the output's rule.
    """
    if got.shape != expected.shape:
        raise HarnessError(f"the oracle gives the shape {tuple(expected.shape)}, the output has {tuple(got.shape)}")
    if tolerance.kind == "checked":
        return Comparison(torch.zeros_like(got, dtype=torch.bool), torch.full_like(expected, torch.nan).double())
    if tolerance.kind == "exact" or not got.dtype.is_floating_point:
        return _exact(got, expected)
    if tolerance.kind != "bounded":
        raise HarnessError(f"tolerance kind {tolerance.kind!r} is none of exact, bounded, checked")
    return _bounded(got, expected.double(), scale, tolerance)


def same_bits(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Where two tensors of one dtype have the same bits, or are both NaN."""
    same = bits(one) == bits(other)
    return same | (one.isnan() & other.isnan()) if one.dtype.is_floating_point else same


MAX_DIFFERING_SHARE = 0.02
"""Of the elements, how many may differ in their last bit from another right output for both to agree."""


def agree(got: torch.Tensor, checked: torch.Tensor, tolerance: Tolerance) -> bool:
    """Whether an output is as right as another one of the same inputs that was computed apart from it.

    All bits are the same; or, where the tolerance is not *exact*, at most `MAX_DIFFERING_SHARE` of the elements
    differ, none by more than one unit in the last place. Whoever is refused is compared with the oracle.
    """
    if same_words(got, checked):
        return True
    if tolerance.kind == "exact" or not got.dtype.is_floating_point:
        return False
    apart = bits(got) != bits(checked)
    if int(apart.sum()) > MAX_DIFFERING_SHARE * got.numel():
        return False
    one, other = got[apart], checked[apart]
    neighbours = (bits(one).long() - bits(other).long()).abs() == 1
    return bool((neighbours & one.isfinite() & other.isfinite() & (one.signbit() == other.signbit())).all())


FAR_APART = 0.01
"""Of its own size, or a tenth of that of the output's largest element: how far sums in another order never differ."""
_AT_ONCE = 2**25
"""Elements that are held beside each other: each takes some twenty bytes while it is."""


def far_apart(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two contiguous outputs of one call on the same inputs differ by more than rounding does."""
    if not one.dtype.is_floating_point:
        return not torch.equal(one, other)
    flat, held = one.reshape(-1), other.reshape(-1)
    parts = [slice(first, first + _AT_ONCE) for first in range(0, flat.numel(), _AT_ONCE)]
    largest = max((float(held[part].nan_to_num(0.0, 0.0, 0.0).abs().max()) for part in parts), default=0.0)
    # Half precision would round what is allowed.
    wide = torch.promote_types(one.dtype, torch.float32)
    allowed = FAR_APART / 10 * largest
    return not all(
        torch.allclose(flat[part].to(wide), held[part].to(wide), rtol=FAR_APART, atol=allowed, equal_nan=True)
        for part in parts
    )


def _exact(got: torch.Tensor, expected: torch.Tensor) -> Comparison:
    """Equality, after the oracle's value was rounded to the output's dtype; zeros have signs, and NaN equals NaN."""
    rounded = expected.to(got.dtype)
    right = got == rounded
    if got.dtype.is_floating_point:
        right &= got.signbit() == rounded.signbit()
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
