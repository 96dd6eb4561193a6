"""What the vocabulary itself promises: closed, frozen, and reduced for students."""

from __future__ import annotations

import dataclasses
import inspect
from enum import StrEnum

import pytest

from autograder import contract
from autograder.contract import (
    CaseResult,
    Event,
    Finding,
    FindingKind,
    Frame,
    GradeResult,
    Mismatch,
    Pattern,
    Phase,
    PhaseStarted,
    StudentError,
    Verdict,
    Visibility,
)

CLASSES = [
    value for value in vars(contract).values() if inspect.isclass(value) and value.__module__ == contract.__name__
]
FRAMES = (Frame(1, "outer", "inner()"), Frame(7, "inner", "raise ValueError(n)"))
WRONG = Mismatch("out", (9,), "float32", 1, 9, Pattern.tail, "everything from index 8 on", (8,), "1", "2", "0")


def case(visibility: Visibility, verdict: Verdict | None = Verdict.wrong_answer) -> CaseResult:
    error = StudentError("ValueError", "n is 4099", FRAMES)
    return CaseResult(
        "odd 1: n=4099", "odd sizes", "hidden", visibility, False, verdict, "n is 4099", WRONG, error, 1.5
    )


def test_every_class_is_a_frozen_dataclass_or_a_closed_enum() -> None:
    for cls in CLASSES:
        if not issubclass(cls, StrEnum):
            assert cls.__dataclass_params__.frozen, cls


def test_every_enum_names_itself_by_its_value() -> None:
    for cls in CLASSES:
        if issubclass(cls, StrEnum):
            assert all(member.name == member.value for member in cls)


def test_a_public_case_is_shown_whole() -> None:
    shown = case(Visibility.public)
    assert shown.for_student() is shown


@pytest.mark.parametrize("verdict", [*Verdict, None])
def test_of_a_hidden_case_only_category_and_verdict_remain(verdict: Verdict | None) -> None:
    shown = case(Visibility.hidden, verdict).for_student()
    assert (shown.name, shown.category, shown.verdict) == ("odd sizes", "odd sizes", verdict)
    assert (shown.mismatch, shown.seconds) == (None, None)
    assert "4099" not in str(shown)
    assert shown.message
    assert shown.error == StudentError("ValueError", "", (Frame(7, "", "raise ValueError(n)"),))


def test_of_a_hidden_case_no_name_that_the_student_chose_is_shown() -> None:
    named = dataclasses.replace(case(Visibility.hidden), error=StudentError("N4099", "", ()))
    assert named.for_student().error == StudentError("an exception", "", ())


def test_reducing_twice_changes_nothing_more() -> None:
    once = case(Visibility.hidden).for_student()
    assert once.for_student() == once


def test_a_student_sees_no_findings_and_staff_do() -> None:
    finding = Finding(FindingKind.decoration, "The output is right without the kernel.")
    result = GradeResult(Verdict.passed, "", (case(Visibility.hidden),), findings=(finding,))
    shown = result.for_student()
    assert shown.findings == ()
    assert "4099" not in str(shown)
    assert result.findings == (finding,)


def test_an_event_says_exactly_one_thing() -> None:
    begun = PhaseStarted(Phase.checking, 0.0)
    assert Event(phase=begun).phase == begun
    with pytest.raises(ValueError, match="exactly one"):
        Event()
    with pytest.raises(ValueError, match="exactly one"):
        Event(phase=begun, result=GradeResult(Verdict.passed, "", ()))


def test_a_changed_result_is_a_new_one() -> None:
    result = GradeResult(Verdict.passed, "", ())
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.verdict = Verdict.wrong_answer  # type: ignore[misc]
