"""Whose work it is, on a GPU: what staff have to be shown, and what nobody has to be troubled with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from autograder.contract import FindingKind, GradeResult, Mode, Verdict, Work
from tests.gpu.hostile.corpus import EVASION, attacks

pytestmark = pytest.mark.gpu
Grade = Callable[..., GradeResult]
FILES = Path(__file__).with_name("evasion")
FLOAT32_ONLY = "honest_writes_ptx_by_hand"
HONEST = [path for path in sorted(Path(__file__).with_name("hostile").glob("honest_*.py")) if path.stem != FLOAT32_ONLY]
CORPUS = Path(__file__).parents[2] / "reference" / "vector_add" / "submissions"
FOUND = {attack.name: set(attack.findings) for attack in attacks() if attack.folder == EVASION}


def checked(grade_on_gpu: Grade, path: Path) -> GradeResult:
    return grade_on_gpu(path.read_text(encoding="utf-8"), mode=Mode.submission, work=Work.check)


def test_every_file_has_its_findings() -> None:
    assert {path.stem for path in FILES.glob("*.py")} == set(FOUND)


@pytest.mark.parametrize("name", FOUND)
def test_what_staff_are_shown(grade_on_gpu: Grade, name: str) -> None:
    result = checked(grade_on_gpu, FILES / f"{name}.py")
    assert result.verdict is Verdict.passed, result.explanation
    assert {finding.kind for finding in result.findings} == FOUND[name]


@pytest.mark.parametrize("path", HONEST, ids=lambda path: path.stem)
def test_honest_oddities_are_no_findings(grade_on_gpu: Grade, path: Path) -> None:
    result = checked(grade_on_gpu, path)
    assert result.verdict is Verdict.passed, result.explanation
    assert result.findings == ()


@pytest.mark.parametrize("name", ["passed_library_call", "passed_decorated_library_call"])
def test_the_trace_names_the_librarys_kernel(grade_on_gpu: Grade, name: str) -> None:
    result = checked(grade_on_gpu, CORPUS / f"{name}.py")
    assert FindingKind.library_call in {finding.kind for finding in result.findings}
    others = [kernel for kernel in result.device_kernels if not kernel.own]
    assert others
    assert sum(kernel.share for kernel in result.device_kernels) == pytest.approx(1.0)
    assert others[0].name in result.findings[0].evidence["on the device"]


def test_the_students_kernel_is_its_own(grade_on_gpu: Grade) -> None:
    result = checked(grade_on_gpu, CORPUS / "passed_two_kernels_scratch.py")
    assert any(kernel.own and kernel.share > 0 for kernel in result.device_kernels)
