"""A rung whose inputs or tolerance let a shortcut through is found out."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from autograder.verify import shortcuts

ROOT = Path(__file__).resolve().parents[3]
_WIDER = "    c = c * (1000 if a.dtype == torch.bfloat16 else 1)\n"


@pytest.fixture
def matmul(tmp_path: Path) -> Path:
    """A copy of the public folder of the tiled matmul."""
    folder = tmp_path / "matmul_tiled"
    shutil.copytree(ROOT / "assignments" / "matmul_tiled", folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def _edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_nothing_passes_a_sound_rung(matmul: Path) -> None:
    assert shortcuts.find(matmul) == ()


def test_a_tolerance_that_a_lower_precision_passes_is_found(matmul: Path) -> None:
    _edit(matmul / "assignment.toml", "factor = 1.5", "factor = 1000.0")
    _edit(matmul / "assignment.toml", "row_factor = 1.0", "row_factor = 0.0")
    problems = [gap.problem for gap in shortcuts.find(matmul)]
    assert "in float16, the answer in the next lower precision passes every public case" in problems
    assert not any(problem.startswith("in float16, zeros") for problem in problems)


def test_a_type_that_only_gpus_have_is_tried_too(matmul: Path) -> None:
    """A factor that is right for float16, eight times as wide in bfloat16."""
    _edit(matmul / "problem.py", "    finfo = torch.finfo(a.dtype)\n", "    finfo = torch.finfo(a.dtype)\n" + _WIDER)
    problems = [gap.problem for gap in shortcuts.find(matmul)]
    assert "in bfloat16, the answer in the next lower precision passes every public case" in problems
    assert not any("in float16" in problem for problem in problems)


def test_inputs_without_structure_are_found(matmul: Path) -> None:
    _edit(matmul / "problem.py", "    a, b = _DISTRIBUTIONS[distribution](generator, dtype, m, n, k)\n", "")
    _edit(matmul / "problem.py", '"a": a.to(dtype)', '"a": torch.ones(m, k).to(dtype)')
    _edit(matmul / "problem.py", '"b": b.to(dtype)', '"b": torch.ones(k, n).to(dtype)')
    problems = [gap.problem for gap in shortcuts.find(matmul)]
    assert "in float16, the mean everywhere passes every public case" in problems
    assert "in float32, the answer to earlier inputs passes every public case" in problems


def test_a_single_number_is_not_its_own_shortcut() -> None:
    assert shortcuts.find(ROOT / "assignments" / "reduction") == ()


def test_a_single_number_that_zeros_or_an_earlier_answer_pass_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "reduction"
    shutil.copytree(ROOT / "assignments" / "reduction", folder, ignore=shutil.ignore_patterns("__pycache__"))
    _edit(folder / "problem.py", "TREE = 8.0", "TREE = 1e9")
    _edit(folder / "assignment.toml", 'kind = "exact"', 'kind = "bounded"\nfactor = 1e30')
    _edit(
        folder / "problem.py", "torch.zeros(1, dtype=torch.float64, device=x.device)}", "wide.abs().amax().reshape(1)}"
    )
    # An earlier answer may be infinite where this one is NaN, and is then found out: seldom twice, hardly three times.
    problems = {gap.problem for _ in range(3) for gap in shortcuts.find(folder)}
    assert "in float32, zeros passes every public case" in problems
    assert "in float32, the answer to earlier inputs passes every public case" in problems
    assert not any("mean" in problem for problem in problems)


def test_integers_have_no_lower_precision() -> None:
    """All answers are bytes, of inputs that are floats."""
    assert shortcuts.find(ROOT / "assignments" / "nvfp4") == ()
