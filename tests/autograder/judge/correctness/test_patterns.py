"""The shape of the damage, planted and found again."""

from __future__ import annotations

import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from autograder.contract import Pattern
from autograder.judge.correctness import patterns
from autograder.judge.correctness.patterns import find_pattern


def matrix(height: int, width: int) -> torch.Tensor:
    return torch.zeros(height, width, dtype=torch.bool)


def found(wrong: torch.Tensor) -> tuple[Pattern, str]:
    return find_pattern(wrong)


def test_the_last_tile_of_rows_is_named() -> None:
    wrong = matrix(1024, 8)
    wrong[960:] = True
    assert found(wrong) == (Pattern.rows_from, "rows 960–1023 (the last tile of 64)")


def test_a_last_partial_tile_is_named() -> None:
    wrong = matrix(1000, 8)
    wrong[960:] = True
    assert found(wrong) == (Pattern.rows_from, "rows 960–999 (the last 40 of 1000: not a whole tile)")


def test_every_33rd_column_is_named() -> None:
    wrong = matrix(7, 132)
    wrong[:, 32::33] = True
    assert found(wrong) == (Pattern.every_kth_column, "every 33rd column, starting with column 32")


def test_blocks_that_were_skipped_one_in_two_are_named() -> None:
    wrong = torch.zeros(1095, dtype=torch.bool)
    wrong[256:512] = wrong[768:1024] = True
    assert found(wrong) == (Pattern.every_kth_column, "256 of every 512 elements, from index 256 on")
    rows = matrix(40, 3)
    rows[8:16] = rows[24:32] = True
    assert found(rows) == (Pattern.every_kth_row, "8 of every 16 rows, from row 8 on")


def test_two_blocks_that_do_not_go_on_are_no_step() -> None:
    wrong = torch.zeros(3000, dtype=torch.bool)
    wrong[256:512] = wrong[768:1024] = True
    assert found(wrong)[0] is Pattern.scattered
    wrong[1280:1530] = wrong[1792:2048] = wrong[2304:2560] = wrong[2816:] = True
    assert found(wrong)[0] is Pattern.scattered


def test_everything_from_an_index_on_is_named() -> None:
    wrong = torch.zeros(98432, dtype=torch.bool)
    wrong[98304:] = True
    assert found(wrong) == (Pattern.tail, "everything from index 98304 on (the last tile of 128)")


def test_the_last_element_alone_is_a_tail() -> None:
    wrong = torch.zeros(100, dtype=torch.bool)
    wrong[99] = True
    assert found(wrong) == (Pattern.tail, "everything from index 99 on (the last element)")


def test_a_single_element_is_just_that() -> None:
    wrong = matrix(8, 8)
    wrong[3, 5] = True
    assert found(wrong) == (Pattern.scattered, "a single element, row 3, column 5")


def test_a_tile_in_the_middle_is_named() -> None:
    wrong = matrix(256, 256)
    wrong[64:128, 128:160] = True
    where = "rows 64–127 (the 2nd tile of 64), columns 128–159 (the 5th tile of 32)"
    assert found(wrong) == (Pattern.tile, where)


def test_a_few_rows_are_listed_and_many_are_counted() -> None:
    wrong = matrix(100, 4)
    wrong[[3, 17, 40]] = True
    assert found(wrong) == (Pattern.rows, "rows 3, 17 and 40")
    wrong[[50, 61, 77]] = True
    assert found(wrong) == (Pattern.rows, "6 rows, among them 3, 17, 40, 50")


def test_a_flat_tail_of_a_matrix_is_given_by_row_and_column() -> None:
    wrong = matrix(10, 10)
    wrong.reshape(-1)[57:] = True
    assert found(wrong) == (Pattern.tail, "everything from row 5, column 7 on")


def test_nearly_everything_is_everywhere() -> None:
    wrong = torch.ones(20, 50, dtype=torch.bool)
    wrong[::7, ::9] = False
    pattern, where = found(wrong)
    assert pattern is Pattern.everywhere
    assert where.startswith("nearly everywhere")


def test_rows_with_a_few_elements_right_by_chance_are_still_rows() -> None:
    wrong = matrix(64, 64)
    wrong[48:] = True
    wrong[50, ::20] = False
    assert found(wrong)[0] is Pattern.rows_from


def test_more_than_two_dimensions_are_joined_to_rows() -> None:
    wrong = torch.zeros(2, 3, 8, dtype=torch.bool)
    wrong[1, 2] = True
    assert found(wrong) == (Pattern.rows_from, "row 5 (the last row)")


def test_noise_is_scattered() -> None:
    wrong = torch.rand(64, 64, generator=torch.Generator().manual_seed(1)) < 0.1
    assert found(wrong)[0] is Pattern.scattered


sides = st.integers(min_value=4, max_value=90)


@given(sides, sides, st.data())
def test_planted_rows_to_the_end_are_found(height: int, width: int, data: st.DataObject) -> None:
    start = data.draw(st.integers(min_value=1, max_value=height - 1))
    wrong = matrix(height, width)
    wrong[start:] = True
    pattern, where = found(wrong)
    assert pattern is Pattern.rows_from
    assert where.startswith((f"row {start} ", f"rows {start}–{height - 1}"))


