"""When an output counts as right."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from autograder.assignment import Tolerance, load_assignment, slugs
from autograder.contract import Lane
from autograder.errors import HarnessError
from autograder.judge.correctness.compare import Damage, compare, same_bits
from autograder.judge.correctness.problem import WINDOWS, load_problem
from autograder.judge.protocol.tensors import dtype_of, same_words

ROOT = Path(__file__).parents[4]
EXACT = Tolerance("exact")
BOUNDED = Tolerance("bounded", factor=2.0)
INF, NAN = math.inf, math.nan
EPS = torch.finfo(torch.float32).eps


def wrong(got, expected, rule=BOUNDED, scale=None, dtype=torch.float32) -> list[bool]:
    got = torch.tensor(got, dtype=dtype)
    expected = torch.tensor(expected, dtype=torch.float64)
    scale = expected.abs() if scale is None else torch.tensor(scale, dtype=torch.float64)
    return compare(got, expected, scale, rule).wrong.tolist()


def test_equal_values_are_right() -> None:
    assert wrong([1.0, -2.5, 0.0], [1.0, -2.5, 0.0]) == [False, False, False]


def test_a_difference_within_the_bound_is_right_and_one_beyond_it_is_wrong() -> None:
    assert wrong([1.0 + EPS, 1.0 + 4 * EPS], [1.0, 1.0]) == [False, True]


def test_the_bound_follows_the_scale_so_that_small_rows_count() -> None:
    assert wrong([1.1e-6, 1e6 * (1 + EPS)], [1.0e-6, 1e6]) == [True, False]


def test_the_oracles_own_scale_allows_cancellation() -> None:
    assert wrong([3e-7], [0.0], scale=[2.0]) == [False]
    assert wrong([3e-7], [0.0], scale=[0.0]) == [True]


def test_a_result_next_to_zero_may_be_rounded_to_a_subnormal() -> None:
    smallest = torch.finfo(torch.float16).smallest_normal * torch.finfo(torch.float16).eps
    assert wrong([smallest], [0.4 * smallest], dtype=torch.float16) == [False]


@pytest.mark.parametrize("rule", [EXACT, BOUNDED])
def test_nan_has_to_stand_where_it_is_expected_and_nowhere_else(rule: Tolerance) -> None:
    assert wrong([NAN, NAN, 1.0], [NAN, 1.0, NAN], rule) == [False, True, True]


@pytest.mark.parametrize("rule", [EXACT, BOUNDED])
def test_infinity_has_to_have_its_sign_and_its_place(rule: Tolerance) -> None:
    assert wrong([INF, -INF, 1.0, INF], [INF, INF, INF, 1.0], rule) == [False, True, True, True]


def test_a_value_beyond_the_types_range_may_be_infinite() -> None:
    assert wrong([INF, -INF], [1e6, 1e6], dtype=torch.float16) == [False, True]


def test_a_nan_takes_nothing_from_what_is_allowed_there() -> None:
    comparison = compare(torch.tensor([NAN]), torch.tensor([8.0]).double(), torch.tensor([8.0]).double(), BOUNDED)
    assert comparison.allowed.item() == pytest.approx(16 * EPS)


def test_exact_tells_zeros_by_their_sign() -> None:
    zeros = torch.tensor([0.0, -0.0, 0.0, -0.0])
    found = compare(zeros, torch.tensor([0.0, -0.0, -0.0, 0.0], dtype=torch.float64), torch.zeros(4), EXACT)
    assert found.wrong.tolist() == [False, False, True, True]


def test_exact_rounds_the_oracle_to_the_outputs_type() -> None:
    assert wrong([0.1], [0.1], EXACT) == [False]
    assert wrong([0.1 + 2e-8], [0.1], EXACT) == [True]


def test_integers_have_to_be_equal_under_any_rule() -> None:
    got, expected = torch.tensor([1, 2], dtype=torch.int32), torch.tensor([1, 3])
    assert compare(got, expected, expected.double(), BOUNDED).wrong.tolist() == [False, True]


def test_many_small_errors_in_one_row_do_not_hide() -> None:
    rule = Tolerance("bounded", factor=10.0, row_factor=1.0)
    expected = torch.ones(2, 64, dtype=torch.float64)
    got = torch.ones(2, 64)
    got[1] += 3 * EPS
    comparison = compare(got, expected, expected, rule)
    assert comparison.wrong.any(dim=1).tolist() == [False, True]
    assert comparison.allowed[1, 0] == pytest.approx(EPS)
    assert comparison.allowed[0, 0] == pytest.approx(10 * EPS)


def test_one_larger_error_in_a_long_row_is_no_row_error() -> None:
    rule = Tolerance("bounded", factor=10.0, row_factor=1.0)
    got = torch.ones(1, 64)
    got[0, 5] += 5 * EPS
    expected = torch.ones(1, 64, dtype=torch.float64)
    assert compare(got, expected, expected, rule).right


def test_a_wrong_shape_of_the_oracle_is_our_error() -> None:
    with pytest.raises(HarnessError, match="shape"):
        compare(torch.ones(2), torch.ones(3).double(), torch.ones(3).double(), EXACT)


def test_an_unknown_rule_is_our_error() -> None:
    with pytest.raises(HarnessError, match="guess"):
        compare(torch.ones(1), torch.ones(1).double(), torch.ones(1).double(), Tolerance("guess"))


def test_an_empty_output_is_right() -> None:
    empty = torch.ones(0, 4)
    assert compare(empty, empty.double(), empty.double(), Tolerance("bounded", 1.0, 1.0)).right


def test_a_scalar_output_is_compared_like_any_other() -> None:
    rule = Tolerance("bounded", 1.0, 1.0)
    one = torch.tensor(1.0)
    assert compare(one, one.double(), one.double(), rule).right
    assert not compare(one + 1, one.double(), one.double(), rule).right


def test_same_bits_tells_zeros_apart_and_takes_all_nans_for_one() -> None:
    one = torch.tensor([0.0, NAN, 1.0])
    other = torch.tensor([-0.0, NAN, 1.0])
    other.view(torch.int32)[1] ^= 1
    assert same_bits(one, other).tolist() == [False, True, True]


@given(st.lists(st.floats(width=32), min_size=1, max_size=20))
def test_the_oracles_own_rounding_is_always_right(values: list[float]) -> None:
    expected = torch.tensor(values, dtype=torch.float64)
    for rule in (EXACT, Tolerance("bounded", factor=1.0, row_factor=1.0)):
        assert compare(expected.to(torch.float32), expected, expected.abs(), rule).right


@given(st.floats(min_value=1e-30, max_value=1e30), st.booleans())
def test_the_next_lower_precision_is_wrong_unless_it_happens_to_be_exact(value: float, negative: bool) -> None:
    expected = torch.tensor([-value if negative else value], dtype=torch.float64)
    got = expected.to(torch.bfloat16).to(torch.float32)
    right = compare(got, expected, expected.abs(), Tolerance("bounded", factor=1.0)).right
    assert right == bool((got.double() - expected).abs() <= expected.abs() * EPS)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.bfloat16, torch.float32, torch.int64])
def test_one_bit_anywhere_is_seen_when_words_are_compared(dtype: torch.dtype) -> None:
    """Eight bytes at a time, and what is left of them; a piece may begin where no word does."""
    for count, first in itertools.product((0, 1, 3, 4, 8, 9, 1001), (0, 1)):
        one = torch.arange(count + first, dtype=torch.int64).to(dtype)[first:]
        other = torch.cat([one.new_zeros(first), one])[first:]
        assert same_words(one, other), (count, first)
        for place in {0, count // 2, count - 1} if count else ():
            changed = other.clone().view(torch.uint8)
            changed[place * one.element_size()] ^= 1
            assert not same_words(one, changed.view(dtype)), (count, first, place)
            assert not same_words(changed.view(dtype), one), (count, first, place)


WHOLE = {"reduction", "scan_histogram", "layout_lab", "custom_op", "nvfp4", "write_the_tests", "break_the_judge"}
"""Rungs whose answers need all of every input, or are few, and two that have none."""


@pytest.mark.parametrize("slug", sorted(set(slugs(ROOT / "assignments")) - WHOLE))
def test_a_part_of_an_answer_has_to_be_what_it_has_to_be_in_the_whole(
    slug: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In pieces and in samples, by each case that a CPU has and that is large enough to be cut."""
    assignment = load_assignment(ROOT / "assignments" / slug)
    problem = load_problem(assignment, ROOT / "assignments" / slug)
    # Windows begin where their stretches do, so that it is known which entries a sample has.
    monkeypatch.setattr("secrets.randbelow", lambda _: 0)
    monkeypatch.setattr("autograder.judge.correctness.problem.WINDOWS", 3)
    cut, sampled = 0, 0
    for case in sorted(assignment.cases_for(Lane.cpu), key=lambda one: -math.prod(one.size.values()))[:8]:
        inputs = problem.inputs(case, 7)
        truth = problem.truth(case, inputs)
        outputs = {
            argument.name: truth.expected[argument.name].to(dtype_of(assignment.dtype_of(argument, case)))
            for argument in assignment.outputs
        }
        total = problem._cut({**inputs, **outputs})[1]
        monkeypatch.setattr("autograder.judge.correctness.problem.PIECE", total // 5)
        pieces = list(problem.pieces(inputs, outputs))
        cut += len(pieces) > 1
        for name, whole in outputs.items():
            along = problem.along(name)
            assert same_bits(torch.cat([some[name] for some, _ in pieces], dim=along), whole).all()
            for field, expected in (("expected", truth.expected), ("scale", truth.scale)):
                put_together = torch.cat([getattr(one, field)[name] for _, one in pieces], dim=along)
                assert_close(put_together, expected[name])
        monkeypatch.setattr("autograder.judge.correctness.problem.SAMPLE", total // 8)
        sample = problem.sample(inputs, outputs)
        if sample is None:
            continue
        sampled += 1
        some, part = sample
        for name, got in some.items():
            along = problem.along(name)
            entries, size = outputs[name].shape[along], got.shape[along] // 3
            begins = [window * entries // 3 for window in range(3)]
            at = torch.cat([torch.arange(begin, begin + size) for begin in begins])
            assert same_bits(got, outputs[name].index_select(along, at)).all()
            for field, expected in ((part.expected, truth.expected), (part.scale, truth.scale)):
                assert_close(field[name], expected[name].index_select(along, at))
    assert cut
    assert sampled


def assert_close(got: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-300, equal_nan=True, check_dtype=False)


def test_a_sample_looks_everywhere_and_takes_no_entry_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    assignment = load_assignment(ROOT / "assignments" / "vector_add")
    problem = load_problem(assignment, ROOT / "assignments" / "vector_add")
    monkeypatch.setattr("autograder.judge.correctness.problem.SAMPLE", 3 * 10 * WINDOWS)
    # Not divisible by the windows: what is left over at the end is looked at as well.
    numbers = torch.arange(10_015)
    seen = torch.zeros(10_015)
    for _ in range(600):
        sample = problem.sample({"x": numbers, "y": numbers}, {"out": numbers})
        assert sample is not None
        some, _ = sample
        assert len(some["out"].unique()) == 10 * WINDOWS
        seen[some["out"]] += 1
    # The edges of a stretch are drawn seldom: some 11 places are left.
    assert int((seen == 0).sum()) < 40
    assert seen[-20:].any()
    assert problem.sample({"x": numbers[:100], "y": numbers[:100]}, {"out": numbers[:100]}) is None


def test_damage_in_pieces_is_the_same_as_whole() -> None:
    for along in (0, 1):
        got, expected = torch.zeros(12, 10), torch.zeros(12, 10, dtype=torch.float64)
        got[3:5, 7:] = 1.0
        got[1, 9] = 2.0
        whole, cut = Damage(along), Damage(along)
        whole.add(compare(got, expected, expected, BOUNDED), expected)
        for start in range(0, got.shape[along], 4):
            length = min(4, got.shape[along] - start)
            some, wanted = (one.narrow(along, start, length) for one in (got, expected))
            cut.add(compare(some, wanted, wanted, BOUNDED), wanted)
        assert cut.any
        assert torch.equal(cut.wrong, whole.wrong)
        assert cut.first == whole.first
