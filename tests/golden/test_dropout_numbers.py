"""The random numbers of bias, GELU and dropout: Philox's own, fair, and on the edge of p where a case says so."""

from __future__ import annotations

import importlib.util
from types import ModuleType

import pytest
import torch

from autograder.judge.correctness import seeds
from tests.golden.rungs import ASSIGNMENTS

NUMBERS = 65536


def _load_problem() -> ModuleType:
    path = ASSIGNMENTS / "bias_gelu_dropout" / "problem.py"
    spec = importlib.util.spec_from_file_location("problem_of_dropout", path)
    if spec is None or spec.loader is None:
        raise ImportError(path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PROBLEM = _load_problem()


def _inputs(distribution: str, rows: int = 20, cols: int = 37) -> dict[str, torch.Tensor]:
    generator = seeds.generator(seeds.fresh_seed(), torch.device("cpu"))
    made: dict[str, torch.Tensor] = PROBLEM.make_inputs(
        generator=generator, dtype=torch.float32, distribution=distribution, rows=rows, cols=cols
    )
    return made


def test_philox_gives_its_authors_known_answer() -> None:
    """Counter and key zero, from the file `kat_vectors` of Random123."""
    words = PROBLEM.philox(torch.zeros(1, dtype=torch.int64), 0, 0)
    assert [int(word) for word in words] == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


def test_both_halves_of_the_seed_matter() -> None:
    one, low, high = (PROBLEM.numbers(torch.tensor(seed), 64) for seed in (7, 8, 7 + 2**40))
    assert not torch.equal(one, low)
    assert not torch.equal(one, high)


@pytest.mark.parametrize("distribution", ["any", "tenth", "tails"])
def test_as_many_are_kept_as_p_says(distribution: str) -> None:
    inputs = _inputs(distribution, rows=300, cols=101)
    p, count = float(inputs["p"]), inputs["x"].numel()
    kept = int(PROBLEM.expected(**inputs)["mask"].sum())
    assert abs(kept - count * (1 - p)) < 5 * (count * p * (1 - p)) ** 0.5


def test_a_number_that_is_p_is_kept_and_one_just_below_is_dropped() -> None:
    for distribution, above, kept in (("equal", 0.0, 1), ("between", 0.5, 0)):
        inputs = _inputs(distribution)
        numbers = PROBLEM.numbers(inputs["seed"], inputs["x"].numel()).double()
        here = numbers == float(inputs["p"]) * NUMBERS - above
        assert here.any()
        assert (PROBLEM.expected(**inputs)["mask"].flatten()[here] == kept).all()


def test_nothing_is_left_at_one_and_everything_at_zero() -> None:
    dropped = PROBLEM.expected(**_inputs("all_dropped"))
    assert not dropped["out"].any()
    assert not dropped["mask"].any()
    assert PROBLEM.expected(**_inputs("nothing_dropped"))["mask"].all()
