"""What verify finds missing in an assignment's folders: here a complete rung, damaged in one place at a time."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from autograder.verify import gaps

ROOT = Path(__file__).resolve().parents[3]
PUBLIC = "assignments/softmax"
STAFF = "reference/softmax"


@pytest.fixture
def rung(tmp_path: Path) -> Path:
    """A copy of the softmax rung: `assignments/softmax` and `reference/softmax` under this folder."""
    for part in ("assignments", "reference"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / part / "softmax", tmp_path / part / "softmax", ignore=ignored)
    return tmp_path


def _found(rung: Path) -> list[str]:
    return [f"{gap.where}: {gap.problem}" for gap in gaps.find(rung / PUBLIC, rung / STAFF)]


def _edit(name: str, old: str, new: str) -> Callable[[Path], None]:
    def change(rung: Path) -> None:
        path = rung / name
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")

    return change


def _remove(*patterns: str) -> Callable[[Path], None]:
    def change(rung: Path) -> None:
        paths = [path for pattern in patterns for path in rung.glob(pattern)]
        assert paths
        for path in paths:
            path.unlink()

    return change


def _write(name: str, text: str) -> Callable[[Path], None]:
    return lambda rung: (rung / name).write_text(text, encoding="utf-8") and None


def test_a_complete_rung_has_no_gaps(rung: Path) -> None:
    assert _found(rung) == []


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (_remove(f"{PUBLIC}/README.md"), "there is no handout"),
        (_edit(f"{PUBLIC}/README.md", "## Hints", "## Help"), "the section '## Hints' is missing"),
        (_edit(f"{PUBLIC}/README.md", "## What to write", "## Hints\n\n## What to write"), "another order"),
        (_write(f"{PUBLIC}/README.md", "# Short\n"), "has 1 words"),
        (_edit(f"{PUBLIC}/README.md", "<details>", ""), "no hint unfolds"),
        (_edit(f"{PUBLIC}/README.md", "$", ""), "no formula says what is computed"),
        (_edit(f"{PUBLIC}/README.md", "```text", "```"), "there is no picture"),
        (_remove(f"{PUBLIC}/quiz.toml"), "has 0 questions; a quiz has 3 to 6"),
        (_edit(f"{PUBLIC}/assignment.toml", "quiz = 5", "quiz = 0"), "the quiz is worth nothing"),
        (
            _edit(
                f"{PUBLIC}/README.md",
                "## Hints",
                "That is often a good trade: fewer warps, each with more loads in flight, fill the bandwidth as well, "
                "and then more\nwarps would gain nothing.\n\n## Hints",
            ),
            "README.md: repeats a sentence of the explanation of 'occupancy'",
        ),
        (_remove(f"{STAFF}/notes.md"), "there are no notes"),
        (_remove(f"{PUBLIC}/starters/triton.py"), "starters/triton.py: is missing"),
        (_remove(f"{PUBLIC}/starters/reading.py"), "starters/reading.py: is missing"),
        (_remove(f"{STAFF}/solutions/triton.py"), "solutions/triton.py: is missing"),
        (_remove(f"{PUBLIC}/milestones/*.py"), "milestones: there is none in triton"),
        (_remove(f"{STAFF}/submissions/passed_o*.py"), "1 honest variants in triton pass"),
        (_remove(f"{STAFF}/submissions/passed_library_call.py"), "with a library call"),
        (_remove(f"{STAFF}/submissions/runtime_error*.py"), "none in triton gets runtime_error"),
        (_write(f"{STAFF}/submissions/slow.py", ""), "submissions/slow: does not start with the verdict"),
        (
            _edit(f"{STAFF}/mutants.toml", 'killed_by = "padded"', 'killed_by = "paded"'),
            "'paded' is neither a public",
        ),
        (_edit(f"{STAFF}/solutions/triton.py", "column < cols)", "column<cols)"), "occurs 0 times"),
        (_write(f"{STAFF}/mutants.toml", ""), "has 0 mutants in triton"),
        (
            _edit(f"{PUBLIC}/assignment.toml", 'ranked = true\nlanes = ["cpu"]', 'ranked = false\nlanes = ["cpu"]'),
            "the lane cpu ranks and has no",
        ),
        (_edit(f"{PUBLIC}/assignment.toml", "rows = 1, cols = 1 ", "rows = 2, cols = 2 "), "case of size 1"),
        (_edit(f"{STAFF}/hidden.toml", "offset = { choose = [1, 3, 5] }", ""), "no family with misaligned"),
        (_write(f"{STAFF}/hidden.toml", ""), "no family pads rows"),
        (_edit(f"{PUBLIC}/README.md", "## Hints", "Try 997 columns.\n\n## Hints"), "tells 997"),
        (
            _edit(f"{PUBLIC}/starters/triton.py", '"""Softmax', '"""See hidden.toml. Softmax'),
            "the staff's folder",
        ),
    ],
)
def test_a_gap_is_found(rung: Path, damage: Callable[[Path], None], problem: str) -> None:
    damage(rung)
    assert problem in "\n".join(_found(rung))


def test_a_prerequisite_is_another_rung_unless_the_rung_stands_alone(rung: Path) -> None:
    other = rung / "assignments" / "reductio"
    shutil.copytree(ROOT / "assignments" / "vector_add", other, ignore=shutil.ignore_patterns("__pycache__"))
    _edit("assignments/reductio/assignment.toml", 'slug = "vector_add"', 'slug = "reductio"')(rung)
    problem = "the prerequisite 'reduction' is no other rung here. Did you mean 'reductio'?"
    assert _found(rung) == [f"assignment.toml: {problem}"]


def test_a_staff_kernel_among_the_milestones_is_a_leak(rung: Path) -> None:
    solution = rung / f"{STAFF}/solutions/triton.py"
    shutil.copy(solution, rung / f"{PUBLIC}/milestones/4_fast.py")
    assert _found(rung) == ["milestones/4_fast.py: is the staff's solution"]


def test_words_are_those_of_the_prose() -> None:
    text = "# One two\n\n```python\nthree = 4\n```\n\n$a + b$ five <details> six-seven\n\n$$x$$\n"
    assert gaps.words(text) == 4
    # A mask in code is no tag, which would reach to the next `>` of the text.
    assert gaps.words("If `i < n` holds\n\n<details>\n<summary>Three more words</summary>") == 7


@pytest.mark.parametrize(
    ("name", "verdict"),
    [("passed_honest", "passed"), ("wrong_answer", "wrong_answer"), ("out_of_memory_hog", "out_of_memory")],
)
def test_a_file_is_named_for_its_verdict(name: str, verdict: str) -> None:
    assert gaps.verdict_in(name) == verdict


def test_a_name_without_a_verdict_has_none() -> None:
    assert gaps.verdict_in("passedx") is None
