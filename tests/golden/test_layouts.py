"""The layout lab: its picture is what the staff's script prints, and its answers are what the manuals draw."""

from __future__ import annotations

import importlib.util
from types import ModuleType

import pytest
import torch

from tests.golden.rungs import ASSIGNMENTS, REFERENCE


def _load(path: str, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PROBLEM = _load(str(ASSIGNMENTS / "layout_lab" / "problem.py"), "problem_of_layouts")
PICTURE = _load(str(REFERENCE / "layout_lab" / "picture.py"), "picture_of_layouts")


def answer(function: str, **inputs: list[int] | list[list[int]]) -> list[int]:
    tensors = {name: torch.tensor(values, dtype=torch.int32) for name, values in inputs.items()}
    (found,) = PROBLEM.expected(function=function, **tensors).values()
    return [int(one) for one in found]


@pytest.mark.quick
def test_the_handout_shows_the_picture_that_the_script_prints() -> None:
    handout = (ASSIGNMENTS / "layout_lab" / "README.md").read_text(encoding="utf-8")
    assert "\n".join(PICTURE.lines()) in handout


@pytest.mark.quick
def test_the_picture_is_the_swizzle_of_the_oracle() -> None:
    for row, line in enumerate(PICTURE.lines()[1:]):
        swizzled = answer("swizzled_offsets", offset=[64 * row + 8 * piece for piece in range(8)], rule=[3, 3, 3])
        assert [int(word) for word in line.split()[-8:]] == [one // 2 % 32 for one in swizzled]


def test_a_fragment_has_every_element_of_its_matrix_once() -> None:
    for which, (rows, columns, each) in enumerate(((16, 16, 8), (16, 8, 4), (16, 8, 4))):
        lanes = [lane for lane in range(32) for _ in range(each)]
        found = answer("fragment_offsets", lane=lanes, value=list(range(each)) * 32, operand=[which, columns])
        assert sorted(found) == list(range(rows * columns))


@pytest.mark.parametrize(
    ("which", "lane", "value", "place"),
    [(0, 5, 6, (9, 10)), (0, 0, 2, (8, 0)), (0, 31, 7, (15, 15)), (1, 26, 3, (13, 6)), (2, 7, 2, (9, 6))],
)
def test_elements_lie_where_the_manual_draws_them(which: int, lane: int, value: int, place: tuple[int, int]) -> None:
    assert answer("fragment_offsets", lane=[lane], value=[value], operand=[which, 40]) == [40 * place[0] + place[1]]


@pytest.mark.parametrize(
    ("access", "access_bytes", "passes"),
    [
        ([lane * 32 for lane in range(32)], 4, 32),
        ([lane * 33 for lane in range(32)], 4, 1),
        ([7] * 32, 4, 1),
        (list(range(32)), 2, 1),
        (list(range(32)), 8, 2),
        (list(range(32)), 16, 4),
        ([lane * 8 for lane in range(32)], 16, 32),
        ([lane // 8 * 64 + 8 * (lane % 8) + (lane % 8) for lane in range(32)], 16, 4),
    ],
)
def test_passes_are_counted_bank_by_bank(access: list[int], access_bytes: int, passes: int) -> None:
    assert answer("bank_passes", access=[access], access_bytes=[access_bytes]) == [passes]


def test_an_accumulator_of_64_rows_leaves_half_of_each_quarter_free() -> None:
    lanes = [
        address >> 16 for address in answer("tmem_addresses", row=list(range(64)), column=[0] * 64, tile=[64, 32, 32])
    ]
    assert lanes == [lane for lane in range(128) if lane % 32 < 16]