@given(sides, sides, st.data())
def test_planted_columns_to_the_end_are_found(height: int, width: int, data: st.DataObject) -> None:
    start = data.draw(st.integers(min_value=1, max_value=width - 1))
    wrong = matrix(height, width)
    wrong[:, start:] = True
    pattern, where = found(wrong)
    assert pattern is Pattern.columns_from
    assert where.startswith((f"column {start} ", f"columns {start}–{width - 1}"))


@given(st.integers(min_value=2, max_value=5000), st.data())
def test_a_planted_tail_is_found(length: int, data: st.DataObject) -> None:
    start = data.draw(st.integers(min_value=1, max_value=length - 1))
    wrong = torch.zeros(length, dtype=torch.bool)
    wrong[start:] = True
    pattern, where = found(wrong)
    assert pattern is Pattern.tail
    assert where.startswith(f"everything from index {start} on")


@given(sides, st.integers(min_value=2, max_value=9), st.data())
def test_a_planted_step_is_found(height: int, step: int, data: st.DataObject) -> None:
    width = data.draw(st.integers(min_value=3 * step, max_value=100))
    start = data.draw(st.integers(min_value=0, max_value=step - 1))
    wrong = matrix(height, width)
    wrong[:, start::step] = True
    pattern, where = found(wrong)
    assert pattern is Pattern.every_kth_column
    assert f"starting with column {start}" in where
    assert found(wrong.T.contiguous())[0] is Pattern.every_kth_row


@given(st.integers(8, 40), st.integers(1, 40), st.data())
def test_planted_blocks_at_one_distance_are_found(run: int, gap: int, data: st.DataObject) -> None:
    start = data.draw(st.integers(min_value=0, max_value=run + gap - 1))
    length = data.draw(st.integers(min_value=start + run + gap + 1, max_value=400))
    wrong = torch.zeros(length, dtype=torch.bool)
    for first in range(start, length, run + gap):
        wrong[first : first + run] = True
    if start and bool(wrong[start:].all()):
        return
    assert found(wrong) == (Pattern.every_kth_column, f"{run} of every {run + gap} elements, from index {start} on")


@given(st.data())
def test_a_planted_block_inside_is_found(data: st.DataObject) -> None:
    top, left = data.draw(st.integers(1, 20)), data.draw(st.integers(1, 20))
    height, width = data.draw(st.integers(2, 20)), data.draw(st.integers(2, 20))
    wrong = matrix(50, 60)
    wrong[top : top + height, left : left + width] = True
    assert found(wrong)[0] is Pattern.tile


@given(st.integers(1, 12), st.integers(1, 12), st.data())
def test_any_damage_gets_a_name(height: int, width: int, data: st.DataObject) -> None:
    bits = data.draw(st.lists(st.booleans(), min_size=height * width, max_size=height * width).filter(any))
    pattern, where = found(torch.tensor(bits).reshape(height, width))
    assert isinstance(pattern, Pattern)
    assert where


@pytest.mark.parametrize(("number", "text"), [(2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (21, "21st")])
def test_steps_are_spelt_as_in_english(number: int, text: str) -> None:
    wrong = matrix(2, 5 * number)
    wrong[:, ::number] = True
    assert found(wrong)[1].startswith(f"every {text} column")


def _progression(places: list[int], length: int) -> int:
    """The step, by trying all of them."""
    found = (step for step in range(2, length + 1) if places == list(range(places[0], length, step)))
    return next((step for step in found if places[0] < step and len(places) >= patterns.MIN_STEPS), 0)


def _tiles(places: list[int], length: int) -> tuple[int, int] | None:
    """Run and distance, by trying all of them."""
    for step in range(patterns.MIN_TILE + 1, length):
        for run in range(patterns.MIN_TILE, step):
            starts = range(places[0], length, step)
            through = [place for start in starts for place in range(start, min(start + run, length))]
            if places[0] < step and len(starts) > 1 and places == through:
                return run, step
    return None


@pytest.mark.parametrize("seed", range(40))
def test_steps_and_runs_are_those_that_trying_all_of_them_finds(seed: int) -> None:
    source = random.Random(seed)
    length, step = source.randint(20, 60), source.randint(1, 25)
    run, start = source.randint(1, step), source.randrange(step)
    places = [place for place in range(start, length) if (place - start) % step < run]
    if seed % 4 == 0:
        places.remove(source.choice(places))
    hit = torch.zeros(length, dtype=torch.bool)
    hit[places] = True
    if places:
        hits = patterns.Hits(hit)
        assert hits.step() == _progression(places, length)
        assert hits.runs() == _tiles(places, length)


def test_no_list_is_made_of_a_long_vector(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 2^27 wrong elements that took 20 s."""
    real, longest = torch.Tensor.tolist, [0]

    def tolist(self: torch.Tensor) -> object:
        longest[0] = max(longest[0], self.numel())
        return real(self)

    monkeypatch.setattr(torch.Tensor, "tolist", tolist)
    wrong = torch.ones(2**20, dtype=torch.bool)
    wrong[:1024] = False
    assert find_pattern(wrong) == (Pattern.tail, "everything from index 1024 on")
    assert find_pattern(wrong.reshape(-1, 2))[0] is Pattern.rows_from
    assert longest[0] <= patterns.LISTED
