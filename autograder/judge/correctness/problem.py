"""An assignment's `problem.py`: how inputs are made and what is right, in plain torch. Ours, and run by the judge only.

make_inputs(*, generator, dtype, distribution, **size)    tensors by name; those that are no argument stay here, for
                                                          the functions below, and no submission is given them
expected(**inputs)                                        float64 or integer tensors by output
error_scale(**inputs)                                     optional: the oracle's own error bound, per element
check(inputs, outputs)                                    optional: wrong elements by output, as bool tensors;
                                                          needed where a tolerance is `checked`: `expected` gives
                                                          nothing for such an output
APART                                                     optional: the dimension of each tensor along which its entries
                                                          do not need those of others; tensors that are not named are
                                                          needed whole. An answer is then compared in pieces

Where an entry's answer depends on where it stands, `expected` and `error_scale` take `at` too: of the entries along the
dimension that is cut, which they are given, int64; and may take `length`, how many there are of them in all.

Where a source defines several functions, each of these takes `function` too, by name: the one that is called.

What they are given they only read: it is the judge's own memory, of which the other side's inputs are made as well.
"""

from __future__ import annotations

import functools
import importlib.util
import inspect
import itertools
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

import torch

from autograder.assignment import Argument, Assignment, Case
from autograder.errors import HarnessError
from autograder.judge.correctness import seeds
from autograder.judge.protocol.tensors import Tensors, dtype_of

PIECE = 2**25
"""Elements of all tensors that are cut, in one piece: comparing takes some hundred bytes for each."""
WINDOWS = 32
"""Where a sample looks: whoever leaves a share f of the work undone in c calls is missed with exp(-32·f·c)."""
SAMPLE = 2**20
"""Elements of all tensors that are cut, in a sample, unless a window has a single entry."""

_CPU = torch.device("cpu")


@dataclass(frozen=True)
class Truth:
    """What is right for some inputs: values, and the scale of the oracle's own error, by output."""

    expected: Tensors
    scale: Tensors


