"""Answers that must not pass: a lower precision, and everything that can be guessed without computing.

Each is made from the oracle's own answer, put into the output's dtype and compared as a submission's output would be.
It has to fail in at least one public case of every dtype; a tolerance or an input that lets it through is too weak.
A type that only GPU lanes have, bfloat16, is tried too: in the CPU's cases of its width, drawn in that type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from autograder.assignment import DTYPE_BYTES, Assignment, Case, load_assignment
from autograder.contract import Lane
from autograder.judge.correctness import seeds
from autograder.judge.correctness.compare import compare
from autograder.judge.correctness.problem import Problem, load_problem
from autograder.judge.protocol.tensors import Tensors, dtype_of
from autograder.verify.gaps import Gap

LOWER: Mapping[torch.dtype, torch.dtype] = {
    torch.float64: torch.float32,
    torch.float32: torch.float16,
    torch.float16: torch.float8_e5m2,
    torch.bfloat16: torch.float8_e4m3fn,
}
"""The next lower precision: fewer bits of significand, whatever the range."""


@dataclass(frozen=True)
class Meeting:
    """One case with inputs, their answer, and the answer to other inputs of the same case."""

    case: Case
    inputs: Tensors
    expected: Tensors
    scale: Tensors
    earlier: Tensors


Shortcut = Callable[[Problem, Meeting], Tensors]


def find(assignment_folder: Path, lane: Lane = Lane.cpu) -> tuple[Gap, ...]:
    """The shortcuts that pass every public case of some dtype, in cases of the size that `lane` has.

    Raises:
        HarnessError: problem.py does not fit the manifest.
    """
    assignment = load_assignment(assignment_folder)
    whole = load_problem(assignment, assignment_folder)
    found: list[Gap] = []
    for part in assignment.parts:
        problem, name = whole.part(part.cases[0]), f"{part.entry}: " if assignment.functions else ""
        meetings = [_meet(problem, case) for case in _cases(part, lane)]
        found += [replace(gap, problem=name + gap.problem) for gap in _gaps(part, problem, meetings)]
    return tuple(found)


def failing(assignment: Assignment, problem: Problem, meeting: Meeting, shortcut: Shortcut) -> bool:
    """Whether the comparison finds this shortcut out in this case."""
    made = shortcut(problem, meeting)
    outputs = {
        argument.name: made[argument.name].to(dtype_of(assignment.dtype_of(argument, meeting.case)))
        for argument in assignment.outputs
    }
    also_wrong = problem.wrong_by_check(meeting.inputs, outputs)
    return any(bool(one.any()) for one in also_wrong.values()) or any(
        not compare(got, meeting.expected[name], meeting.scale[name], assignment.tolerance[name]).right
        for name, got in outputs.items()
    )


def _cases(assignment: Assignment, lane: Lane) -> Iterator[Case]:
    """The lane's own; and its narrowest ones in every type that only other lanes have, where cases are too large."""
    mine = assignment.cases_for(lane)
    yield from mine
    narrowest = min((DTYPE_BYTES[case.dtype] for case in mine), default=0)
    for dtype in sorted({case.dtype for case in assignment.cases} - {case.dtype for case in mine}):
        yield from (replace(case, dtype=dtype) for case in mine if DTYPE_BYTES[case.dtype] == narrowest)


def _meet(problem: Problem, case: Case) -> Meeting:
    inputs, others = problem.inputs(case, seeds.fresh_seed()), problem.inputs(case, seeds.fresh_seed())
    truth = problem.truth(case, inputs)
    return Meeting(case, inputs, truth.expected, truth.scale, problem.truth(case, others).expected)


def _gaps(assignment: Assignment, problem: Problem, meetings: list[Meeting]) -> Iterator[Gap]:
    for dtype in sorted({meeting.case.dtype for meeting in meetings}):
        mine = [meeting for meeting in meetings if meeting.case.dtype == dtype]
        for name, shortcut in SHORTCUTS.items():
            if name in OF_MANY and all(_has_one_element(meeting) for meeting in mine):
                continue
            if name in OF_LOWER and dtype_of(dtype) not in LOWER:
                continue
            if name in OF_FRACTIONS and not _has_a_fraction(mine):
                continue
            if not any(failing(assignment, problem, meeting, shortcut) for meeting in mine):
                yield Gap("assignment.toml", f"in {dtype}, {name} passes every public case")


def _has_one_element(meeting: Meeting) -> bool:
    return all(value.numel() == 1 for value in meeting.expected.values())


def _has_a_fraction(meetings: list[Meeting]) -> bool:
    return any(value.is_floating_point() for meeting in meetings for value in meeting.expected.values())


def _each(change: Callable[[torch.Tensor], torch.Tensor]) -> Shortcut:
    """The right answer, changed."""
    return lambda _, meeting: {name: change(value) for name, value in meeting.expected.items()}


def _finite_mean(value: torch.Tensor, dim: int | None = None) -> torch.Tensor:
    finite = value.double().nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
    return (finite.mean() if dim is None else finite.mean(dim=dim, keepdim=True)).expand_as(value)


def _rounded(value: torch.Tensor, lower: torch.dtype) -> torch.Tensor:
    """To fewer bits of significand; what the lower type has no number for stays as it is."""
    there = value.to(lower).to(value.dtype)
    return torch.where((value.abs() <= torch.finfo(lower).max) & (there != 0), there, value)


def _lower_inputs(problem: Problem, meeting: Meeting) -> Tensors:
    """The exact answer to inputs that were rounded to the next lower precision."""
    rounded = {
        name: _rounded(value, LOWER[value.dtype]) if value.dtype in LOWER else value
        for name, value in meeting.inputs.items()
    }
    return problem.truth(meeting.case, rounded).expected


def _lower_output(_: Problem, meeting: Meeting) -> Tensors:
    """The exact answer, rounded to the precision below the inputs'."""
    lower = LOWER.get(dtype_of(meeting.case.dtype), dtype_of(meeting.case.dtype))
    return {name: _rounded(value, lower).double() for name, value in meeting.expected.items()}


SHORTCUTS: Mapping[str, Shortcut] = {
    "zeros": _each(torch.zeros_like),
    "the mean everywhere": _each(_finite_mean),
    "the mean of each row": _each(lambda value: _finite_mean(value, -1)),
    "the mean of each column": _each(lambda value: _finite_mean(value, 0)),
    "the answer shifted by one element": _each(lambda value: value.flatten().roll(1).reshape(value.shape)),
    "the answer to earlier inputs": lambda _, meeting: meeting.earlier,
    "inputs rounded to the next lower precision": _lower_inputs,
    "the answer in the next lower precision": _lower_output,
}

OF_MANY = {
    "the mean everywhere",
    "the mean of each row",
    "the mean of each column",
    "the answer shifted by one element",
}
"""Shortcuts that are the right answer itself where an output is a single number."""

OF_LOWER = {"inputs rounded to the next lower precision", "the answer in the next lower precision"}
"""Shortcuts that there are where a type has a lower precision."""

OF_FRACTIONS = {"the answer in the next lower precision"}
"""Shortcuts that there are where some answer is no integer: the oracle gives integers in a type of them."""
