"""Every hostile `.cu` file gets its verdict and nothing else; without the defence that it meets it succeeds."""

from __future__ import annotations

import shutil
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from autograder import codec
from autograder.contract import GradeRequest, GradeResult, Lane, Language, Mode, Verdict
from autograder.judge import grade
from autograder.sandbox import Promise
from autograder.sandbox.process import ProcessSandbox

pytestmark = [
    pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++"),
    pytest.mark.timeout(150),
]

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TABLE: dict[str, dict[str, Any]] = tomllib.loads((HERE / "table.toml").read_text(encoding="utf-8"))
BITES = [name for name, row in TABLE.items() if "bite" in row]
SECRET_TEXT = "LOOT_that_no_runner_may_read"


@pytest.fixture(scope="module")
def secret() -> Iterator[Path]:
    """A file that everybody on this machine may read, outside of what a runner sees."""
    folder = Path(tempfile.mkdtemp(prefix="hostile-cuda-"))
    folder.chmod(0o755)
    path = folder / "secret"
    path.write_text(SECRET_TEXT, encoding="utf-8")
    path.chmod(0o644)
    yield path
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[ProcessSandbox]:
    made = ProcessSandbox()
    yield made
    made.close()


def verdict_of(name: str) -> Verdict:
    return next(verdict for verdict in Verdict if name.startswith(f"{verdict}_"))


def graded(name: str, row: dict[str, Any], sandbox: ProcessSandbox, secret: Path, folder: Path) -> GradeResult:
    """Grade one file on a copy of vector add with the row's limits."""
    assignment = folder / "vector_add"
    shutil.copytree(ROOT / "assignments" / "vector_add", assignment)
    manifest = assignment / "assignment.toml"
    text = manifest.read_text(encoding="utf-8").replace("pairs = 7", "pairs = 1")
    limits = "".join(f"{key} = {value}\n" for key, value in row.get("limits", {}).items())
    manifest.write_text(text.replace("[limits]\n", f"[limits]\n{limits}"), encoding="utf-8")
    source = (HERE / f"{name}.cu").read_text(encoding="utf-8").replace("/SECRET", str(secret))
    for macro, value in row.get("define", {}).items():
        source = source.replace(macro, value)
    mode = Mode.submission if "findings" in row else Mode.run
    request = GradeRequest("vector_add", "", Language.cuda, Lane.cpu, mode, source, "vector_add.cu")
    reference = ROOT / "reference" / "vector_add" if mode is Mode.submission else None
    return grade(request, assignment_folder=assignment, reference_folder=reference, sandbox=sandbox)


@pytest.mark.parametrize("name", TABLE)
def test_a_hostile_file_gets_its_verdict_and_nothing_else(
    name: str, sandbox: ProcessSandbox, secret: Path, tmp_path: Path
) -> None:
    row = TABLE[name]
    if any(Promise(promise) not in sandbox.promises for promise in row.get("bite", {}).get("without", [])):
        pytest.skip("the process sandbox does not promise what this file meets on this machine")
    result = graded(name, row, sandbox, secret, tmp_path)
    assert result.verdict is verdict_of(name), (result.explanation, result.log[-2000:])
    assert SECRET_TEXT not in codec.dumps(result)
    assert {finding.kind for finding in result.findings} == set(row.get("findings", []))


@pytest.mark.parametrize("name", BITES)
def test_without_what_it_meets_it_succeeds(name: str, secret: Path, tmp_path: Path) -> None:
    row = TABLE[name]
    weak = ProcessSandbox(without=frozenset(map(Promise, row["bite"].get("without", []))))
    try:
        result = graded(name, row | row["bite"], weak, secret, tmp_path)
    finally:
        weak.close()
    if row["bite"]["succeeds"] == "loot":
        assert SECRET_TEXT in codec.dumps(result), (result.verdict, result.log[-2000:])
    else:
        assert result.verdict == row["bite"]["succeeds"], result.explanation


def test_the_table_and_the_folder_say_the_same() -> None:
    assert {path.stem for path in HERE.glob("*.cu")} == set(TABLE)
    assert all(row["meets"] for row in TABLE.values())
