"""The bound of the reduction's sum has room for honest orders of additions, and none for one chain of everything."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import pytest
import torch

from autograder.assignment import Case, load_assignment
from autograder.judge.correctness import seeds
from autograder.judge.correctness.compare import compare
from autograder.judge.correctness.problem import Problem, load_problem
from tests.golden.rungs import ASSIGNMENTS

Order = Callable[[torch.Tensor], torch.Tensor]
SIZES = (20011, 150001)


def _tree(lanes: torch.Tensor) -> torch.Tensor:
    """The last dimension, a power of two, folded by halves."""
    while lanes.shape[-1] > 1:
        lanes = lanes[..., ::2] + lanes[..., 1::2]
    return lanes[..., 0]


def _in_lanes(x: torch.Tensor, lanes: int) -> torch.Tensor:
    """Running sums in a power of two of lanes, which a tree folds: what a program, a block or a GPU's torch does."""
    sums = torch.zeros(*x.shape[:-1], lanes)
    for row in _cut(x, lanes).unbind(-2):
        sums += row
    return _tree(sums)


def _cut(x: torch.Tensor, width: int) -> torch.Tensor:
    """The last dimension in rows of this width; zeros fill the last of them."""
    return torch.nn.functional.pad(x, (0, -x.shape[-1] % width)).unflatten(-1, (-1, width))


def _one_by_one(parts: torch.Tensor) -> torch.Tensor:
    """One chain, as atomics add, in the order in which the parts come."""
    return torch.from_numpy(np.add.accumulate(parts.numpy(), dtype=np.float32)[-1:].copy())


def _by_atomics(parts: torch.Tensor) -> torch.Tensor:
    """Partial results, added in whatever order they come."""
    return _one_by_one(parts[torch.randperm(parts.numel())])


ORDERS: dict[str, Order] = {
    "torch": torch.sum,
    "chains of 74 in 2048 lanes": lambda x: _in_lanes(x, 2048),
    "chains of 293 in 512 lanes": lambda x: _in_lanes(x, 512),
    "64 programs, then atomics": lambda x: _by_atomics(_in_lanes(_cut(x, -(-x.numel() // 64)), 256)),
    "blocks of 256, then atomics": lambda x: _by_atomics(_tree(_cut(x, 256))),
}


@lru_cache
def _problem() -> Problem:
    folder = ASSIGNMENTS / "reduction"
    return load_problem(load_assignment(folder), folder)


def _is_right(order: Order, distribution: str, n: int) -> bool:
    problem = _problem()
    case = Case("drawn", {"n": n}, "float32", distribution)
    inputs = problem.inputs(case, seeds.fresh_seed())
    truth = problem.truth(case, inputs)
    rule = problem.assignment.tolerance["total"]
    return compare(order(inputs["x"]).reshape(1), truth.expected["total"], truth.scale["total"], rule).right


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("distribution", ["above", "negative", "ones"])
@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
def test_an_honest_order_is_within_the_bound(order: Order, distribution: str, n: int) -> None:
    assert all(_is_right(order, distribution, n) for _ in range(3))


@pytest.mark.parametrize("n", SIZES)
def test_one_chain_of_everything_is_not(n: int) -> None:
    assert not any(_is_right(_one_by_one, "ones", n) for _ in range(3))
