"""What every test on a GPU needs: the lane of the GPU that is here, or a reason to skip.

python -m pytest tests/gpu --confcutdir tests/gpu      on a GPU machine that has nothing of the server installed
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from autograder.contract import GradeRequest, GradeResult, Lane, Language, Mode, Work
from autograder.errors import GpuError
from autograder.judge import ALL_ON, Defences, References, grade
from autograder.judge.protocol import devices
from autograder.sandbox.process import ProcessSandbox

ROOT = Path(__file__).parents[2]
Grade = Callable[..., GradeResult]


def _missing() -> str:
    if not torch.cuda.is_available():
        return "torch sees no GPU"
    if importlib.util.find_spec("cuda.bindings") is None:
        return "cuda-bindings is not installed"
    return "runners on a GPU need root or user namespaces" if os.getuid() and sys.platform != "linux" else ""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if reason := _missing():
        for item in items:
            if Path(__file__).parent in item.path.parents:
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def lane() -> Lane:
    for found in (Lane.h100, Lane.h200, Lane.b200):
        try:
            devices.of(found)
        except GpuError:
            continue
        return found
    pytest.skip(f"no lane is for {torch.cuda.get_device_name(0)}")


@pytest.fixture(scope="session")
def sandbox() -> Iterator[ProcessSandbox]:
    made = ProcessSandbox()
    yield made
    made.close()


@pytest.fixture(scope="session")
def assignment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Vector add with ranked cases that are small."""
    folder = tmp_path_factory.mktemp("assignments") / "vector_add"
    shutil.copytree(ROOT / "assignments" / "vector_add", folder)
    manifest = folder / "assignment.toml"
    text = manifest.read_text(encoding="utf-8")
    for size in ("134217728", "268435456"):
        assert size in text
        text = text.replace(size, str(2**22))
    manifest.write_text(text.replace("pairs = 25", "pairs = 15"), encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def grade_on_gpu(lane: Lane, sandbox: ProcessSandbox, assignment: Path) -> Iterator[Grade]:
    references = References(sandbox)

    def run(source: str, *, mode: Mode = Mode.run, work: Work = Work.all, defences: Defences = ALL_ON) -> GradeResult:
        request = GradeRequest("vector_add", "", Language("triton"), lane, mode, source, "vector_add.py", work)
        reference = ROOT / "reference" / "vector_add"
        return grade(
            request, assignment_folder=assignment, reference_folder=reference, sandbox=sandbox,
            references=references, defences=defences,
        )  # fmt: skip

    yield run
    references.close()
