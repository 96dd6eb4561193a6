"""A distribution that problem.py does not draw is refused with its line and the nearest that it does."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from autograder.errors import ManifestError
from autograder.verify import drawing

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def rung(tmp_path: Path) -> tuple[Path, Path]:
    """A copy of both folders of the tiled matmul."""
    for part in ("assignments", "reference"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / part / "matmul_tiled", tmp_path / part / "matmul_tiled", ignore=ignored)
    return tmp_path / "assignments" / "matmul_tiled", tmp_path / "reference" / "matmul_tiled"


def _edit_last(path: Path, old: str, new: str) -> int:
    """Replace the last occurrence; its line."""
    text = path.read_text(encoding="utf-8")
    place = text.rindex(old)
    path.write_text(text[:place] + text[place:].replace(old, new), encoding="utf-8")
    return text.count("\n", 0, place) + 1


def test_what_is_named_is_drawn(rung: tuple[Path, Path]) -> None:
    drawing.check(*rung)


def test_a_case_that_only_gpus_run_is_looked_at_too(rung: tuple[Path, Path]) -> None:
    line = _edit_last(rung[0] / "assignment.toml", 'distribution = "decades"', 'distribution = "decade"')
    with pytest.raises(ManifestError) as caught:
        drawing.check(*rung)
    assert "distribution: problem.py does not draw 'decade': KeyError: 'decade'. Did you mean 'decades'?" in str(
        caught.value
    )
    assert (caught.value.path.name, caught.value.line) == ("assignment.toml", line)


def test_a_family_of_hidden_cases_is_looked_at_too(rung: tuple[Path, Path]) -> None:
    line = _edit_last(rung[1] / "hidden.toml", '"decades"', '"decads"')
    with pytest.raises(ManifestError, match="Did you mean 'decades'") as caught:
        drawing.check(*rung)
    assert (caught.value.path.name, caught.value.line) == ("hidden.toml", line)
