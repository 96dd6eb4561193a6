"""A result in a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.contract import (
    CaseResult,
    Finding,
    FindingKind,
    Frame,
    GradeResult,
    Measurement,
    Mismatch,
    Pattern,
    StudentError,
    Verdict,
    Visibility,
)
from autograder.report import SHADES, duration, plain, render

MAP = ((0, 0, 0), (0, 1000, 1), (0, 500, 999))
WRONG = Mismatch("out", (9, 9), "float32", 3, 81, Pattern.tile, "rows 3–5", (3, 3), "1", "2", "0", MAP, (3, 3))


def case(name: str, verdict: Verdict | None = Verdict.passed, *, hidden: bool = False, **more: object) -> CaseResult:
    visibility = Visibility.hidden if hidden else Visibility.public
    return CaseResult(name, "odd sizes", "basics", visibility, False, verdict, "", **more)


def test_the_answer_comes_first() -> None:
    text = render(
        GradeResult(Verdict.wrong_answer, "Wrong answer in case `odd`.", (case("odd", Verdict.wrong_answer),))
    )
    assert text.splitlines()[0] == "WRONG ANSWER  Wrong answer in case `odd`."


def test_cases_stand_in_columns_and_a_hidden_one_by_its_category_only() -> None:
    cases = (case("small", seconds=0.0123), case("n=4099", hidden=True, seconds=1.0), case("last", None))
    lines = render(GradeResult(Verdict.passed, "All.", cases)).splitlines()
    assert lines[2:] == [
        "  case                group   verdict  time",
        "  small               basics  passed   12.3 ms",
        "  odd sizes (hidden)  basics  passed",
        "  last                basics  not run",
    ]


def test_a_wrong_output_is_drawn_tile_by_tile() -> None:
    text = render(GradeResult(Verdict.wrong_answer, "", (case("odd", Verdict.wrong_answer, mismatch=WRONG),)))
    assert "out (9 × 9), wrong elements by tiles of 3 × 3:" in text
    assert text.splitlines()[-4:-1] == ["  |   |", "  | #.|", "  | :+|"]


def test_a_tile_with_one_wrong_element_is_not_blank_and_only_a_wholly_wrong_one_is_darkest() -> None:
    rows = tuple((share,) for share in range(1001))
    drawn = [line[3] for line in render(_with_map(rows)).splitlines() if line.startswith("  |")]
    assert drawn[0] == SHADES[0]
    assert SHADES[0] not in drawn[1:]
    assert drawn[1000] == SHADES[-1]
    assert SHADES[-1] not in drawn[:1000]


def _with_map(rows: tuple[tuple[int, ...], ...]) -> GradeResult:
    wrong = Mismatch("out", (9,), "float32", 1, 9, Pattern.tile, "", (0,), "1", "2", "0", rows)
    return GradeResult(Verdict.wrong_answer, "", (case("odd", Verdict.wrong_answer, mismatch=wrong),))


def test_an_error_shows_the_students_frames() -> None:
    error = StudentError("ValueError", "bad\nshape", (Frame(7, "softmax", "tl.store(x)"),))
    text = render(GradeResult(Verdict.runtime_error, "Runtime error.", (), error=error))
    assert text.splitlines()[2:] == ["  line 7, in softmax: tl.store(x)", "  ValueError: bad", "  shape"]


def test_speed_is_shown_with_its_interval() -> None:
    found = Measurement("ranked", "sealed", 1.234, 1.1, 1.3, 19_900.0, 19_000.0, 21_000.0, 16_126.0, 1.0, 1.0, ())
    text = render(GradeResult(Verdict.passed, "All.", (), measurements=(found,)))
    assert text.splitlines()[2:] == [
        "  speed   ratio  interval        yours    reference",
        "  ranked  1.234  1.100 to 1.300  19.9 ms  16.1 ms",
    ]


def test_findings_are_shown_to_whoever_has_them() -> None:
    result = GradeResult(Verdict.passed, "All.", (), findings=(Finding(FindingKind.no_kernel, "None was launched."),))
    assert "for staff: no_kernel: None was launched." in render(result)
    assert "staff" not in render(result.for_student())


def test_the_end_of_a_long_log_is_shown() -> None:
    text = render(GradeResult(Verdict.passed, "All.", (), log="\n".join(f"line {number}" for number in range(50))))
    assert "  … 30 lines before" in text
    assert "line 29" not in text
    assert text.endswith("  | line 49\n")


def test_colour_is_for_verdicts_and_only_when_asked_for() -> None:
    result = GradeResult(Verdict.passed, "All.", ())
    assert render(result, colour=True).startswith("\x1b[32mPASSED\x1b[0m")
    assert "\x1b" not in render(result)


@given(st.text(max_size=40))
def test_nothing_of_the_students_can_steer_the_terminal(text: str) -> None:
    error = StudentError(text, text, (Frame(1, text, text),))
    result = GradeResult(Verdict.runtime_error, text, (case(text, error=error),), error=error, log=text)
    assert all(letter.isprintable() or letter in "\n\t" for letter in render(result))


@pytest.mark.parametrize(("us", "text"), [(0.5, "0.5 µs"), (999.0, "999 µs"), (19_912.0, "19.9 ms"), (2.5e6, "2.5 s")])
def test_durations_have_their_unit(us: float, text: str) -> None:
    assert duration(us) == text


def test_plain_keeps_line_breaks_and_letters_of_any_script() -> None:
    assert plain("é\n\tλ\x1b[2J") == "é\n\tλ�[2J"
