"""What each clue sees and says, that it is read easily, and which case it picks."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

from autograder import assignment as rungs
from autograder.assignment import Assignment, Case, Layout, load_assignment
from autograder.contract import (
    CaseResult,
    FindingKind,
    GradeRequest,
    Lane,
    Language,
    Mismatch,
    Mode,
    Pattern,
    StudentError,
    Verdict,
)
from autograder.judge.correctness import clues, explain, facts, summary
from autograder.judge.correctness.clues import CaseRun, Kind, Scene
from autograder.judge.correctness.facts import Facts, Outside, Values
from autograder.misconceptions import Misconception, load_misconceptions

ROOT = Path(__file__).resolve().parents[4]
ASSIGNMENT: Assignment = load_assignment(ROOT / "assignments" / "residual_norm")
REQUEST = GradeRequest("residual_norm", "", Language.triton, Lane.cpu, Mode.run, "", "residual_norm.py")
MOST_WORDS = 160
HARDEST = 10.0
"""Flesch-Kincaid grade: what somebody who has been at school for so many years reads."""
WRONG = Mismatch("out", (4, 8), "float32", 3, 32, Pattern.scattered, "3 elements", (0, 0), "1", "2", "0")


def case(name: str, cols: int = 64, **more: Any) -> Case:
    return Case(name, {"rows": 4, "cols": cols}, more.pop("dtype", "float32"), category=f"kind of {name}", **more)


def seen(one: Case, known: Facts | None = None, **more: Any) -> CaseRun:
    """A case that failed where something is known of it."""
    verdict = Verdict.passed if known is None else more.pop("verdict", Verdict.wrong_answer)
    found = None if known is None else more.pop("mismatch", WRONG)
    text = more.pop("message", explain.sentence(WRONG) if found else "")
    result = CaseResult(
        one.name, one.category, "group", one.visibility, ranked=False, verdict=verdict, message=text, mismatch=found,
        error=more.pop("error", None),
    )  # fmt: skip
    return CaseRun(one, result, known or facts.NONE)


def wrong(**more: Any) -> Facts:
    return Facts((Values("out", (4, 8), more.pop("dtype", "float32"), 3, 32, **more),))


def scene(*cases: CaseRun, source: str = "", misconceptions: tuple[Misconception, ...] = ()) -> Scene:
    return Scene(ASSIGNMENT, cases, source, misconceptions)


PASSED = (seen(case("a", 32)), seen(case("b", 128, distribution="other")), seen(case("c", 256, distribution="third")))
OUTSIDE = {"verdict": Verdict.illegal_access, "mismatch": None, "message": "3 elements were written outside `out`."}
RACE = {"mismatch": None, "error": StudentError("DataRace", "a data race")}
PADDED = {"out": Layout(pad=3)}
BARRIER = dataclasses.replace(
    WRONG, where="all of them were read before anything was written there, as without a `__syncthreads()`"
)
NOTHING = dataclasses.replace(WRONG, pattern=Pattern.untouched)
SCENES: dict[str, list[Scene]] = {
    "misconception": [
        scene(
            seen(case("d"), wrong(answers=frozenset({"known"}))),
            misconceptions=(Misconception("known", "It is known.", "Look it up.", output="out", answer="out"),),
        )
    ],
    "barrier": [scene(seen(case("d"), wrong(), mismatch=BARRIER))],
    "order": [scene(*PASSED, seen(case("d"), Facts(order=True)))],
    "race": [
        scene(seen(case("d"), facts.NONE, message="thread (1,0,0) and thread (2,0,0)", **RACE)),
        scene(seen(case("d"), facts.NONE, message="program (1,0,0) and program (2,0,0)", **RACE)),
    ],
    "unset": [scene(seen(case("d"), Facts(unset="out")))],
    "nothing written": [
        scene(seen(case("d"), wrong(), mismatch=NOTHING)),
        # Of a case that was stopped it is not known what was written.
        scene(
            seen(case("d"), wrong(), mismatch=NOTHING),
            seen(case("e", layout=PADDED), Facts(outside=Outside("out", (4, 61), 0, 0, 9)), **OUTSIDE),
        ),
    ],
    "strides": [scene(*PASSED, seen(case("d", layout=PADDED), wrong()))],
    "alignment": [scene(*PASSED, seen(case("d", layout={"out": Layout(offset=1)}), wrong()))],
    "formula": [scene(seen(case("d"), wrong(formula=name))) for name in facts.FORMULAS],
    "sums": [scene(seen(case("d"), wrong(sums="first 30 of 31")))],
    "written outside": [
        scene(seen(case("d"), Facts(outside=Outside("out", (4, 61), *where)), **OUTSIDE))
        for where in ((0, 3, 0), (0, 5, 0), (1, 0, 0), (0, 0, 9))
    ],
    "read outside": [scene(seen(case("d"), wrong(outside=2)))],
    "nan": [scene(seen(case("d"), wrong(nan=1))), scene(seen(case("d"), wrong(infinite=3)))],
    "never written": [
        scene(seen(case("d"), wrong(unwritten="columns 6–7 (the last tile of 2)"))),
        scene(seen(case("d"), wrong(unwritten="256 of every 512 elements, from index 256 on", skipped=True))),
    ],
    "multiple": [scene(*PASSED, seen(case("d", 65), wrong()), seen(case("e", 97), wrong()))],
    "power of two": [scene(*PASSED, seen(case("d", 96), wrong()), seen(case("e", 160), wrong()))],
    "from a size": [scene(*PASSED, seen(case("d", 4096), wrong()))],
    "factor": [
        scene(seen(case("d"), wrong(error=0.5, factor=0.5))),
        *(scene(seen(case("d"), wrong(error=0.5, factors=line))) for line in ("row", "column")),
        *(scene(seen(case("d"), wrong(error=0.5, differences=line))) for line in ("row", "column")),
    ],
    "narrow": [
        scene(seen(case("d"), wrong(narrow="float16"))),
        scene(seen(case("d"), wrong(error=2**-11))),
        scene(seen(case("d"), wrong(error=2**-8)), source="tl.dot(a, b)"),
    ],
    "rounding": [scene(seen(case("d"), wrong(error=2**-18)))],
    "type": [scene(*PASSED, seen(case("d", 64, dtype="float16"), wrong(dtype="float16")))],
    "distribution": [scene(*PASSED, seen(case("d", 64, distribution="large"), wrong()))],
    "access": [scene(seen(case("d"), facts.NONE, verdict=Verdict.illegal_access, mismatch=None, message="Outside."))],
    "outputs": [scene(seen(case("d"), wrong()))],
    "some": [scene(seen(case("d"), Facts(tuple(Values(name, (1,), "float32", 1, 1) for name in ("s", "out")))))],
}


@pytest.mark.parametrize("name", [clue.name for clue in clues.TABLE])
def test_every_clue_of_the_table_is_found_before_what_says_less(name: str) -> None:
    for one in SCENES[name]:
        found = clues.first_of(one)
        assert found is not None
        assert found[0].name == name, found


@pytest.mark.parametrize("name", [clue.name for clue in clues.TABLE])
def test_a_headline_names_its_case_is_short_and_ends_with_a_step(name: str) -> None:
    for one in SCENES[name]:
        told = summary.headline([found.result for found in one.seen], REQUEST, one)
        assert told.text.startswith(f"{summary.NAMES[one.failed[0].result.verdict or Verdict.passed]} in case `d`. ")
        assert told.case == "d"
        assert len(told.text.split()) <= MOST_WORDS


def test_the_most_telling_case_is_told_and_not_the_first() -> None:
    first, telling = seen(case("one", 1), wrong()), seen(case("long", 20000), wrong(unwritten="columns 16384–19999"))
    told = summary.headline([first.result, telling.result], REQUEST, scene(first, telling))
    assert told.case == "long"
    assert "columns 16384–19999 of every row" in told.text


def test_a_passed_case_of_one_element_does_not_hide_a_pattern() -> None:
    lucky = seen(Case("one", {"rows": 1, "cols": 1}, "float32"))
    found = clues.first_of(
        scene(lucky, *PASSED, *(seen(case(name, size), wrong()) for name, size in (("d", 65), ("e", 97))))
    )
    assert found is not None
    assert found[1].says == "It fails exactly where `cols` is not a multiple of 4."


def test_a_number_of_the_source_is_the_one_that_is_told() -> None:
    found = clues.first_of(scene(*PASSED, seen(case("d", 65), wrong()), source="BLOCK = 32"))
    assert found is not None
    assert found[1].says == "It fails exactly where `cols` is not a multiple of 32."


@pytest.mark.parametrize(
    "change",
    [{"fails": ("other",)}, {"passes": ("d",)}, {"output": "s"}, {"answer": "another"}, {"clue": "nan"}],
    ids=lambda change: next(iter(change)),
)
def test_a_misconception_asks_for_all_that_it_names(change: dict[str, Any]) -> None:
    cases = (*PASSED, seen(case("other")), seen(case("d"), wrong(answers=frozenset({"known"}), error=0.5, factor=2.0)))
    known = Misconception("known", "Known.", "Do.", fails=("d",), passes=("a",), output="out", clue="factor")
    assert clues.first_of(scene(*cases, misconceptions=(known,)))[1].says == "Known."  # type: ignore[index]
    renamed = {"name": "another"} if "answer" in change else {}
    told = clues.first_of(scene(*cases, misconceptions=(dataclasses.replace(known, **(change | renamed)),)))
    assert told is None or told[1].says != "Known."


@pytest.mark.parametrize(("size", "beside"), [("cols", True), ("rows", False), ("", False)])
def test_beside_a_misconception_no_other_size_is_named(size: str, *, beside: bool) -> None:
    cases = (*PASSED, seen(case("d", 65), wrong()), seen(case("e", 97), wrong()))
    known = Misconception("known", "Known.", "Do.", fails=("d",), size=size)
    told = summary.headline([one.result for one in cases], REQUEST, scene(*cases, misconceptions=(known,)))
    assert "Known." in told.text
    assert ("`cols` is not a multiple of" in told.text) is beside


def test_staff_are_told_of_formulas_that_cannot_be_worked_out() -> None:
    faulty = seen(case("d"), wrong(faults={"half": "TypeError: 'int' object is not callable"}))
    (finding,) = summary.faulty_formulas((*PASSED, faulty))
    assert (finding.kind, finding.evidence) == (
        FindingKind.faulty_formula, {"half": "TypeError: 'int' object is not callable"}
    )  # fmt: skip
    assert "“half”" in finding.summary
    assert summary.faulty_formulas(PASSED) == ()


def test_a_hidden_case_that_fails_alone_gets_no_clue() -> None:
    hidden = CaseResult("secret 1: n=3", "secret", "group", rungs.Visibility.hidden, ranked=False,
                        verdict=Verdict.wrong_answer, message="3 of 9.", mismatch=WRONG)  # fmt: skip
    told = summary.headline([*(one.result for one in PASSED), hidden], REQUEST, scene(*PASSED))
    assert told == summary.Headline(
        "Wrong answer in a hidden case (secret). "
        "Its sizes and values stay hidden: try your kernel on sizes of that kind."
    )


# --- words -----------------------------------------------------------------------------------------------------------


def sentences() -> list[str]:
    """Every sentence that a clue, a pattern or an author's misconception can say."""
    texts = list(explain.HINTS.values())
    for found in (clues.first_of(one) for scenes in SCENES.values() for one in scenes):
        texts += [found[1].says, found[1].step] if found else []
    for slug in rungs.slugs(ROOT / "assignments"):
        folder = ROOT / "assignments" / slug
        for one in load_misconceptions(folder, load_assignment(folder)):
            texts += [one.says, one.step]
    return sorted({part for text in texts for part in re.split(r"(?<=[.?:;])\s+", text) if part})