class Problem:
    """The functions of one assignment's `problem.py`, with their answers checked against the manifest."""

    def __init__(self, assignment: Assignment, module: ModuleType, function: str = "") -> None:
        def own(name: str) -> Any:
            found = _function(module, name)
            return functools.partial(found, function=function) if function else found

        self.assignment = assignment
        self._make_inputs: Callable[..., Tensors] = own("make_inputs")
        self._expected: Callable[..., Tensors] = own("expected")
        self._error_scale: Callable[..., Tensors] | None = (
            own("error_scale") if hasattr(module, "error_scale") else None
        )
        self._check: Callable[[Tensors, Tensors], Mapping[str, torch.Tensor]] | None = (
            own("check") if hasattr(module, "check") else None
        )
        if self._check is None and (checked := self._checked()):
            raise HarnessError(f"the tolerance of {min(checked)!r} is checked, and problem.py has no check")
        self._apart: Mapping[str, int] = getattr(module, "APART", {})
        self._places = {"at", "length"} & set(inspect.signature(self._expected).parameters)
        parts = assignment.parts if assignment.functions else ()
        self._parts = {part.entry: Problem(part, module, part.entry) for part in parts}

    def part(self, case: Case) -> Problem:
        """The problem of the function that a case calls; itself, where there is one function."""
        return self._parts.get(case.function, self)

    def inputs(self, case: Case, seed: int, where: torch.device = _CPU) -> Tensors:
        """Fresh, contiguous inputs of `case`, of the manifest's shapes and dtypes, made on the device `where`.

        Scalars are among them, as tensors without dimensions, and what only the judge is to know.
        """
        made = self._make_inputs(
            generator=seeds.generator(seed, where),
            dtype=dtype_of(case.dtype),
            distribution=case.distribution,
            **case.size,
        )
        return made | {argument.name: self._shaped(made, argument, case).contiguous() for argument in self._made()}

    def _checked(self) -> set[str]:
        """Outputs of which only the problem's own check says what is right."""
        return {name for name, tolerance in self.assignment.tolerance.items() if tolerance.kind == "checked"}

    def _made(self) -> tuple[Argument, ...]:
        return self.assignment.inputs + self.assignment.scalars

    def truth(self, case: Case, inputs: Tensors) -> Truth:
        """What the outputs have to be; the scale is |expected| where the problem gives none."""
        shapes = {argument.name: self.assignment.shape_of(argument, case) for argument in self.assignment.outputs}
        return self._truth(inputs, shapes)

    def answer(self, inputs: Tensors) -> Tensors:
        """What `expected` makes of inputs that need not have the manifest's shapes; it may raise."""
        if self._places:
            return {}
        return self._expected(**inputs)

    def pieces(self, inputs: Tensors, outputs: Tensors) -> Iterator[tuple[Tensors, Truth]]:
        """The outputs, piece by piece, each with what it has to be: views of theirs, in order, nothing left out."""
        length, numel = self._cut({**inputs, **outputs})
        step = max(1, length * PIECE // max(1, numel))
        for start in range(0, length, step) or (0,):
            yield self._part(inputs, outputs, length, [range(start, min(start + step, length))])

    def sample(self, inputs: Tensors, outputs: Tensors) -> tuple[Tensors, Truth] | None:
        """Some of the outputs' entries in windows at random places, with what they have to be; `None`: it takes all."""
        length, numel = self._cut({**inputs, **outputs})
        size = max(1, SAMPLE * length // max(1, numel) // WINDOWS)
        if length < 2 * WINDOWS * size:
            return None
        # Windows that overlap would look at less: each has a stretch of its own, and together these are all entries.
        ends = [window * length // WINDOWS for window in range(WINDOWS + 1)]
        begins = [low + secrets.randbelow(high - low - size + 1) for low, high in itertools.pairwise(ends)]
        return self._part(inputs, outputs, length, [range(begin, begin + size) for begin in begins])

    def along(self, output: str) -> int:
        """The dimension along which the pieces of an output follow each other."""
        return self._apart.get(output, 0)

    def _cut(self, tensors: Tensors) -> tuple[int, int]:
        """How many entries there are along the dimension that is cut, 0 where nothing can be; their elements in all."""
        cut = [tensors[name] for name in self._apart]
        lengths = {tensors[name].shape[dim] for name, dim in self._apart.items()}
        return lengths.pop() if len(lengths) == 1 else 0, sum(tensor.numel() for tensor in cut)

    def _part(self, inputs: Tensors, outputs: Tensors, length: int, taken: Sequence[range]) -> tuple[Tensors, Truth]:
        """These entries of the outputs, and what they have to be; all where nothing can be cut."""

        def part(name: str, tensor: torch.Tensor) -> torch.Tensor:
            if not length or name not in self._apart:
                return tensor
            views = [tensor.narrow(self._apart[name], one.start, len(one)) for one in taken]
            return views[0] if len(views) == 1 else torch.cat(views, dim=self._apart[name])

        some = {name: part(name, tensor) for name, tensor in outputs.items()}
        given = {name: part(name, tensor) for name, tensor in inputs.items()}
        shapes = {name: tuple(tensor.shape) for name, tensor in some.items()}
        if not (length and self._places):
            return some, self._truth(given, shapes)
        where = next(iter(inputs.values())).device
        at = torch.cat([torch.arange(one.start, one.stop, device=where) for one in taken])
        known = {"at": at, "length": length}
        return some, self._truth(given, shapes, {name: known[name] for name in self._places})

    def _truth(
        self, inputs: Tensors, shapes: Mapping[str, tuple[int, ...]], places: Mapping[str, Any] = MappingProxyType({})
    ) -> Truth:
        values = self._expected(**inputs, **places)
        scales = self._error_scale(**inputs, **places) if self._error_scale else {}
        expected, scale, checked = {}, {}, self._checked()
        for name, shape in shapes.items():
            if name in checked:
                value = torch.full(shape, torch.nan, dtype=torch.float64)
            else:
                value = _named(values, name, "expected")
            _same_shape(value, name, shape, "expected")
            expected[name] = value
            scale[name] = scales.get(name, value).double().abs().broadcast_to(value.shape)
        return Truth(expected, scale)

    @property
    def has_check(self) -> bool:
        """Whether the problem has a check of its own."""
        return self._check is not None

    def wrong_by_check(self, inputs: Tensors, outputs: Tensors) -> Mapping[str, torch.Tensor]:
        """Elements that the problem's own `check` finds wrong, by output; nothing where it has none."""
        return self._check(inputs, outputs) if self._check else {}

    def _shaped(self, made: Tensors, argument: Argument, case: Case) -> torch.Tensor:
        tensor = _named(made, argument.name, "make_inputs")
        _same_shape(tensor, argument.name, self.assignment.shape_of(argument, case), "make_inputs")
        wanted = dtype_of(self.assignment.dtype_of(argument, case))
        if tensor.dtype != wanted:
            raise HarnessError(f"make_inputs gives {argument.name!r} as {tensor.dtype}, the manifest says {wanted}")
        return tensor


def load_problem(assignment: Assignment, folder: Path) -> Problem:
    """Execute `folder/problem.py`.

    Raises:
        HarnessError: it is missing, raises, or lacks a function.
    """
    path = folder / "problem.py"
    spec = importlib.util.spec_from_file_location(f"problem_of_{assignment.slug}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise HarnessError(f"assignment {assignment.slug!r} has no problem.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return Problem(assignment, module)


def _function(module: ModuleType, name: str) -> Callable[..., Tensors]:
    function = getattr(module, name, None)
    if not callable(function):
        raise HarnessError(f"{module.__name__} has no function {name!r}")
    return function  # type: ignore[no-any-return]


def _named(tensors: Tensors, name: str, function: str) -> torch.Tensor:
    tensor = tensors.get(name)
    if not isinstance(tensor, torch.Tensor):
        raise HarnessError(f"{function} gives no tensor {name!r}")
    return tensor


def _same_shape(tensor: torch.Tensor, name: str, wanted: tuple[int, ...], function: str) -> None:
    if tuple(tensor.shape) != wanted:
        raise HarnessError(f"{function} gives {name!r} the shape {tuple(tensor.shape)}, the manifest says {wanted}")
