"""What a student reads about a wrong output."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from autograder import codec, emulator
from autograder.assignment import Tolerance
from autograder.contract import Mismatch, Pattern
from autograder.judge.correctness.compare import Damage, compare
from autograder.judge.correctness.explain import (
    EMULATORS_POISON,
    HINTS,
    MAP_TILES,
    damage_map,
    mismatch,
    never_set,
    says_what_is_missing,
    sentence,
)

RULE = Tolerance("bounded", factor=2.0)


def described(got: torch.Tensor, expected: torch.Tensor, untouched: torch.Tensor | None = None) -> Mismatch:
    damage = Damage()
    damage.add(compare(got, expected.double(), expected.double().abs(), RULE), expected.double())
    nothing = torch.zeros(got.shape, dtype=torch.bool)
    return mismatch("out", got, damage, nothing if untouched is None else untouched)


def test_a_mismatch_names_the_first_wrong_element_with_both_values() -> None:
    expected = torch.ones(1000)
    got = expected.clone()
    got[960:] = 3.5
    found = described(got, expected)
    assert (found.pattern, found.index, found.expected, found.got) == (Pattern.tail, (960,), "1", "3.5")
    assert (found.wrong, found.total, found.dtype, found.shape) == (40, 1000, "float32", (1000,))
    assert sentence(found) == (
        "40 of 1000 elements of `out` are wrong: everything from index 960 on (the last 40 of 1000: not a whole tile). "
        "At [960]: expected 1, got 3.5 (allowed difference 2.38e-07)."
    )


def test_a_single_element_has_no_share_and_no_map() -> None:
    found = described(torch.zeros(1), torch.ones(1))
    assert (found.wrong, found.total, found.map) == (1, 1, ())
    assert sentence(found) == (
        "`out` is wrong in its only element. At [0]: expected 1, got 0 (allowed difference 2.38e-07)."
    )
    nan = described(torch.full((1,), math.nan), torch.ones(1))
    assert nan.pattern is Pattern.all_nan
    assert sentence(nan).startswith("`out` is wrong in its only element: it is NaN. At [0]: expected 1, got nan")
    poison = torch.full((4,), EMULATORS_POISON, dtype=torch.uint8).view(torch.float32)
    assert "only element: it was read from shared memory" in sentence(described(poison, torch.ones(1)))
    never = never_set(described(torch.full((1,), math.nan), torch.ones(1), torch.ones(1, dtype=torch.bool)))
    assert "only element: it was read, or added to, before it was set." in sentence(never)


def test_an_output_that_was_not_written_is_said_to_be_so() -> None:
    poisoned = torch.full((4, 4), math.nan)
    found = described(poisoned, torch.ones(4, 4), torch.ones(4, 4, dtype=torch.bool))
    assert found.pattern is Pattern.untouched
    assert sentence(found) == "Nothing was written to `out`: it still holds the judge's fill value."
    assert "ignored" in HINTS[Pattern.untouched]


def test_a_part_that_was_not_written_is_said_to_be_so() -> None:
    got, untouched = torch.ones(8, 8), torch.zeros(8, 8, dtype=torch.bool)
    got[6:], untouched[6:] = math.nan, True
    found = described(got, torch.ones(8, 8), untouched)
    assert found.where == "rows 6–7; nothing was written there"
    assert found.got == "nothing"
    assert "allowed difference" not in sentence(found)


def test_what_was_not_written_is_told_before_what_is_wrong() -> None:
    got, untouched = torch.ones(8, 8), torch.zeros(8, 8, dtype=torch.bool)
    got[:, 6:], untouched[:, 6:] = math.nan, True
    got[0, 0] = 2
    found = described(got, torch.ones(8, 8), untouched)
    assert (found.pattern, found.wrong) == (Pattern.columns_from, 17)
    assert found.where == "columns 6–7; nothing was written there, and 1 more is wrong"


def test_what_was_never_set_is_not_said_to_be_unwritten() -> None:
    found = never_set(described(torch.full((1,), math.nan), torch.ones(1), torch.ones(1, dtype=torch.bool)))
    assert "Nothing was written" not in sentence(found)
    assert (found.pattern, found.got) == (Pattern.everywhere, "the judge's fill value")


def test_all_nan_is_a_pattern_of_its_own() -> None:
    assert described(torch.full((3, 3), math.nan), torch.ones(3, 3)).pattern is Pattern.all_nan


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int32])
def test_shared_memory_that_was_read_too_early_is_recognised(dtype: torch.dtype) -> None:
    got = torch.ones(8, 8, dtype=dtype)
    got.view(torch.uint8)[2:4] = EMULATORS_POISON
    found = described(got, torch.ones(8, 8, dtype=dtype))
    assert found.where == (
        "rows 2–3; all of them were read from shared memory before anything was written there, "
        "as without a `__syncthreads()`"
    )
    got[0] = 7
    found = described(got, torch.ones(8, 8, dtype=dtype))
    assert "; 16 of them were read from shared memory" in found.where
    assert says_what_is_missing(found)
    got[4:] = 7
    assert "shared memory" not in described(got, torch.ones(8, 8, dtype=dtype)).where


def test_a_byte_is_not_taken_for_shared_memory() -> None:
    got = torch.tensor([EMULATORS_POISON, 1, 1], dtype=torch.uint8)
    assert "shared memory" not in described(got, torch.ones(3, dtype=torch.uint8)).where


def test_the_emulator_fills_shared_memory_with_that_byte() -> None:
    text = (Path(emulator.__file__).parent / "include" / "cuda_emulator" / "block.h").read_text(encoding="utf-8")
    assert f"constexpr unsigned char poison = 0x{EMULATORS_POISON:X};" in text


def test_nan_in_a_part_is_mentioned() -> None:
    got = torch.ones(8, 8)
    got[:, 7] = math.nan
    assert described(got, torch.ones(8, 8)).where == "column 7 (the last column); all of them are NaN"


def test_every_pattern_has_a_hint() -> None:
    assert set(HINTS) == set(Pattern)


def test_a_mismatch_with_nan_and_infinity_can_travel() -> None:
    found = described(torch.tensor([math.nan, math.inf]), torch.tensor([math.inf, math.nan]))
    assert codec.loads(Mismatch, codec.dumps(found)) == found


def test_integers_are_shown_as_integers() -> None:
    got, expected = torch.tensor([1, 7], dtype=torch.int32), torch.tensor([1, 2])
    damage = Damage()
    damage.add(compare(got, expected, expected.double(), RULE), expected)
    found = mismatch("out", got, damage, torch.zeros(2, dtype=torch.bool))
    assert (found.expected, found.got, found.tolerance) == ("2", "7", "0")


def test_a_map_shows_which_tiles_are_wrong() -> None:
    wrong = torch.zeros(64, 128, dtype=torch.bool)
    wrong[2:4, 0:2] = True
    tiles, tile = damage_map(wrong)
    assert tile == (2, 4)
    assert tiles[1][0] == 500
    assert sum(map(sum, tiles)) == 500


def test_one_wrong_element_of_many_still_shows_on_the_map() -> None:
    wrong = torch.zeros(4096, 4096, dtype=torch.bool)
    wrong[4095, 4095] = True
    assert damage_map(wrong)[0][-1][-1] == 1


def test_a_vector_is_folded_on_the_map() -> None:
    wrong = torch.zeros(2048, dtype=torch.bool)
    wrong[-2:] = True
    tiles, tile = damage_map(wrong)
    assert (len(tiles), len(tiles[0]), tile) == (32, 32, (1, 2))
    assert tiles[31][31] == 1000


@given(st.integers(1, 200), st.integers(1, 200), st.integers(0, 2**31))
def test_a_map_is_small_and_full_exactly_where_all_is_wrong(height: int, width: int, seed: int) -> None:
    wrong = torch.rand(height, width, generator=torch.Generator().manual_seed(seed)) < 0.5
    tiles, (rows, columns) = damage_map(wrong)
    assert len(tiles) <= MAP_TILES
    assert all(len(row) == len(tiles[0]) <= MAP_TILES for row in tiles)
    assert len(tiles) == -(-height // rows)
    for down, row in enumerate(tiles):
        for across, share in enumerate(row):
            part = wrong[down * rows : (down + 1) * rows, across * columns : (across + 1) * columns]
            assert (share == 1000) == bool(part.all())
            assert (share == 0) == (not bool(part.any()))
