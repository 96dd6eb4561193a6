"""What an assignment's two folders lack, found by reading them. Standard library only."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from autograder import languages
from autograder.assignment import (
    EXTENSIONS,
    READING,
    Assignment,
    Case,
    Draw,
    Family,
    Mutant,
    load_assignment,
    load_families,
    load_mutants,
    slugs,
)
from autograder.contract import Lane, Language, Verdict
from autograder.misconceptions import FILE, load_misconceptions
from autograder.quiz import load_quiz

SECTIONS = (
    "The idea",
    "What the hardware does",
    "The naive way",
    "What to write",
    "Hints",
    "What is graded",
    "Common mistakes",
    "References",
)
"""Headings (`## …`) that every handout has, in this order."""

STAFF_FILES = {
    "notes.md": "there are no notes on what was measured",
    "facts.py": "nothing says how to count its operations, and what plain torch answers",
}
WORDS = (800, 1500)
MUTANTS = 6
HONEST = 2
QUESTIONS = (3, 6)
_TEMPLATES = Path(__file__).parent / "new_rung"
_FENCED = re.compile(r"```.*?```", re.DOTALL)
_FORMULA = re.compile(r"\$[^$]+\$")
_PICTURE = re.compile(r"```text\n|!\[|<svg\b")
_POINTED_OUT = 100
"""Smaller numbers stand in every text."""
_TELLING = 40
"""Characters: a shorter sentence may stand in two texts by chance."""


@dataclass(frozen=True)
class Gap:
    """Something that is missing or wrong, where, and what to do."""

    where: str
    problem: str


def find(assignment_folder: Path, reference_folder: Path) -> tuple[Gap, ...]:
    """Everything that is missing in the two folders.

    Raises:
        ManifestError: a manifest cannot be read.
    """
    assignment = load_assignment(assignment_folder)
    families = load_families(reference_folder)
    return (
        *handout(assignment_folder),
        *_untouched(assignment_folder / "README.md", "assignment"),
        *_prerequisites(assignment, assignment_folder),
        *_untouched(reference_folder / "notes.md", "staff"),
        *_quiz(assignment, assignment_folder, reference_folder),
        *_cases(assignment, families),
        *_files(assignment, assignment_folder, reference_folder),
        *_mutants(assignment, families, reference_folder),
        *_misconceptions(assignment, assignment_folder, reference_folder),
        *leaks(assignment, families, assignment_folder, reference_folder),
    )


def handout(folder: Path) -> Iterator[Gap]:
    """What the handout lacks."""
    path = folder / "README.md"
    if not path.is_file():
        yield Gap("README.md", "there is no handout")
        return
    text = path.read_text(encoding="utf-8")
    headings = re.findall(r"^## (.+?)\s*$", text, re.MULTILINE)
    for section in SECTIONS:
        if section not in headings:
            yield Gap("README.md", f"the section '## {section}' is missing")
    if (found := [heading for heading in headings if heading in SECTIONS]) != sorted(found, key=SECTIONS.index):
        yield Gap("README.md", f"the sections stand in another order than {', '.join(SECTIONS)}")
    if not WORDS[0] <= (count := words(text)) <= WORDS[1]:
        yield Gap("README.md", f"has {count} words; a handout has {WORDS[0]} to {WORDS[1]}")
    if "<details>" not in text:
        yield Gap("README.md", "no hint unfolds (<details>)")
    if not _PICTURE.search(text):
        yield Gap("README.md", "there is no picture: a diagram in a block of ```text, or an image")
    if not _FORMULA.search(_FENCED.sub("", text)):
        yield Gap("README.md", "no formula says what is computed ($…$)")


def _untouched(path: Path, begun_in: str) -> Iterator[Gap]:
    """What still stands in a text as `ladder assignments new` wrote it, to say what belongs there."""
    template = (_TEMPLATES / begun_in / f"{path.name}.template").read_text(encoding="utf-8")
    text = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    # Headings and hints keep their form, and a line with a name in it is filled in.
    for line in template.splitlines():
        if len(line) >= _TELLING and line[0] not in "#<" and "@" not in line and line in text:
            yield Gap(path.name, f"still says {line!r}, as it was begun")


def _prerequisites(assignment: Assignment, folder: Path) -> Iterator[Gap]:
    """Those that no rung beside this one is; a rung that stands alone may come after any."""
    others = [slug for slug in slugs(folder.parent) if slug != assignment.slug]
    for slug in assignment.prerequisites if others else ():
        if slug not in others:
            near = difflib.get_close_matches(slug, others, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            yield Gap("assignment.toml", f"the prerequisite {slug!r} is no other rung here.{hint}")


def words(text: str) -> int:
    """Words of prose: without code blocks, formulas and tags."""
    prose = re.sub(r"```.*?```|\$\$.*?\$\$|\$[^$\n]*\$|</?\w[^<>\n]*>", " ", text, flags=re.DOTALL)
    return len(re.findall(r"\w[\w'-]*", prose))


def leaks(
    assignment: Assignment, families: tuple[Family, ...], assignment_folder: Path, reference_folder: Path
) -> Iterator[Gap]:
    """What published files give away of the staff's: a number from which hidden sizes are drawn, or a staff kernel."""
    public = {value for case in assignment.cases for value in case.size.values()}
    secret = {number for family in families for number in _numbers(family)} - public
    staff = {_normal(path.read_text(encoding="utf-8")) for path in (reference_folder / "solutions").glob("*.*")}
    for path in sorted(path for path in assignment_folder.rglob("*") if path.suffix in {".md", ".py", ".cu"}):
        name, text = path.relative_to(assignment_folder).as_posix(), path.read_text(encoding="utf-8")
        told = secret & {int(number) for number in re.findall(r"(?<![\w.])\d{3,9}(?![\w.]*\w)", text)}
        for number in sorted(told):
            yield Gap(name, f"tells {number}, from which hidden cases are drawn")
        if "hidden.toml" in text or f"reference/{assignment.slug}" in text:
            yield Gap(name, "speaks of the staff's folder")
        if _normal(text) in staff:
            yield Gap(name, "is the staff's solution")


