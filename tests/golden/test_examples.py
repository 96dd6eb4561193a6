"""The example kernels of the handouts: each solves the small exercise in `reference/<slug>/example` on the CPU lane.

An example is a block of code whose fence says so: `python example` or `cpp example`. It is graded as a practice run is:
in the sandbox, beside an oracle in torch, with guard bands and the search for races.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest

from autograder import languages
from autograder.assignment import EXTENSIONS, load_assignment
from autograder.contract import GradeRequest, Lane, Language, Mode, Verdict, Work
from autograder.judge import References, grade
from autograder.sandbox.process import ProcessSandbox
from tests.golden.rungs import ASSIGNMENTS, REFERENCE, SLUGS

_EXAMPLE = re.compile(r"^```(python|cpp) example\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ENDINGS = {"python": ".py", "cpp": ".cu"}


@dataclass(frozen=True)
class Example:
    """A kernel that a handout shows."""

    slug: str
    language: Language
    source: str


def _shown(slug: str) -> list[Example]:
    text = (ASSIGNMENTS / slug / "README.md").read_text(encoding="utf-8")
    return [Example(slug, _language(_ENDINGS[name], source), source) for name, source in _EXAMPLE.findall(text)]


def _language(ending: str, source: str) -> Language:
    record = languages.of_file(f"example{ending}", source)
    assert record is not None
    return Language(record.id)


EXAMPLES = [example for slug in SLUGS for example in _shown(slug)]


@pytest.mark.quick
@pytest.mark.parametrize("slug", dict.fromkeys(example.slug for example in EXAMPLES))
def test_a_handout_shows_one_example_in_each_language_that_can_be_tried_here(slug: str) -> None:
    rung, example = load_assignment(ASSIGNMENTS / slug), load_assignment(REFERENCE / slug / "example")
    shown = [one.language for one in EXAMPLES if one.slug == slug]
    tried = [language for language in rung.languages if languages.of(language).cpu_loader]
    assert sorted(shown) == sorted(tried) == sorted(example.languages)
    assert example.entry not in {part.entry for part in rung.parts}, "an example is another exercise than the rung's"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: f"{example.slug}-{example.language}")
def test_an_example_is_right(example: Example, sandbox: ProcessSandbox, references: References) -> None:
    filename = f"example.{EXTENSIONS[example.language]}"
    request = GradeRequest("example", "", example.language, Lane.cpu, Mode.run, example.source, filename, Work.check)
    folder = REFERENCE / example.slug / "example"
    result = grade(request, assignment_folder=folder, reference_folder=None, sandbox=sandbox, references=references)
    assert result.verdict is Verdict.passed, (result.explanation, result.error, result.cases)
    assert result.launches
