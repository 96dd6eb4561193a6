"""Every hostile file in Pallas gets its verdict and nothing else, and leaves nothing."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from autograder.contract import Language
from autograder.sandbox.process import ProcessSandbox
from tests.hostile.stand import Stand, folders_left, processes_left

HERE = Path(__file__).parent
ATTACKS: dict[str, dict[str, Any]] = tomllib.loads((HERE / "table.toml").read_text(encoding="utf-8"))
LIMITS = {"call_s": 10, "memory_mib": 2048, "processes": 64}
"""A program is compiled within a call, and XLA takes memory of its own."""

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    pytest.importorskip("jax", reason="the extra pallas is not installed")
    made = Stand(ProcessSandbox(), tmp_path_factory.mktemp("stand"), warm=True)
    yield made
    made.close()


def test_the_table_has_every_file_and_every_class_that_a_file_can_have() -> None:
    assert {path.stem for path in HERE.glob("*.py") if not path.stem.startswith("test_")} == set(ATTACKS)
    assert {attack["class"][0] for attack in ATTACKS.values()} == set("ABCDEF")


@pytest.mark.parametrize("name", ATTACKS)
def test_a_hostile_file_gets_its_verdict_and_leaves_nothing(name: str, stand: Stand) -> None:
    source = (HERE / f"{name}.py").read_text(encoding="utf-8")
    result = stand.grade(source, language=Language("pallas"), limits=LIMITS)
    assert name.startswith(f"{result.verdict}_"), result.explanation
    assert {finding.kind for finding in result.findings} == set(ATTACKS[name].get("findings", ()))
    assert not processes_left(stand)
    assert not folders_left(stand)
