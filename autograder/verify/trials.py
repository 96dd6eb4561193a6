"""Every kernel in an assignment's folders, with the verdict it must get, and how it fared."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from autograder import languages
from autograder.assignment import EXTENSIONS, GIVEN, READING, Assignment, load_assignment, load_mutants
from autograder.contract import (
    FindingKind,
    GradeRequest,
    GradeResult,
    Lane,
    Language,
    Measurement,
    Mode,
    Verdict,
    Visibility,
    Work,
)
from autograder.counters import doubt_of
from autograder.judge import References, grade
from autograder.misconceptions import load_misconceptions
from autograder.sandbox import Sandbox
from autograder.verify.gaps import uses_a_library, verdict_in


class Kind(StrEnum):
    """What a kernel is to its assignment."""

    solution = "solution"
    starter = "starter"
    given = "given"
    milestone = "milestone"
    submission = "submission"
    mutant = "mutant"


@dataclass(frozen=True)
class Trial:
    """One kernel and what has to come of it.

    Attributes:
        killed_by: a public case or a family of hidden cases that must be among those that fail; `""` for any.
        shown: staff have to be shown that something else than a kernel of its own does the work.
        says: what the explanation has to say of it, a misconception's sentence; `""` for anything.
    """

    slug: str
    kind: Kind
    name: str
    language: Language
    source: str
    verdict: Verdict
    killed_by: str = ""
    shown: bool = False
    says: str = ""


_FIRST = "1_"
"""How the name begins of the milestone that everybody comes to first."""


@dataclass(frozen=True)
class Outcome:
    """How a trial went.

    Attributes:
        failed: public cases by name and families of hidden cases by category that did not pass, in order.
        measurements: the ranked cases, beside the staff kernel; none where a case did not pass.
        deviation: how it differs from the plan, in one sentence; `""` if it does not.
    """

    trial: Trial
    verdict: Verdict
    failed: tuple[str, ...]
    findings: tuple[FindingKind, ...]
    measurements: tuple[Measurement, ...]
    seconds: float
    deviation: str

    @property
    def as_planned(self) -> bool:
        """Whether it got what it must get."""
        return not self.deviation


def plan(assignment_folder: Path, reference_folder: Path, *, lane: Lane = Lane.cpu) -> tuple[Trial, ...]:
    """Every kernel of the assignment that a lane runs: solutions, starters, given, milestones, submissions, mutants.

    Raises:
        ManifestError: a manifest cannot be read.
    """
    assignment = load_assignment(assignment_folder)
    slug = assignment.slug
    return tuple(
        trial
        for language in assignment.languages
        if languages.of(language).loader(lane)
        for trial in (
            *_files(slug, language, assignment_folder, reference_folder),
            *_mutants(assignment, language, assignment_folder, reference_folder),
        )
    )


def run(
    trial: Trial,
    assignment_folder: Path,
    reference_folder: Path,
    sandbox: Sandbox,
    references: References | None = None,
    *,
    lane: Lane = Lane.cpu,
    work: Work = Work.all,
    public_only: bool = False,
) -> Outcome:
    """Grade a trial as a submission on a lane. Starters meet the public cases only: they are wrong at once.

    Args:
        work: `Work.check` leaves the times out, which say nothing about a verdict.
        public_only: leave the hidden cases out too, where a public one is known to decide.
    """
    request = GradeRequest(
        slug=trial.slug,
        bundle="",
        language=trial.language,
        lane=lane,
        mode=Mode.run if public_only or trial.kind is Kind.starter else Mode.submission,
        source=trial.source,
        filename=f"{trial.slug}.{EXTENSIONS[trial.language]}",
        work=work,
    )
    started = time.monotonic()
    result = grade(
        request,
        assignment_folder=assignment_folder,
        reference_folder=reference_folder,
        sandbox=sandbox,
        references=references,
    )
    return judged(trial, result, time.monotonic() - started)


def judged(trial: Trial, result: GradeResult, seconds: float) -> Outcome:
    """Hold a result against the plan."""
    failed = [case for case in result.cases if case.verdict not in {Verdict.passed, None}]
    hidden = Visibility.hidden
    names = tuple(dict.fromkeys(case.category if case.visibility is hidden else case.name for case in failed))
    kinds = tuple(finding.kind for finding in result.findings)
    deviation = _deviation(trial, result, names, kinds)
    return Outcome(trial, result.verdict, names, kinds, result.measurements, seconds, deviation)


def _deviation(trial: Trial, result: GradeResult, failed: tuple[str, ...], findings: tuple[FindingKind, ...]) -> str:
    if result.verdict is not trial.verdict:
        return f"got {result.verdict} instead of {trial.verdict}: {result.explanation}"
    if trial.killed_by and trial.killed_by not in failed:
        return f"was not killed by {trial.killed_by!r}, but by {', '.join(failed)}"
    if trial.says not in result.explanation or FindingKind.faulty_formula in findings:
        faults = [one.summary for one in result.findings if one.kind is FindingKind.faulty_formula]
        return " ".join([*faults, f"is not told as its misconception, but: {result.explanation}"])
    if trial.shown and not findings:
        return "no finding tells staff that a library did the exercise"
    if trial.verdict is Verdict.passed and not trial.shown and findings:
        return f"an honest kernel was reported to staff: {', '.join(findings)}"
    return _counted_otherwise(trial, result)


def _counted_otherwise(trial: Trial, result: GradeResult) -> str:
    """How what was counted differs from the plan: the staff kernel earns all points by it, the first milestone not."""
    asked = [one for one in result.requirements if one.points]
    missed = [one for one in asked if not one.met]
    if trial.kind is Kind.solution and missed:
        return f"the staff kernel does not meet {missed[0].name!r} ({missed[0].rule}): {missed[0].message}"
    if trial.kind is Kind.milestone and trial.name.startswith(_FIRST) and asked and not missed:
        return "the first milestone earns all points that counters give"
    if trial.verdict is Verdict.passed and not trial.shown and (doubt := doubt_of(result)):
        return f"an honest kernel's points by counters would wait for staff: {doubt}"
    return ""


def _files(slug: str, language: Language, assignment_folder: Path, reference_folder: Path) -> Iterator[Trial]:
    def trial(kind: Kind, path: Path, verdict: Verdict, *, shown: bool = False) -> Trial:
        source = path.read_text(encoding="utf-8", errors="surrogateescape")
        return Trial(slug, kind, path.stem, language, source, verdict, shown=shown)

    suffix = EXTENSIONS[language]
    yield trial(Kind.solution, reference_folder / "solutions" / f"{language}.{suffix}", Verdict.passed)
    starters = assignment_folder / "starters"
    yield trial(Kind.starter, starters / f"{language}.{suffix}", Verdict.wrong_answer)
    reads = languages.of_file(READING)
    if reads is languages.of(language) and (starters / READING).is_file():
        yield trial(Kind.starter, starters / READING, Verdict.wrong_answer)
    for path in languages.files_in(assignment_folder / GIVEN, language):
        yield trial(Kind.given, path, Verdict.passed)
    for path in languages.files_in(assignment_folder / "milestones", language):
        yield trial(Kind.milestone, path, Verdict.passed)
    for path in languages.files_in(reference_folder / "submissions", language):
        if (verdict := verdict_in(path.stem)) is not None:
            yield trial(Kind.submission, path, verdict, shown=uses_a_library(path.stem))


def _mutants(
    assignment: Assignment, language: Language, assignment_folder: Path, reference_folder: Path
) -> Iterator[Trial]:
    path = reference_folder / "solutions" / f"{language}.{EXTENSIONS[language]}"
    source = path.read_text(encoding="utf-8")
    says = {one.name: one.says for one in load_misconceptions(assignment_folder, assignment)} | {"": ""}
    for mutant in load_mutants(reference_folder):
        if mutant.language is language:
            edited = source.replace(mutant.find, mutant.replace)
            # A name that is none is a gap, which `gaps` tells of.
            told, verdict = says.get(mutant.misconception, ""), Verdict(mutant.verdict)
            yield Trial(
                assignment.slug, Kind.mutant, mutant.name, language, edited, verdict, mutant.killed_by, says=told
            )
