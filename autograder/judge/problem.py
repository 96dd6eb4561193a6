"""An assignment's `problem.py`: how inputs are made and what is right, in plain torch. Ours, and run by the judge only.

make_inputs(*, generator, dtype, distribution, **size)    tensors by name
expected(**inputs)                                        float64 or integer tensors by output
error_scale(**inputs)                                     optional: the oracle's own error bound, per element
check(inputs, outputs)                                    optional: wrong elements by output, as bool tensors

What they are given they only read: it is the judge's own memory, of which the other side's inputs are made as well.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import torch

from autograder.assignment import Argument, Assignment, Case
from autograder.errors import HarnessError
from autograder.judge import seeds

Tensors = dict[str, torch.Tensor]
_CPU = torch.device("cpu")


@dataclass(frozen=True)
class Truth:
    """What is right for some inputs: values, and the scale of the oracle's own error, by output."""

    expected: Tensors
    scale: Tensors


def dtype_of(name: str) -> torch.dtype:
    """The torch dtype that a manifest calls `name`."""
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise HarnessError(f"torch has no dtype {name!r}")
    return dtype


class Problem:
    """The functions of one assignment's `problem.py`, with their answers checked against the manifest."""

    def __init__(self, assignment: Assignment, module: ModuleType) -> None:
        self.assignment = assignment
        self._make_inputs: Callable[..., Tensors] = _function(module, "make_inputs")
        self._expected: Callable[..., Tensors] = _function(module, "expected")
        self._error_scale: Callable[..., Tensors] | None = getattr(module, "error_scale", None)
        self._check: Callable[[Tensors, Tensors], Mapping[str, torch.Tensor]] | None = getattr(module, "check", None)

    def inputs(self, case: Case, seed: int, where: torch.device = _CPU) -> Tensors:
        """Fresh, contiguous inputs of `case`, of the manifest's shapes and dtypes, made on the device `where`.

        Scalars are among them, as tensors without dimensions.
        """
        made = self._make_inputs(
            generator=seeds.generator(seed, where),
            dtype=dtype_of(case.dtype),
            distribution=case.distribution,
            **case.size,
        )
        return {argument.name: self._shaped(made, argument, case).contiguous() for argument in self._made()}

    def _made(self) -> tuple[Argument, ...]:
        return self.assignment.inputs + self.assignment.scalars

    def truth(self, case: Case, inputs: Tensors) -> Truth:
        """What the outputs have to be; the scale is |expected| where the problem gives none."""
        values = self._expected(**inputs)
        scales = self._error_scale(**inputs) if self._error_scale else {}
        expected, scale = {}, {}
        for argument in self.assignment.outputs:
            value = _named(values, argument.name, "expected")
            self._same_shape(value, argument, case, "expected")
            expected[argument.name] = value
            scale[argument.name] = scales.get(argument.name, value).double().abs().broadcast_to(value.shape)
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
        self._same_shape(tensor, argument, case, "make_inputs")
        wanted = dtype_of(self.assignment.dtype_of(argument, case))
        if tensor.dtype != wanted:
            raise HarnessError(f"make_inputs gives {argument.name!r} as {tensor.dtype}, the manifest says {wanted}")
        return tensor

    def _same_shape(self, tensor: torch.Tensor, argument: Argument, case: Case, function: str) -> None:
        wanted = self.assignment.shape_of(argument, case)
        if tuple(tensor.shape) != wanted:
            shape = tuple(tensor.shape)
            raise HarnessError(f"{function} gives {argument.name!r} the shape {shape}, the manifest says {wanted}")


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
