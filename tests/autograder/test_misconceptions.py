"""What an author may say of misconceptions, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.assignment import load_assignment, slugs
from autograder.errors import ManifestError
from autograder.misconceptions import FILE, load_misconceptions
from autograder.verify import gaps

ROOT = Path(__file__).resolve().parents[2]
ASSIGNMENT = load_assignment(ROOT / "assignments" / "softmax")
WORDS = '[[misconception]]\nname = "a"\nsays = "It is so."\nstep = "Do so."\n'


def read(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text, encoding="utf-8")
    load_misconceptions(tmp_path, ASSIGNMENT)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("", "asks for nothing"),
        ('fails = ["lagre"]', "Did you mean 'large'?"),
        ('passes = ["lagre"]\nclue = "nan"', "there is no 'lagre'"),
        ('clue = "nan"\noutput = "y"', "there is no 'y'"),
        ('answer = "x +"', "is no expression"),
        ('answer = "torch.exp(y)"', "there is no 'y'"),
        ('clue = "nan"\nsize = "columns"', "there is no 'columns'"),
    ],
)
def test_what_says_nothing_or_names_what_is_not_there_is_refused(tmp_path: Path, keys: str, said: str) -> None:
    with pytest.raises(ManifestError, match=said.replace("?", r"\?")):
        read(tmp_path, WORDS + keys)


def test_a_rung_needs_none(tmp_path: Path) -> None:
    assert load_misconceptions(tmp_path, ASSIGNMENT) == ()


@pytest.mark.parametrize("slug", slugs(ROOT / "assignments"))
def test_no_mutant_and_no_misconception_is_without_the_other(slug: str) -> None:
    found = gaps.find(ROOT / "assignments" / slug, ROOT / "reference" / slug)
    assert [gap for gap in found if gap.where == FILE or "misconception" in gap.problem] == []
