"""What counts as work in an output that is right though the student's kernels did nothing."""

from __future__ import annotations

import pytest
import torch

from autograder.assignment import DTYPE_BYTES
from autograder.judge.correctness.noop_replay import Output, share

X = torch.tensor([2.5, 3.5, 4.5, 5.5])


def shared(got: torch.Tensor, expected: torch.Tensor, **inputs: torch.Tensor) -> float:
    return share({"out": Output(got, expected, got == expected.to(got.dtype))}, inputs)


def test_the_share_is_of_elements_over_all_outputs() -> None:
    half = Output(X, X.double(), torch.tensor([True, True, False, False]))
    whole = Output(X[:2], X[:2].double(), torch.tensor([True, True]))
    assert share({"one": half}, {}) == 0.5
    assert share({"one": half, "other": whole}, {}) == pytest.approx(4 / 6)


@pytest.mark.parametrize("value", [0.0, 1.0, -1.0, float("inf"), float("-inf")])
def test_a_value_to_fill_memory_with_is_no_work(value: float) -> None:
    assert shared(torch.full((4,), value), torch.full((4,), value, dtype=torch.float64)) == 0.0


def test_a_transpose_of_zeros_takes_no_work_and_one_of_numbers_does() -> None:
    zeros, numbers = torch.zeros(2, 3), torch.arange(2.0, 8.0).reshape(2, 3)
    assert shared(torch.zeros(3, 2), zeros.T.double(), x=zeros) == 0.0
    # The first and the last element stay where they are.
    assert shared(numbers.T.contiguous(), numbers.T.double(), x=numbers) == 1.0
    assert shared(numbers.reshape(3, 2), numbers.T.double(), x=numbers) == 0.0


def test_a_copy_of_an_input_is_no_work_where_nothing_was_to_be_done() -> None:
    expected = torch.tensor([2.5, 3.5, 9.0, 11.0], dtype=torch.float64)
    assert shared(X, expected, x=X) == 0.0


def test_zeros_that_are_right_within_the_tolerance_are_no_work() -> None:
    found = Output(torch.zeros(4), torch.full((4,), 1e-9, dtype=torch.float64), torch.ones(4, dtype=torch.bool))
    assert share({"out": found}, {}) == 0.0


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.uint8])
def test_whole_numbers_have_fills_too(dtype: torch.dtype) -> None:
    last = torch.iinfo(dtype).max
    counts = torch.tensor([0, 1, last, 7], dtype=dtype)
    assert shared(counts, counts) == 1.0
    assert shared(counts[:3], counts[:3]) == 0.0


def test_nothing_in_an_empty_output_is_work() -> None:
    assert shared(torch.zeros(0), torch.zeros(0, dtype=torch.float64)) == 0.0


def test_every_type_of_an_output_can_be_asked() -> None:
    for name in DTYPE_BYTES:
        filled = torch.ones(4, dtype=getattr(torch, name))
        assert shared(filled, filled) == 0.0
