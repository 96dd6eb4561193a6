"""Rung 30 asks for more than rung 26: the same answer, from a maximum that may lag."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder import languages
from autograder.contract import Language, Verdict, Work
from autograder.judge import References
from autograder.sandbox.process import ProcessSandbox
from autograder.verify import Trial, trials
from autograder.verify.trials import Kind
from tests.golden.rungs import REFERENCE, folders

SOLUTIONS = sorted((REFERENCE / "flash_attention_2" / "solutions").iterdir())


@pytest.mark.parametrize("path", SOLUTIONS, ids=[path.name for path in SOLUTIONS])
def test_the_attention_of_rung_26_fails_at_rung_30(path: Path, sandbox: ProcessSandbox, references: References) -> None:
    slug, record = "flash_attention_4", languages.of_file(path.name)
    assert record is not None
    trial = Trial(
        slug, Kind.submission, path.name, Language(record.id), path.read_text(encoding="utf-8"), Verdict.passed
    )
    outcome = trials.run(trial, *folders(slug), sandbox, references, work=Work.check, public_only=True)
    assert outcome.verdict in {Verdict.compile_error, Verdict.runtime_error, Verdict.wrong_answer}, outcome.deviation
