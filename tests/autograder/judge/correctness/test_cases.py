"""Hidden cases are drawn within their family's bounds."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.assignment import Draw, load_assignment
from autograder.contract import Lane, Visibility
from autograder.errors import ManifestError
from autograder.judge.correctness.cases import draw, hidden_cases, is_prime

FIXTURES = Path(__file__).parents[3] / "fixtures"
DOUBLE = load_assignment(FIXTURES / "assignments" / "double")
sources = st.integers().map(random.Random)
numbers = st.integers(min_value=1, max_value=10_000)


@given(sources, st.lists(numbers, min_size=1, max_size=5))
def test_choose_draws_one_of_the_given(source: random.Random, given_numbers: list[int]) -> None:
    assert draw(Draw(choose=tuple(given_numbers)), source) in given_numbers


@given(sources, st.lists(numbers, min_size=1, max_size=5))
def test_near_draws_a_neighbour_and_never_less_than_one(source: random.Random, given_numbers: list[int]) -> None:
    drawn = draw(Draw(near=tuple(given_numbers)), source)
    assert drawn >= 1
    assert any(abs(drawn - number) == 1 for number in given_numbers) or (drawn == 1 and 1 in given_numbers)


@given(sources, numbers, st.integers(min_value=0, max_value=500))
def test_between_draws_within_both_ends(source: random.Random, low: int, width: int) -> None:
    assert low <= draw(Draw(between=(low, low + width)), source) <= low + width


@given(sources, st.integers(min_value=1, max_value=3000))
def test_prime_draws_a_prime_within_both_ends(source: random.Random, low: int) -> None:
    drawn = draw(Draw(prime=(low, 2 * low + 1)), source)
    assert low <= drawn <= 2 * low + 1
    assert is_prime(drawn)


def test_a_range_without_a_prime_is_refused() -> None:
    with pytest.raises(ValueError, match="no prime"):
        draw(Draw(prime=(24, 28)), random.Random(1))


@given(sources)
def test_a_family_gives_its_number_of_hidden_cases(source: random.Random) -> None:
    cases = hidden_cases(FIXTURES / "reference" / "double", DOUBLE, Lane.cpu, source)
    assert len(cases) == 2
    for case in cases:
        assert case.visibility is Visibility.hidden
        assert not case.ranked
        assert case.category == "odd sizes"
        assert case.distribution in {"default", "zeros"}
        assert case.size["m"] in {7, 9, 15, 17}
        assert is_prime(case.size["n"])
        assert 0 <= case.layout["a"].pad <= 9
        assert case.layout["a"].offset in {0, 1, 3}


def test_two_attempts_do_not_meet_the_same_sizes_for_ever() -> None:
    folder = FIXTURES / "reference" / "double"
    drawn = {str(hidden_cases(folder, DOUBLE, Lane.cpu, random.SystemRandom())) for _ in range(20)}
    assert len(drawn) > 1


def families(tmp_path: Path, text: str) -> Path:
    (tmp_path / "hidden.toml").write_text(text, encoding="utf-8")
    return tmp_path


def test_a_family_that_does_not_set_a_size_is_refused(tmp_path: Path) -> None:
    folder = families(tmp_path, '[[family]]\ncategory = "x"\ndtype = "float32"\nsize = { m = { choose = [1] } }\n')
    with pytest.raises(ManifestError, match="does not set the size 'n'"):
        hidden_cases(folder, DOUBLE, Lane.cpu, random.Random(1))


def test_a_family_with_a_layout_of_no_tensor_is_refused(tmp_path: Path) -> None:
    size = "size = { m = { choose = [1] }, n = { choose = [2] } }"
    folder = families(tmp_path, f'[[family]]\ncategory = "x"\ndtype = "float32"\nlayout = ["m"]\n{size}\n')
    with pytest.raises(ManifestError, match="'m' in `layout` is no tensor"):
        hidden_cases(folder, DOUBLE, Lane.cpu, random.Random(1))


def test_a_family_of_another_lane_is_left_out(tmp_path: Path) -> None:
    size = "size = { m = { choose = [1] }, n = { choose = [2] } }"
    folder = families(tmp_path, f'[[family]]\ncategory = "x"\ndtype = "float32"\nlanes = ["b200"]\n{size}\n')
    assert hidden_cases(folder, DOUBLE, Lane.cpu, random.Random(1)) == ()
