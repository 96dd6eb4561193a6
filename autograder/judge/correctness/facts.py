"""What is known of a public case that failed, beyond its result: what `clues` makes an explanation from.

Nothing of this is gathered for a hidden case: what is told of one is its category and its verdict.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from autograder.contract import Pattern
from autograder.errors import HarnessError
from autograder.judge.correctness.compare import compare
from autograder.judge.correctness.expressions import evaluate
from autograder.judge.correctness.patterns import MATRIX, find_pattern
from autograder.judge.correctness.problem import Problem, Truth
from autograder.judge.protocol.tensors import Tensors, bits
from autograder.misconceptions import Misconception

MAX_ELEMENTS = 2**22
"""Elements of all tensors of a case whose values are looked at; of a larger one only where it is wrong."""
_NEARLY_ALL = 0.98
_MIN_VALUES = 4
"""Values of which any formula may be right by chance."""
_STEADY = {"float32": 1e-3, "float16": 2**-7, "bfloat16": 2**-5}
"""By how much quotients of one factor may differ, relative to it."""
FORMATS = {"float16": torch.float16, "bfloat16": torch.bfloat16}
"""Narrow types whose values are told in an output of a wider one."""


@dataclass(frozen=True)
class Outside:
    """Elements that were written around a tensor.

    Attributes:
        before, after, between: how many before its first element, behind its last one and between its rows.
    """

    name: str
    shape: tuple[int, ...]
    before: int
    after: int
    between: int


_AT_ONE_DISTANCE = frozenset({Pattern.every_kth_row, Pattern.every_kth_column})


@dataclass(frozen=True)
class Values:
    """What a wrong output holds.

    Attributes:
        unwritten: where nothing was written, in words; `""` where all was, or nothing.
        skipped: it is no end that is missing: what follows is written, or it is missing at one distance.
        nan: how many wrong elements are a NaN that was computed.
        infinite: how many of them are infinite, where a finite number is right.
        outside: how many of them are a NaN that the judge lays around inputs.
        error: root mean square of all errors over that of the right values; 0 where not all are finite.
        factor: what all right values are multiplied by, 0 where there is no such number.
        factors, differences: `row` or `column`, where one factor, or one difference, holds for all of each.
        narrow: the type that holds every value, though the output's is wider; `""` where there is none.
        formula: the name of another formula, of `FORMULAS`, that gives these values; `""` where none does.
        sums: of an output of one element, in words, which part of an input it is the sum of.
        answers: names of the author's misconceptions that give these values.
        faults: names of those whose formula could not be worked out, each with the error.
    """

    output: str
    shape: tuple[int, ...]
    dtype: str
    wrong: int
    total: int
    unwritten: str = ""
    skipped: bool = False
    nan: int = 0
    infinite: int = 0
    outside: int = 0
    error: float = 0.0
    factor: float = 0.0
    factors: str = ""
    differences: str = ""
    narrow: str = ""
    formula: str = ""
    sums: str = ""
    answers: frozenset[str] = frozenset()
    faults: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Facts:
    """What is known of a case.

    Attributes:
        outputs: those that are wrong.
        right: names of those that are right, where one is wrong.
        unset: the output that was added to, or read, before it was set; `""` where none was.
        order: whether another order of the threads gave another answer.
    """

    outputs: tuple[Values, ...] = ()
    right: tuple[str, ...] = ()
    unset: str = ""
    outside: Outside | None = None
    order: bool = False


NONE = Facts()


@dataclass(frozen=True)
class Material:
    """An output that is wrong, and what it is looked at with; everything private to the judge."""

    problem: Problem
    inputs: Tensors
    truth: Truth
    name: str
    got: torch.Tensor
    wrong: torch.Tensor
    untouched: torch.Tensor

    @property
    def expected(self) -> torch.Tensor:
        """What is right, float64 or an integer type."""
        return self.truth.expected[self.name]

    def fits(self, other: torch.Tensor) -> bool:
        """Whether nearly all of the output is what another formula gives, within the tolerance."""
        if other.shape != self.got.shape or self.got.numel() < _MIN_VALUES:
            return False
        return self.share(self.got, other) >= _NEARLY_ALL > self.share(self.expected.to(self.got.dtype), other)

    def share(self, one: torch.Tensor, other: torch.Tensor) -> float:
        """The share of elements in which one is what another formula gives, as far as that can be computed."""
        rounding = 2.0**6 if self.got.dtype is torch.float32 else 2.0
        scale = torch.maximum(self.truth.scale[self.name], rounding * other.double().abs())
        found = compare(one, other, scale, self.problem.assignment.tolerance[self.name])
        return float((~found.wrong).double().mean())


def gather(
    problem: Problem,
    tensors: tuple[Tensors, Tensors],
    truth: Truth,
    masks: tuple[Tensors, Tensors],
    misconceptions: Sequence[Misconception] = (),
) -> Facts:
    """Look at the outputs of a public case of which at least one is wrong.

    Args:
        tensors: its inputs and its outputs.
        truth: what the last piece of them has to be. Of at most `MAX_ELEMENTS` elements there is one piece.
        masks: which elements of each output are wrong, and which hold the judge's fill value, bool.
    """
    (inputs, outputs), (wrong, untouched) = tensors, masks
    bad = [name for name in outputs if bool(wrong[name].any())]
    numel = sum(tensor.numel() for tensor in (*inputs.values(), *outputs.values()))
    found = []
    for name in bad:
        base = _base(name, outputs[name], wrong[name], untouched[name])
        if numel <= MAX_ELEMENTS:
            material = Material(problem, inputs, truth, name, outputs[name], wrong[name], untouched[name])
            base = _with_values(base, material, misconceptions)
        found.append(base)
    return Facts(tuple(found), tuple(name for name in outputs if name not in bad))


def _base(name: str, got: torch.Tensor, wrong: torch.Tensor, untouched: torch.Tensor) -> Values:
    """What is known without the right values."""
    unset = untouched & wrong
    partly = bool(unset.any()) and not bool(untouched.all())
    pattern, where = find_pattern(unset) if partly else (Pattern.scattered, "")
    base = Values(name, tuple(got.shape), str(got.dtype).removeprefix("torch."), int(wrong.sum()), wrong.numel())
    skipped = partly and (pattern in _AT_ONE_DISTANCE or not bool(unset.reshape(-1)[-1]))
    return replace(base, unwritten=where, skipped=skipped)


def _with_values(base: Values, of: Material, misconceptions: Sequence[Misconception]) -> Values:
    answers, faults = _held_against(misconceptions, of)
    computed = of.wrong & ~of.untouched
    formula = next((name for name, make in FORMULAS.items() if any(of.fits(one) for one in _tried(make, of))), "")
    found: dict[str, Any] = {"answers": answers, "faults": faults, "formula": formula, "sums": _sums(of)}
    if of.got.dtype.is_floating_point:
        nan = of.got.isnan() & computed & ~of.expected.isnan()
        outside = nan & _is_a_guard(of.got)
        infinite = of.got.isinf() & computed & of.expected.isfinite()
        found |= {"nan": int((nan & ~outside).sum()), "outside": int(outside.sum()), "infinite": int(infinite.sum())}
        if bool(of.got.isfinite().all()) and bool(of.expected.isfinite().all()):
            found |= _errors(of)
    return Values(**(vars(base) | found))


def _errors(of: Material) -> dict[str, Any]:
    """What finite values show: how large the error is, and whether one number explains it."""
    got, expected = of.got.double(), of.expected.double()
    size = float(expected.square().mean().sqrt())
    error = float((got - expected).square().mean().sqrt()) / size if size else 0.0
    steady = _STEADY.get(str(of.got.dtype).removeprefix("torch."), 1e-3)
    telling = expected.abs() > 1e-3 * size
    quotients = torch.where(telling, got / expected, torch.nan)
    factor = _one_number(quotients, steady)
    spared = factor if abs(factor - 1) > _STEADY["float16"] else 0.0
    return {
        "error": error,
        "factor": spared,
        "factors": "" if spared else _along(quotients, steady),
        "differences": _along(torch.where(of.wrong | (got != expected), got - expected, torch.nan), 10 * steady),
        "narrow": _narrow(of),
    }


def _one_number(values: torch.Tensor, steady: float) -> float:
    """The number that all values are, 0 where they differ or are too few; NaN are left out."""
    kept = values[values.isfinite()]
    if kept.numel() < _MIN_VALUES:
        return 0.0
    middle = float(kept.median())
    spread = float((kept - middle).abs().quantile(_NEARLY_ALL)) if kept.numel() <= MAX_ELEMENTS else math.inf
    return middle if spread <= steady * abs(middle) else 0.0


def _along(values: torch.Tensor, steady: float) -> str:
    """Whether each row, or each column, has a number of its own."""
    if values.dim() != MATRIX or min(values.shape) < MATRIX:
        return ""
    for word, lines in (("row", values), ("column", values.T)):
        if lines.shape[1] >= _MIN_VALUES and _steady_lines(lines, steady):
            return word
    return ""


def _steady_lines(lines: torch.Tensor, steady: float) -> bool:
    """Whether what differs from line to line is the same within each; lines without a number are left out."""
    kept = lines[(lines.isfinite().sum(dim=1) >= _MIN_VALUES)]
    if len(kept) < MATRIX:
        return False
    middle = kept.nanmedian(dim=1, keepdim=True).values
    if not bool((middle != 0).all()):
        return False
    off = (kept - middle).abs() > steady * middle.abs()
    return float(off[kept.isfinite()].double().mean()) <= 1 - _NEARLY_ALL


def _narrow(of: Material) -> str:
    """The narrow type that holds all wrong values, where it does not hold the right ones."""
    if of.got.dtype is not torch.float32:
        return ""
    got, right = of.got[of.wrong], of.expected[of.wrong].float()
    for name, dtype in FORMATS.items():
        fits, fit_anyway = (float((one.to(dtype).float() == one).double().mean()) for one in (got, right))
        if len(got) >= _MIN_VALUES and fits >= _NEARLY_ALL and fit_anyway < 0.5:  # noqa: PLR2004 - half of them
            return name
    return ""


def _is_a_guard(got: torch.Tensor) -> torch.Tensor:
    """Which are NaN with a payload and no sign, as the judge lays them around inputs: arithmetic makes no such NaN.

    A GPU's own NaN has all bits of the payload.
    """
    payload = (1 << {torch.float16: 9, torch.bfloat16: 6, torch.float64: 51}.get(got.dtype, 22)) - 1
    low = bits(got) & payload
    return got.isnan() & ~got.signbit() & (low != 0) & (low != payload)


def _sums(of: Material) -> str:
    """Of one sum, which part of a vector it is of."""
    if of.got.numel() != 1 or not bool(of.got.isfinite().all()):
        return ""
    rule, eps = of.problem.assignment.tolerance[of.name], torch.finfo(torch.float32).eps
    got, right = float(of.got), float(of.expected)
    allowed = rule.factor * eps * float(of.truth.scale[of.name]) if of.got.dtype.is_floating_point else 0.0
    vectors = (one.double() for one in of.inputs.values() if one.dim() == 1 and 1 < one.numel() <= 2**16)
    for vector in vectors:
        for word, ordered in (("first", vector), ("last", vector.flip(0))):
            sums = ordered.cumsum(0)
            if abs(float(sums[-1]) - right) > allowed:
                continue
            hits = ((sums[:-1] - got).abs() <= allowed).nonzero().reshape(-1).tolist()
            if 1 <= len(hits) <= _MIN_VALUES:
                return f"{word} {hits[-1] + 1} of {vector.numel()}"
    return ""


def _held_against(misconceptions: Sequence[Misconception], of: Material) -> tuple[frozenset[str], dict[str, str]]:
    """The misconceptions that give the output, and those whose formula has a fault."""
    answers, faults = set[str](), dict[str, str]()
    for one in misconceptions:
        try:
            if _gives(one, of):
                answers.add(one.name)
        except Exception as error:  # noqa: BLE001  # an author's formula may do anything; the verdict does not need it
            faults[one.name] = f"{type(error).__name__}: {error}"
    return frozenset(answers), faults


def _gives(one: Misconception, of: Material) -> bool:
    """Whether a misconception's own formula gives the output."""
    if not one.answer or one.output not in {"", of.name}:
        return False
    known: dict[str, object] = {
        name: tensor.double() if tensor.is_floating_point() else tensor for name, tensor in of.inputs.items()
    }
    known |= dict(of.truth.expected)
    try:
        return _is_given(evaluate(one.answer, known | {"torch": torch}), of)
    except (RuntimeError, IndexError):
        # Tensors of this case do not fit, such as a vector of one element that is cut.
        return False


