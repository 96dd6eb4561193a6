"""Nothing that is known is left out: every class of attack and every invariant of the sealed protocol has a row."""

from __future__ import annotations

import ast
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from tests.gpu.hostile import corpus as gpu
from tests.hostile import corpus as host
from tests.hostile_cuda import corpus as cuda

ROOT = Path(__file__).parents[2]
LAST = {"A": 12, "B": 7, "C": 11, "D": 7, "E": 6, "F": 10, "G": 10}
"""How many classes of each letter are known."""
CLASSES = [f"{letter}{number}" for letter, last in LAST.items() for number in range(1, last + 1)]
INVARIANTS = range(1, 13)
ELSEWHERE: dict[str, dict[str, Any]] = tomllib.loads(
    (ROOT / "tests" / "redteam" / "elsewhere.toml").read_text(encoding="utf-8")
)
ROWS = (*host.attacks(), *gpu.attacks(), *cuda.attacks())
NAMES = {row.name for row in ROWS}
OF_ROWS = {row.threat for row in ROWS}


def test_every_class_is_tried_or_it_is_said_why_not() -> None:
    assert [name for name in CLASSES if (name in OF_ROWS) == (name in ELSEWHERE)] == []


def test_every_invariant_is_leant_on_by_a_row() -> None:
    assert [number for number in INVARIANTS if not any(number in row.invariants for row in ROWS)] == []


def test_rows_name_no_class_and_no_invariant_that_is_not_known() -> None:
    assert {*CLASSES, "honest", "input"} >= OF_ROWS
    assert {number for row in ROWS for number in row.invariants} <= set(INVARIANTS)
    assert set(ELSEWHERE) <= set(CLASSES)


def test_what_is_shown_elsewhere_is_there() -> None:
    for name, said in ELSEWHERE.items():
        assert len(said) == 1, name
        assert all(said.values()), name
        assert set(said.get("rows", [])) <= NAMES, name
        for test in said.get("tests", []):
            path, _, function = test.partition("::")
            assert function in _functions(path), f"{name}: {test}"


@cache
def _functions(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_no_name_stands_in_two_tables() -> None:
    assert len(NAMES) == len(ROWS)
