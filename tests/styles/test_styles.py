"""The corpus of honest programs: its tables, and the right verdict on the CPU lane, an eighth of it at every commit."""

from __future__ import annotations

import pytest

from autograder.assignment import load_assignment, slugs
from autograder.contract import Lane, Language, Verdict, Work
from autograder.judge import References
from autograder.sandbox.process import ProcessSandbox
from tests.golden.conftest import references, sandbox  # noqa: F401 - fixtures
from tests.golden.rungs import ASSIGNMENTS
from tests.graded import Stand
from tests.styles.programs import HERE, Program, programs

ALL = programs()


def test_the_tables_name_every_program_once() -> None:
    named = sorted(program.file for program in ALL)
    there = sorted(str(path.relative_to(HERE)) for ending in ("py", "cu") for path in HERE.glob(f"*/*.{ending}"))
    assert named == there
    assert len(ALL) >= 80


WRITTEN = {Language.triton, Language.cuda}
"""The corpus's languages."""


def test_every_rung_is_there_in_each_of_its_languages() -> None:
    assert {program.rung for program in ALL} == set(slugs(ASSIGNMENTS))
    for rung in slugs(ASSIGNMENTS):
        there = {program.language for program in ALL if program.rung == rung}
        assert there == set(load_assignment(ASSIGNMENTS / rung).languages) & WRITTEN


@pytest.mark.full("honest programs of many authors")
@pytest.mark.turns(8)
@pytest.mark.parametrize("program", [one for one in ALL if one.cpu_lane], ids=lambda program: program.file)
def test_an_honest_program_passes(
    program: Program,
    sandbox: ProcessSandbox,  # noqa: F811
    references: References,  # noqa: F811
) -> None:
    result = Stand(sandbox, references).grade(program, Lane.cpu, Work.check)
    assert result.verdict is Verdict.passed, result.explanation
    assert result.findings == ()
