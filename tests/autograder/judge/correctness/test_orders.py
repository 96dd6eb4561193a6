"""A wrong answer of the emulator's, and what other orders of the threads say of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, cast

import torch

from autograder.assignment import Case
from autograder.contract import Mismatch, Pattern, Verdict
from autograder.judge.correctness.checker import CallResult, Checker
from autograder.judge.correctness.compare import far_apart
from autograder.judge.defences import Defences
from autograder.judge.protocol.runner_client import RunnerClient

WRONG = Mismatch("out", (2,), "float32", 1, 2, Pattern.scattered, "one of them", (0,), "1", "2", "0", (), (1, 1))
ORDER = "The answer depends on the order of the threads"


class Runner:
    """Has threads take turns in so many orders."""

    def __init__(self, orders: int) -> None:
        self.orders = orders


class Answered(Checker):
    """One whose calls have been answered already."""

    def __init__(self, *answers: CallResult) -> None:
        self._answers: Iterator[CallResult] = iter(answers)
        self._defences = Defences()
        self.called = 0

    def draw(self, _: Case) -> dict[str, torch.Tensor]:
        """Nothing."""
        return {}

    def _call(self, *_: Any, **__: Any) -> CallResult:
        self.called += 1
        return next(self._answers)

    def asked(self, orders: int) -> CallResult:
        """What the case comes to."""
        return self.case(cast("RunnerClient", Runner(orders)), cast("Case", None))


def wrong(*values: float) -> CallResult:
    return CallResult(Verdict.wrong_answer, "Wrong.", mismatch=WRONG, outputs={"out": torch.tensor(values)})


def test_a_wrong_answer_that_another_order_changes_depends_on_the_order() -> None:
    checker = Answered(wrong(2.0, 1.0), wrong(2.0, 1.0), wrong(7.0, 1.0))
    checked = checker.asked(orders=3)
    assert (checked.verdict, checker.called) == (Verdict.wrong_answer, 3)
    assert ORDER in checked.message
    assert "a missing `__syncthreads()`" in checked.message


def test_what_rounding_changes_does_not() -> None:
    for other in (wrong(2.0, 1.0), wrong(2.0001, 1.0)):
        assert Answered(wrong(2.0, 1.0), other, other).asked(orders=3).message == "Wrong."


def test_where_there_is_one_order_a_wrong_answer_is_called_once() -> None:
    checker = Answered(wrong(2.0, 1.0))
    assert checker.asked(orders=1).message == "Wrong."
    assert checker.called == 1


def test_a_runner_that_ends_in_another_order_has_ended() -> None:
    ended = dataclasses.replace(wrong(), outputs={}, ended=True)
    checked = Answered(wrong(2.0, 1.0), ended).asked(orders=3)
    assert (checked.verdict, checked.message, checked.ended) == (Verdict.wrong_answer, "Wrong.", True)


def test_an_answer_that_is_wrong_in_the_second_order_depends_on_it_too() -> None:
    right = CallResult(Verdict.passed, "Passed.", outputs={"out": torch.tensor([1.0, 1.0])})
    checked = Answered(right, wrong(2.0, 1.0)).asked(orders=3)
    assert checked.verdict is Verdict.nondeterministic
    assert "The first call was right" in checked.message
    assert ORDER in checked.message


def test_what_is_far_apart() -> None:
    one = torch.tensor([1.0, 100.0, torch.nan, torch.inf])
    assert not far_apart(one, one * 1.001)
    assert far_apart(one, torch.tensor([1.0, 100.0, torch.nan, 3.0]))
    assert far_apart(torch.tensor([1.0, 100.0]), torch.tensor([1.0, 102.0]))
    assert far_apart(torch.tensor([1, 2]), torch.tensor([1, 3]))
    assert not far_apart(torch.zeros(0), torch.zeros(0))
