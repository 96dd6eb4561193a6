"""A new rung: what is begun can be read and graded, and verify says what it lacks, not that it is broken."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.assignment import load_assignment, load_families, load_mutants
from autograder.contract import Lane, Language, Work
from autograder.errors import ScaffoldError
from autograder.quiz import load_quiz
from autograder.sandbox.process import ProcessSandbox
from autograder.verify import Kind, drawing, gaps, scaffold, shortcuts, trials


@pytest.fixture
def begun(tmp_path: Path) -> tuple[Path, Path]:
    scaffold.write(tmp_path / "assignments", tmp_path / "reference", slug="new_one", title="A new one", rung=12)
    return tmp_path / "assignments" / "new_one", tmp_path / "reference" / "new_one"


def test_what_is_begun_can_be_read(begun: tuple[Path, Path]) -> None:
    assignment = load_assignment(begun[0])
    assert (assignment.slug, assignment.title, assignment.rung, assignment.entry) == (
        "new_one",
        "A new one",
        12,
        "new_one",
    )
    assert assignment.languages == (Language.triton, Language.cuda)
    assert load_families(begun[1])
    assert load_mutants(begun[1])
    assert load_quiz(*begun).keys
    assert not [path for folder in begun for path in folder.rglob("*") if path.is_file() and "@" in _unquoted(path)]


def _unquoted(path: Path) -> str:
    return path.read_text().replace("@triton.jit", "")


def test_what_it_lacks_is_what_its_author_has_to_write(begun: tuple[Path, Path]) -> None:
    found = {gap.where for gap in gaps.find(*begun)}
    assert found == {"README.md", "notes.md", "quiz.toml", "milestones", "submissions", "mutants.toml"}
    assert shortcuts.find(begun[0]) == ()
    drawing.check(*begun)


def test_what_only_says_what_belongs_there_is_missing(begun: tuple[Path, Path]) -> None:
    found = [gap.problem for gap in gaps.find(*begun) if "as it was begun" in gap.problem]
    assert "still says 'What is known of it, and what was measured: command, machine, date.', as it was begun" in found
    assert 'still says "How points fall, with the manifest\'s numbers.", as it was begun' in found
    (begun[1] / "notes.md").write_text("# Notes\n", encoding="utf-8")
    assert not [gap for gap in gaps.find(*begun) if gap.where == "notes.md"]


def test_it_is_graded_on_every_kind_of_gpu(begun: tuple[Path, Path]) -> None:
    assignment = load_assignment(begun[0])
    gpus = {name for name, policy in assignment.lanes.items() if policy.speed_points}
    assert gpus == {"h100", "h200", "b200"}
    assert all(any(case.ranked for case in assignment.cases_for(Lane(name))) for name in gpus)


@pytest.mark.full("slow")
def test_every_kernel_of_it_gets_the_verdict_it_must_get(begun: tuple[Path, Path]) -> None:
    sandbox = ProcessSandbox()
    try:
        outcomes = [trials.run(trial, *begun, sandbox, work=Work.check) for trial in trials.plan(*begun)]
    finally:
        sandbox.close()
    assert {outcome.trial.kind for outcome in outcomes} == {Kind.solution, Kind.starter, Kind.mutant}
    assert [outcome.deviation for outcome in outcomes] == [""] * 7


def test_a_rung_comes_after_the_last_unless_its_author_says_where(begun: tuple[Path, Path], tmp_path: Path) -> None:
    assert scaffold.next_rung(begun[0].parent) == 13
    assert scaffold.next_rung(tmp_path / "nowhere") == 1


@pytest.mark.parametrize("slug", ["", "2nd", "a-b", "Über", "a/b", "..", "a" * 61])
def test_what_names_no_function_is_no_slug(tmp_path: Path, slug: str) -> None:
    with pytest.raises(ScaffoldError, match="slug"):
        scaffold.write(tmp_path, tmp_path, slug=slug, title="T", rung=1)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("title", ["", " ", 'a "b"', "a\nb", "back\\slash", "@slug@"])
def test_a_title_is_one_line_that_toml_can_hold(tmp_path: Path, title: str) -> None:
    with pytest.raises(ScaffoldError, match="title"):
        scaffold.write(tmp_path, tmp_path, slug="a", title=title, rung=1)


def test_nothing_is_overwritten_and_no_number_is_taken_twice(begun: tuple[Path, Path]) -> None:
    assignments, reference = begun[0].parent, begun[1].parent
    with pytest.raises(ScaffoldError, match="there already"):
        scaffold.write(assignments, reference, slug="new_one", title="T", rung=13)
    with pytest.raises(ScaffoldError, match="Rung 12 is 'new_one'"):
        scaffold.write(assignments, reference, slug="another", title="T", rung=12)


def test_the_first_number_is_0_and_the_last_999(tmp_path: Path) -> None:
    for rung in (-1, 1000):
        with pytest.raises(ScaffoldError, match="0 to 999"):
            scaffold.write(tmp_path, tmp_path, slug="a", title="T", rung=rung)
    scaffold.write(tmp_path / "assignments", tmp_path / "reference", slug="zero", title="T", rung=0)
    assert scaffold.next_rung(tmp_path / "assignments") == 1