def _numbers(family: Family) -> Iterator[int]:
    """Numbers that a family's sizes come from and that nobody writes by chance (powers of two everybody does)."""
    for draw in family.size.values():
        for number in (*draw.choose, *draw.near, *draw.between, *draw.prime):
            if number >= _POINTED_OUT and number & (number - 1):
                yield number


def _normal(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def _quiz(assignment: Assignment, assignment_folder: Path, reference_folder: Path) -> Iterator[Gap]:
    quiz = load_quiz(assignment_folder, reference_folder)
    if not QUESTIONS[0] <= (count := len(quiz.questions)) <= QUESTIONS[1]:
        yield Gap("quiz.toml", f"has {count} questions; a quiz has {QUESTIONS[0]} to {QUESTIONS[1]}")
    if quiz.questions and not assignment.points.quiz > 0:
        yield Gap("assignment.toml", "the quiz is worth nothing: give points.quiz a small share")
    published = {
        path.relative_to(assignment_folder).as_posix(): _normal(path.read_text(encoding="utf-8"))
        for path in sorted(assignment_folder.rglob("*"))
        if path.suffix in {".md", ".py", ".cu", ".toml", ".svg"}
    }
    for key in quiz.keys:
        for name, text in published.items():
            if any(sentence in text for sentence in _sentences(key.explanation)):
                yield Gap(name, f"repeats a sentence of the explanation of {key.question!r}")


def _sentences(text: str) -> Iterator[str]:
    """Those that are long enough to be the same by no chance."""
    for sentence in re.split(r"(?<=[.?!])\s+", _normal(text)):
        if len(sentence) >= _TELLING:
            yield sentence


def _cases(assignment: Assignment, families: tuple[Family, ...]) -> Iterator[Gap]:
    for lane in (Lane(name) for name in assignment.lanes):
        cases = assignment.cases_for(lane)
        if assignment.lanes[lane].ranks and not any(case.ranked for case in cases):
            yield Gap("assignment.toml", f"the lane {lane} ranks and has no ranked case")
        if not any(not family.lanes or lane in family.lanes for family in families):
            yield Gap("hidden.toml", f"no family of hidden cases runs on the lane {lane}")
    for kind, seen in (("of size 1", _has_one), ("with an odd size", _has_odd)):
        if not any(seen(case) for case in assignment.cases):
            yield Gap("assignment.toml", f"no public case {kind}")
    if not any(_misaligned(family.offset) for family in families):
        yield Gap("hidden.toml", "no family with misaligned tensors")
    strided = any(argument.role == "stride" for argument in assignment.arguments)
    if strided and not any(family.pad for family in families):
        yield Gap("hidden.toml", "the entry takes strides, and no family pads rows")


def _has_one(case: Case) -> bool:
    return set(case.size.values()) == {1}


def _has_odd(case: Case) -> bool:
    return any(value > 1 and value % 2 for value in case.size.values())


def _misaligned(draw: Draw | None) -> bool:
    return draw is not None and any((*draw.choose, *draw.near, *draw.between, *draw.prime))


def _files(assignment: Assignment, assignment_folder: Path, reference_folder: Path) -> Iterator[Gap]:
    for name, lacking in STAFF_FILES.items():
        if not (reference_folder / name).is_file():
            yield Gap(name, lacking)
    if not assignment.library_operations:
        yield Gap("assignment.toml", "library_operations is empty: what would do the exercise by itself?")
    if not (assignment_folder / "starters" / READING).is_file():
        yield Gap(f"starters/{READING}", "is missing")
    for language in assignment.languages:
        suffix = EXTENSIONS[language]
        for path in (
            assignment_folder / "starters" / f"{language}.{suffix}",
            reference_folder / "solutions" / f"{language}.{suffix}",
        ):
            if not path.is_file():
                yield Gap(f"{path.parent.name}/{path.name}", "is missing")
        ranks = any(policy.ranks for policy in assignment.lanes.values())
        if ranks and not languages.files_in(assignment_folder / "milestones", language):
            yield Gap("milestones", f"there is none in {language}")
        yield from _submissions(language, reference_folder / "submissions")


def _submissions(language: Language, folder: Path) -> Iterator[Gap]:
    names = [path.stem for path in languages.files_in(folder, language)]
    for name in names:
        if verdict_in(name) is None:
            yield Gap(f"submissions/{name}", "does not start with the verdict it must get")
    honest = [name for name in names if verdict_in(name) is Verdict.passed and not uses_a_library(name)]
    if len(honest) < HONEST:
        yield Gap("submissions", f"{len(honest)} honest variants in {language} pass; at least {HONEST} must")
    for verdict in (Verdict.wrong_answer, Verdict.compile_error, Verdict.runtime_error):
        if not any(verdict_in(name) is verdict for name in names):
            yield Gap("submissions", f"none in {language} gets {verdict}")
    if languages.of(language).calls_libraries and not any(uses_a_library(name) for name in names):
        what = "with a library call (passed_library_call) or on the host (passed_host_code)"
        yield Gap("submissions", f"none in {language} does the exercise {what}")


def verdict_in(name: str) -> Verdict | None:
    """The verdict that a submission's file name starts with."""
    fitting = (verdict for verdict in Verdict if name == verdict or name.startswith(f"{verdict}_"))
    return next(fitting, None)


def uses_a_library(name: str) -> bool:
    """Whether a submission is named for doing the exercise without a kernel, which staff have to be shown."""
    return "library_call" in name or "host_code" in name


def _mutants(assignment: Assignment, families: tuple[Family, ...], reference_folder: Path) -> Iterator[Gap]:
    mutants = load_mutants(reference_folder)
    known = {case.name for case in assignment.cases} | {family.category for family in families}
    for language in assignment.languages:
        mine = [mutant for mutant in mutants if mutant.language is language]
        if len(mine) < MUTANTS:
            yield Gap("mutants.toml", f"has {len(mine)} mutants in {language}; there have to be {MUTANTS}")
        path = reference_folder / "solutions" / f"{language}.{EXTENSIONS[language]}"
        source = path.read_text(encoding="utf-8") if path.is_file() else ""
        for mutant in mine:
            yield from _mutant(mutant, source, known)


def _mutant(mutant: Mutant, source: str, known: set[str]) -> Iterator[Gap]:
    where = f"mutants.toml, {mutant.name!r}"
    if (count := source.count(mutant.find)) != 1:
        yield Gap(where, f"what it looks for occurs {count} times in the staff kernel, not once")
    if mutant.killed_by not in known:
        yield Gap(where, f"{mutant.killed_by!r} is neither a public case nor a family of hidden cases")


def _misconceptions(assignment: Assignment, assignment_folder: Path, reference_folder: Path) -> Iterator[Gap]:
    """Mutants and misconceptions that do not find each other, and sections that the handout has not."""
    known = {one.name: one for one in load_misconceptions(assignment_folder, assignment)}
    shown = {mutant.misconception for mutant in load_mutants(reference_folder)} - {""}
    anchors = {section.lower().replace(" ", "-") for section in SECTIONS}
    for name in sorted(shown - set(known)):
        yield Gap("mutants.toml", f"{name!r} is no misconception of {FILE}")
    for name, one in known.items():
        if name not in shown:
            yield Gap(FILE, f"no mutant shows {name!r}")
        if one.section not in anchors:
            yield Gap(FILE, f"{name!r}: the handout has no section {one.section!r}")
