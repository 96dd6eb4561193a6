"""What the assignments' problem.py promise: structure that moves, values that fit, bounds that honest answers keep."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import lru_cache

import pytest
import torch

from autograder.assignment import Case, Family, load_assignment, load_families
from autograder.judge.correctness import seeds
from autograder.judge.correctness.compare import compare, same_bits
from autograder.judge.correctness.problem import Problem, load_problem
from autograder.judge.protocol.tensors import Tensors
from tests.golden.rungs import ASSIGNMENTS, REFERENCE, SLUGS, facts

DTYPES = ("float32", "float16", "bfloat16")


def _drawn(slug: str) -> Iterator[Case]:
    """Every distribution that a rung uses, in every type that it may have and in the sizes that its staff name."""
    rung = load_assignment(ASSIGNMENTS / slug)
    used: list[Case | Family] = [*rung.cases, *load_families(REFERENCE / slug)]
    for part in rung.parts:
        function, keys = part.cases[0].function, part.cases[0].size.keys()
        of_function = [one for one in used if one.function == function]
        own = {one.dtype for one in of_function}
        types = DTYPES if own & set(DTYPES) and any(one.dtype == "case" for one in part.inputs) else own
        for name, dtype, size in itertools.product(_distributions(of_function), types, facts(slug).SIZES):
            if size.keys() == keys:
                yield Case("drawn", size, dtype, name, function=function)


def _distributions(used: Sequence[Case | Family]) -> list[str]:
    named = ((one.distribution,) if isinstance(one, Case) else one.distributions for one in used)
    return sorted(set(itertools.chain.from_iterable(named)))


@lru_cache
def _problem(slug: str) -> Problem:
    folder = ASSIGNMENTS / slug
    return load_problem(load_assignment(folder), folder)


@pytest.mark.parametrize("slug", SLUGS)
def test_what_is_drawn_follows_its_seed_and_has_a_right_answer_that_fits_its_type(slug: str) -> None:
    whole, drawn = _problem(slug), list(_drawn(slug))
    assert {case.function for case in drawn} == {case.function for case in whole.assignment.cases}
    for case in drawn:
        seed, problem = seeds.fresh_seed(), whole.part(case)
        function = {"function": case.function} if case.function else {}
        inputs = problem.inputs(case, seed)
        _follow_their_seed(problem, case, seed, inputs)
        truth = problem.truth(case, inputs)
        answers = facts(slug).honest(**function, **inputs)
        wrong = problem.wrong_by_check(inputs, answers)
        assert not any(bool(one.any()) for one in wrong.values()), f"an honest answer is wrong in {case}, seed {seed}"
        for name, got in answers.items():
            rule = problem.assignment.tolerance[name]
            right = compare(got, truth.expected[name], truth.scale[name], rule).right
            assert right, f"an honest float32 answer is wrong in {name} of {case}, seed {seed}"
        dtype = next(iter(inputs.values())).dtype
        for name, value in truth.expected.items():
            if problem.assignment.tolerance[name].kind == "checked":
                continue
            fits = torch.equal(value.isfinite(), value.to(dtype).isfinite())
            assert fits, f"a finite {name} does not fit {dtype} in {case}, seed {seed}"


def _follow_their_seed(problem: Problem, case: Case, seed: int, inputs: Tensors) -> None:
    """The same seed gives the same inputs, and another seed others."""
    again = problem.inputs(case, seed)
    same = all(bool(same_bits(inputs[name], again[name]).all()) for name in inputs)
    assert same, f"seed {seed} gives two inputs of {case}"
    if max(case.size.values()) > 200:
        # Some distributions draw nothing but one of a few rules.
        others = (problem.inputs(case, seed + step) for step in range(1, 30))
        differ = any(not torch.equal(inputs[name], other[name]) for other in others for name in inputs)
        assert differ, f"29 seeds after {seed} give the same inputs of {case}"


def test_infinities_of_the_vectors_never_meet() -> None:
    inputs = _problem("vector_add").inputs(Case("drawn", {"n": 999}, "float32", "infinities"), seeds.fresh_seed())
    assert inputs["x"].isinf().sum() == 999 // 50
    assert inputs["y"].isfinite().all()


@pytest.mark.parametrize("rows", [1, 2, 40])
def test_a_row_of_the_softmax_is_never_masked_as_a_whole(rows: int) -> None:
    for distribution in ("masked", "mixed"):
        case = Case("drawn", {"rows": rows, "cols": 50}, "float32", distribution)
        x = _problem("softmax").inputs(case, seeds.fresh_seed())["x"]
        assert x.isfinite().any(dim=1).all()
        assert not x.isnan().any()


def test_masked_rows_have_minus_infinity() -> None:
    case = Case("drawn", {"rows": 30, "cols": 90}, "float32", "masked")
    assert _problem("softmax").inputs(case, seeds.fresh_seed())["x"].isinf().sum() > 100


def test_the_place_of_a_rows_scale_moves_from_call_to_call() -> None:
    problem, case = _problem("softmax"), Case("drawn", {"rows": 60, "cols": 200}, "float32", "decades")
    widest = {int(problem.inputs(case, seeds.fresh_seed())["x"].std(dim=1).argmax()) for _ in range(20)}
    assert len(widest) > 5


def test_the_place_of_a_products_scales_moves_from_call_to_call() -> None:
    problem, case = _problem("matmul_tiled"), Case("drawn", {"m": 50, "n": 60, "k": 70}, "float32", "decades")
    made = [problem.inputs(case, seeds.fresh_seed()) for _ in range(20)]
    assert len({int(inputs["a"].square().sum(dim=1).argmax()) for inputs in made}) > 5
    assert len({int(inputs["a"].square().sum(dim=0).argmax()) for inputs in made}) > 5
    assert len({int(inputs["b"].square().sum(dim=0).argmax()) for inputs in made}) > 5


def test_sums_of_integers_may_be_off_by_their_last_rounding_only() -> None:
    problem, case = _problem("matmul_tiled"), Case("drawn", {"m": 30, "n": 30, "k": 200}, "float32", "integers")
    inputs = problem.inputs(case, seeds.fresh_seed())
    truth = problem.truth(case, inputs)
    allowed = problem.assignment.tolerance["c"].factor * torch.finfo(torch.float32).eps * truth.scale["c"]
    assert (allowed < 1).all()
    assert torch.equal(truth.expected["c"], truth.expected["c"].round())


@pytest.mark.parametrize("bits", [10, 7])
def test_a_product_of_factors_cut_to_fewer_bits_is_wrong(bits: int) -> None:
    """Ten bits are TF32's, seven are bfloat16's."""
    problem = _problem("matmul_tiled")
    for distribution in ("decades", "integers"):
        case = Case("drawn", {"m": 64, "n": 64, "k": 96}, "float32", distribution)
        inputs = problem.inputs(case, seeds.fresh_seed())
        cut = {name: _cut(value, bits) for name, value in inputs.items()}
        truth = problem.truth(case, inputs)
        got = cut["a"] @ cut["b"]
        assert not compare(got, truth.expected["c"], truth.scale["c"], problem.assignment.tolerance["c"]).right


def _cut(value: torch.Tensor, bits: int) -> torch.Tensor:
    """Float32 with all but `bits` bits of its significand's fraction cleared."""
    return (value.view(torch.int32) & -(1 << (23 - bits))).view(torch.float32)
