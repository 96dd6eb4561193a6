"""Outputs beside the reference's: what is near them is held against the oracle in places that nobody knows before."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from autograder.assignment import load_assignment
from autograder.contract import Verdict
from autograder.judge.correctness.checker import CallOutputs, Checker
from autograder.judge.correctness.problem import Problem, load_problem
from autograder.judge.defences import ALL_ON
from autograder.judge.protocol.tensors import Tensors

FOLDER = Path(__file__).parents[4] / "assignments" / "saxpy"
ASSIGNMENT = load_assignment(FOLDER)
CASE = max((case for case in ASSIGNMENT.cases if case.dtype == "float32"), key=lambda one: min(one.size["n"], 10**6))
COUNT = 200_000


@dataclasses.dataclass
class Answer:
    """A snapshot of which every element was written."""

    tensor: torch.Tensor

    def values(self) -> torch.Tensor:
        return self.tensor

    def untouched(self) -> torch.Tensor:
        return torch.zeros(self.tensor.shape, dtype=torch.bool)


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many outputs were compared as a whole; samples are as small as those of a ranked case are beside it."""
    whole: list[int] = []
    pieces = Problem.pieces

    def counted(self: Problem, inputs: Tensors, outputs: Tensors):
        whole.append(1)
        return pieces(self, inputs, outputs)

    monkeypatch.setattr(Problem, "pieces", counted)
    monkeypatch.setattr("autograder.judge.correctness.problem.SAMPLE", 10_000)
    return whole


def judged(change: Callable[[torch.Tensor], object], *, oracle: bool = True) -> Verdict:
    """What becomes of the oracle's answer after `change`, beside a reference that rounds otherwise."""
    problem = load_problem(ASSIGNMENT, FOLDER)
    checker = Checker(ASSIGNMENT, problem, dataclasses.replace(ALL_ON, oracle=oracle))
    draw = torch.Generator().manual_seed(3)
    inputs = {
        "a": torch.tensor(1.5),
        "x": torch.rand(COUNT, generator=draw) + 1,
        "y": torch.rand(COUNT, generator=draw) + 1,
    }
    right = (inputs["a"].double() * inputs["x"].double() + inputs["y"].double()).float()
    reference = right.clone()
    reference.view(torch.int32)[::3] += 1
    got = right.clone()
    change(got)
    taken = CallOutputs(CASE, inputs, {"out": Answer(got)}, None, 0)  # type: ignore[arg-type]
    return checker.verify(taken, {"out": reference}).verdict


def test_what_rounds_otherwise_is_not_compared_as_a_whole(looked: list[int]) -> None:
    assert judged(torch.Tensor.contiguous) is Verdict.passed
    assert not looked


def test_a_few_percent_that_are_only_near_are_found_in_some_call(looked: list[int]) -> None:
    """Half a percent off, in 3 % of a call: in each of them a sample finds it with 1 - exp(-32·0.03), or 62 %."""
    verdicts = [judged(lambda got: got[: COUNT * 3 // 100].mul_(1.005)) for _ in range(20)]
    assert Verdict.wrong_answer in verdicts
    assert len(looked) == verdicts.count(Verdict.wrong_answer)


@pytest.mark.parametrize("value", [0.0, math.nan, math.inf, 2.9])
def test_one_element_that_is_far_off_is_always_found(value: float, looked: list[int]) -> None:
    assert judged(lambda got: got[12_345].fill_(value)) is Verdict.wrong_answer
    assert looked


def test_without_the_oracle_nothing_is(looked: list[int]) -> None:
    assert judged(lambda got: got.zero_(), oracle=False) is Verdict.passed
    assert not looked
