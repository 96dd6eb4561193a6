"""An assignment's `problem.py` is ours, and is still checked against its manifest."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import torch

from autograder.assignment import Case, Tolerance, load_assignment
from autograder.errors import HarnessError
from autograder.judge.correctness import explain
from autograder.judge.correctness.compare import Comparison, Damage, compare
from autograder.judge.correctness.problem import Problem, load_problem
from autograder.judge.defences import Defences
from autograder.judge.protocol.buffers import Buffers
from autograder.judge.protocol.tensors import dtype_of

DOUBLE_FOLDER = Path(__file__).parents[3] / "fixtures" / "assignments" / "double"
DOUBLE = load_assignment(DOUBLE_FOLDER)
CASE = Case("one", {"m": 2, "n": 3}, "float16")
INPUTS = "def make_inputs(*, generator, dtype, distribution, m, n): return {'a': torch.ones(m, n, dtype=dtype)}\n"
EXPECTED = "def expected(*, a): return {'out': 2 * a.double(), 'negative': torch.zeros(len(a), dtype=torch.int64)}\n"


def problem(tmp_path: Path, *functions: str) -> Problem:
    (tmp_path / "problem.py").write_text("import torch\n" + "".join(functions), encoding="utf-8")
    return load_problem(DOUBLE, tmp_path)


def test_inputs_follow_from_the_seed() -> None:
    loaded = load_problem(DOUBLE, DOUBLE_FOLDER)
    one, again, other = (loaded.inputs(CASE, seed)["a"] for seed in (1, 1, 2))
    assert one.dtype is torch.float16
    assert torch.equal(one, again)
    assert not torch.equal(one, other)


def test_the_scale_is_the_expected_value_unless_the_problem_gives_one(tmp_path: Path) -> None:
    plain = problem(tmp_path, INPUTS, EXPECTED)
    truth = plain.truth(CASE, plain.inputs(CASE, 1))
    assert torch.equal(truth.scale["out"], truth.expected["out"])
    scaled = problem(tmp_path, INPUTS, EXPECTED, "def error_scale(*, a): return {'out': torch.tensor(-7.0)}\n")
    truth = scaled.truth(CASE, scaled.inputs(CASE, 1))
    assert truth.scale["out"].tolist() == [[7.0] * 3] * 2
    assert truth.scale["negative"].tolist() == [0.0, 0.0]


def test_a_problem_may_have_a_check_of_its_own(tmp_path: Path) -> None:
    own = problem(tmp_path, INPUTS, EXPECTED, "def check(inputs, outputs): return {'out': outputs['out'] != 2}\n")
    assert own.wrong_by_check({}, {"out": torch.tensor([2, 3])})["out"].tolist() == [False, True]
    assert problem(tmp_path, INPUTS, EXPECTED).wrong_by_check({}, {}) == {}


KEPT = "def make_inputs(**_): return {'a': torch.ones(2, 3, dtype=torch.float16), 'secret': torch.arange(5)}\n"
CHECK = "def check(inputs, outputs): return {'out': outputs['out'] != inputs['secret'].sum()}\n"
ONLY_NEGATIVE = "def expected(*, a, secret): return {'negative': torch.zeros(len(a), dtype=torch.int64)}\n"


def test_a_check_decides_alone_and_knows_what_no_submission_is_given(tmp_path: Path) -> None:
    checked = dataclasses.replace(DOUBLE, tolerance={**DOUBLE.tolerance, "out": Tolerance("checked")})
    (tmp_path / "problem.py").write_text("import torch\n" + KEPT + ONLY_NEGATIVE, encoding="utf-8")
    with pytest.raises(HarnessError, match=r"'out' is checked, and problem\.py has no check"):
        load_problem(checked, tmp_path)
    with (tmp_path / "problem.py").open("a", encoding="utf-8") as file:
        file.write(CHECK)
    decides = load_problem(checked, tmp_path)
    inputs = decides.inputs(CASE, 1)
    lent = Buffers(checked, Defences()).make(CASE, inputs)
    assert [tensor.spec.name for tensor in lent] == ["a", "out", "negative"]
    for tensor in lent:
        tensor.close()
    out = torch.tensor([[10.0, 10, 10], [10, 10, 9]])
    found = Damage()
    truth = decides.truth(CASE, inputs)
    compared = compare(out, truth.expected["out"], truth.scale["out"], checked.tolerance["out"])
    assert compared.right
    wrong = compared.wrong | decides.wrong_by_check(inputs, {"out": out})["out"]
    found.add(Comparison(wrong, compared.allowed), truth.expected["out"])
    told = explain.mismatch("out", out, found, torch.zeros_like(wrong))
    assert explain.sentence(told).endswith("At [1, 2]: expected another value, got 9.")


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ("def make_inputs(**_): return {}\n", "gives no tensor 'a'"),
        ("def make_inputs(**_): return {'a': [1]}\n", "gives no tensor 'a'"),
        ("def make_inputs(**_): return {'a': torch.ones(3, 2, dtype=torch.float16)}\n", "the shape (3, 2)"),
        ("def make_inputs(**_): return {'a': torch.ones(2, 3)}\n", "as torch.float32, the manifest says torch.float16"),
    ],
)
def test_inputs_that_do_not_fit_the_manifest_are_our_error(tmp_path: Path, inputs: str, words: str) -> None:
    with pytest.raises(HarnessError) as caught:
        problem(tmp_path, inputs, EXPECTED).inputs(CASE, 1)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("expected", "words"),
    [
        ("def expected(**_): return {}\n", "expected gives no tensor 'out'"),
        ("def expected(**_): return {'out': torch.ones(3)}\n", "expected gives 'out' the shape (3,)"),
    ],
)
def test_an_oracle_that_does_not_fit_the_manifest_is_our_error(tmp_path: Path, expected: str, words: str) -> None:
    with pytest.raises(HarnessError) as caught:
        problem(tmp_path, INPUTS, expected).truth(CASE, {"a": torch.ones(2, 3)})
    assert words in str(caught.value)


@pytest.mark.parametrize("functions", ["", "make_inputs = 3\n", INPUTS])
def test_a_function_that_is_missing_is_our_error(tmp_path: Path, functions: str) -> None:
    with pytest.raises(HarnessError, match="has no function"):
        problem(tmp_path, functions)


def test_a_problem_that_is_missing_is_our_error(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match=r"has no problem\.py"):
        load_problem(DOUBLE, tmp_path)


def test_an_unknown_dtype_is_our_error() -> None:
    assert dtype_of("bfloat16") is torch.bfloat16
    with pytest.raises(HarnessError, match="no dtype 'nn'"):
        dtype_of("nn")