def syllables(word: str) -> int:
    """Groups of vowels; a silent e at the end is none."""
    return max(1, len(re.findall(r"[aeiouy]+", re.sub(r"(?<![aeiouyl])e$", "", word))))


def reading_grade(text: str) -> float:
    """Flesch and Kincaid's grade (1975): 0.39 words a sentence + 11.8 syllables a word - 15.59; code is a word."""
    plain = re.sub(r"`[^`]*`", "it", text.lower())
    words = re.findall(r"[a-z']+", plain)
    return 0.39 * len(words) + 11.8 * sum(map(syllables, words)) / max(1, len(words)) - 15.59


@pytest.mark.parametrize("text", sentences())
def test_a_sentence_is_read_easily(text: str) -> None:
    assert reading_grade(text) <= HARDEST


def test_the_grade_tells_easy_from_hard() -> None:
    assert reading_grade("Load the row once more.") < 3
    assert (
        reading_grade("Characteristic discontinuities necessitate reconsideration of tessellation methodologies.") > 15
    )


def test_kinds_are_told_beside_each_other() -> None:
    one = scene(*PASSED, seen(case("d", layout=PADDED), wrong(outside=3)))
    told = summary.headline([found.result for found in one.seen], REQUEST, one).text
    assert "Only cases with padded rows fail" in told
    assert "your kernel reads them" in told
    assert {clue.kind for clue in clues.TABLE} == set(Kind)


def test_a_size_that_may_be_zero_is_told_of_too() -> None:
    """Such as a window, of which 0 means none."""
    passed = [seen(case(name, 0, distribution=name)) for name in "abc"]
    found = clues._from_size(scene(*passed, *(seen(case(f"d{cols}", cols), wrong()) for cols in (40, 64, 96))))
    assert found is not None
    assert found.says == "It passes where `cols` is 0, and fails from 40 on."


def test_a_clue_that_breaks_costs_nobody_the_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Scene) -> None:
        raise ZeroDivisionError

    failed = scene(*PASSED, seen(case("d", 512), wrong()))
    table = [dataclasses.replace(one, find=broken) for one in clues.TABLE]
    monkeypatch.setattr(clues, "TABLE", tuple(table))
    assert clues.first_of(failed) is None
    monkeypatch.undo()
    assert clues.first_of(failed) is not None
