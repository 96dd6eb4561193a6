"""Each mistake is told as itself: the headline names its pattern, and what to do next fits it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from autograder.contract import GradeRequest, GradeResult, Lane, Language, Mode, Verdict, Work
from autograder.judge import References, grade
from autograder.sandbox import Sandbox
from autograder.sandbox.process import ProcessSandbox

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
MOST_WORDS = 160


@dataclass(frozen=True)
class Mistake:
    """One edit of a right kernel.

    Attributes:
        says: parts of the explanation that name the pattern.
        step: a part of it that names the next step.
    """

    name: str
    kernel: str
    find: str
    replace: str
    says: tuple[str, ...]
    step: str


MISTAKES = [Mistake(**one) for one in tomllib.loads((HERE / "mistakes.toml").read_text(encoding="utf-8"))["mistake"]]
KERNELS = sorted(path.name for path in (HERE / "kernels").iterdir() if path.is_file())


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    made = ProcessSandbox()
    yield made
    made.close()


def graded(kernel: str, source: str, sandbox: Sandbox) -> GradeResult:
    """What the public cases of the kernel's rung show of a source, on the CPU lane."""
    slug, suffix = kernel.split(".")
    language = Language.cuda if suffix == "cu" else Language.triton
    return grade(
        GradeRequest(slug, "", language, Lane.cpu, Mode.run, source, kernel, Work.check),
        assignment_folder=ROOT / "assignments" / slug,
        reference_folder=ROOT / "reference" / slug,
        sandbox=sandbox,
        references=References(sandbox),
    )


@pytest.mark.full("gradings of right kernels and of mistakes")
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_kernels_without_the_mistakes_are_right(kernel: str, sandbox: Sandbox) -> None:
    result = graded(kernel, (HERE / "kernels" / kernel).read_text(encoding="utf-8"), sandbox)
    assert result.verdict is Verdict.passed, result.explanation


@pytest.mark.full("gradings of right kernels and of mistakes")
@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_a_mistake_is_told_as_itself(mistake: Mistake, sandbox: Sandbox) -> None:
    source = (HERE / "kernels" / mistake.kernel).read_text(encoding="utf-8")
    assert source.count(mistake.find) == 1
    result = graded(mistake.kernel, source.replace(mistake.find, mistake.replace), sandbox)
    assert result.verdict is not Verdict.passed
    assert not [part for part in (*mistake.says, mistake.step) if part not in result.explanation], result.explanation
    assert len(result.explanation.split()) <= MOST_WORDS


def test_each_mistake_has_a_name_of_its_own() -> None:
    assert len(MISTAKES) == len({mistake.name for mistake in MISTAKES}) == 28