def _is_given(other: torch.Tensor, of: Material) -> bool:
    """As `fits`, for outputs of any size: an author's formula is not one of many that are tried."""
    other = other.expand(of.got.shape)
    return of.share(of.got, other) >= _NEARLY_ALL


def _tried(make: Callable[[Material], Iterator[torch.Tensor]], of: Material) -> Iterator[torch.Tensor]:
    """What a formula gives; nothing where the shapes do not allow it."""
    try:
        yield from make(of)
    except (RuntimeError, ValueError, IndexError, KeyError, HarnessError):
        return


def _other_axis(of: Material) -> Iterator[torch.Tensor]:
    """The answer for the transposed matrices, transposed back."""
    if of.got.dim() != MATRIX or not any(one.shape == of.got.shape for one in of.inputs.values()):
        return
    turned = {name: one.T.contiguous() if one.shape == of.got.shape else one for name, one in of.inputs.items()}
    yield of.problem.answer(turned)[of.name].T


def _turned(of: Material) -> Iterator[torch.Tensor]:
    """The right values, stored along the other direction."""
    if of.got.dim() == MATRIX and min(of.got.shape) > 1:
        yield of.expected.T.reshape(of.got.shape)


def _shifted(of: Material) -> Iterator[torch.Tensor]:
    """The right values, one place on or back."""
    if of.got.numel() >= 2**5:
        yield from (of.expected.roll(step, -1) for step in (1, -1))


def _shifted_rows(of: Material) -> Iterator[torch.Tensor]:
    """The right rows, one on or back."""
    if of.got.dim() == MATRIX and min(of.got.shape) >= _MIN_VALUES:
        yield from (of.expected.roll(step, 0) for step in (1, -1))


def _copied(of: Material) -> Iterator[torch.Tensor]:
    """An input as it is."""
    yield from (one for one in of.inputs.values() if one.shape == of.got.shape)


FORMULAS: Mapping[str, Callable[[Material], Iterator[torch.Tensor]]] = {
    "other axis": _other_axis,
    "turned": _turned,
    "shifted": _shifted,
    "shifted rows": _shifted_rows,
    "copied": _copied,
}
"""Well-known other formulas, by name: each makes what the output would be."""
