"""Hostile files in TIRx, on a lane that only compiles them: each gets that lane's answer, and leaves nothing."""

from __future__ import annotations

import shutil
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

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    pytest.importorskip("tvm", reason="the extra tirx is not installed")
    if shutil.which("nvcc") is None:
        pytest.skip("there is no nvcc")
    made = Stand(ProcessSandbox(), tmp_path_factory.mktemp("stand"), warm=True)
    yield made
    made.close()


def test_the_table_has_every_file() -> None:
    assert {path.stem for path in HERE.glob("*.py") if not path.stem.startswith("test_")} == set(ATTACKS)


@pytest.mark.parametrize("name", ATTACKS)
def test_a_hostile_file_gets_its_verdict_and_leaves_nothing(name: str, stand: Stand) -> None:
    source = (HERE / f"{name}.py").read_text(encoding="utf-8")
    result = stand.grade(source, mode="run", language=Language("tirx"))
    assert name.startswith(f"{result.verdict}_"), result.explanation
    assert not processes_left(stand)
    assert not folders_left(stand)
    first = result.compiled[0]
    told = " ".join([first.message, *(f"{one.kernel} {one.message}" for one in first.kernels)])
    assert ATTACKS[name]["shows"] in told
    assert told.strip()
    assert "called back" not in result.log
