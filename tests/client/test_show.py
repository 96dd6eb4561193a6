from __future__ import annotations

import io
import time

import pytest
from rich.console import Console

from client import options, show
from client.errors import UsageError
from client.live import Live

CASE = {
    "name": "large", "category": "", "group": "public", "visibility": "public", "ranked": True, "message": "Wrong.",
    "verdict": "wrong_answer", "error": None, "seconds": 0.25,
}  # fmt: skip
MISMATCH = {
    "output": "out", "shape": [4, 4], "dtype": "float32", "wrong": 4, "total": 16, "pattern": "columns_from",
    "where": "all columns from 2 on", "index": [0, 2], "expected": "1.0", "got": "nan", "tolerance": "0",
    "map": [[0, 1000], [0, 500]], "tile": [2, 2],
}  # fmt: skip


def _console() -> tuple[Console, io.StringIO]:
    out = io.StringIO()
    return Console(file=out, width=200, highlight=False), out


def _submission(**changes: object) -> dict[str, object]:
    plain: dict[str, object] = {"language": "triton", "trouble": "", "position": None, "phases": [], "cases": []}
    return plain | changes


def test_a_result_tells_where_an_output_is_wrong() -> None:
    console, out = _console()
    show.show_result(
        console, {"verdict": "wrong_answer", "explanation": "So.", "cases": [CASE | {"mismatch": MISMATCH}]}
    )
    for told in (
        "wrong answer",
        "So.",
        "4 of 16 elements of out",
        "the allowed difference there is 0",
        "one character per 2 × 2",
    ):
        assert told in out.getvalue()
    assert "│ █│" in out.getvalue()


def test_the_first_case_that_did_not_pass_is_the_one_explained() -> None:
    console, out = _console()
    first = CASE | {"name": "first", "mismatch": MISMATCH}
    later = CASE | {"name": "later", "mismatch": MISMATCH | {"output": "elsewhere"}}
    show.show_result(console, {"verdict": "wrong_answer", "cases": [CASE | {"verdict": "passed"}, first, later]})
    assert "elsewhere" not in out.getvalue()


def test_text_from_a_submission_steers_no_terminal() -> None:
    console, out = _console()
    error = {"kind": "Error", "message": "\x1b[2J[bold]x[/bold]\x07\x9b", "frames": []}
    show.show_result(console, {"verdict": "runtime_error", "error": error, "cases": [], "log": "\x1b]0;title\x07"})
    assert not {"\x1b", "\x07", "\x9b"} & set(out.getvalue())
    assert "[bold]x[/bold]" in out.getvalue()


def test_what_happened_in_no_function_is_said_to_be_in_none() -> None:
    frames = [{"line": 15, "function": "", "code": "x[i] = 1"}, {"line": 3, "function": "f", "code": "g()"}]
    error = {"kind": "IllegalAccess", "message": "", "frames": frames}
    console, out = _console()
    show.show_result(console, {"verdict": "illegal_access", "error": error, "cases": []})
    assert "  line 15\n    x[i] = 1\n  line 3, in f\n" in out.getvalue()


def _compiled(message: str = "", **changes: object) -> dict[str, object]:
    counts = {"registers": 0, "spills": 0, "shared_bytes": 0, "wgmma": 0, "tcgen05": 0, "tma": 0, "ldg128": 4}
    kernel = {"kernel": "k", "case": "gpu_ranked", "config": "B=64", "message": message, "error": None}
    return {"target": "sm_90a", "message": "", "kernels": [kernel | counts | changes]}


def test_what_kernels_become_on_a_gpu_is_shown_and_what_it_would_refuse() -> None:
    requirement = {
        "name": "wgmma",
        "target": "sm_90a",
        "rule": "wgmma > 0",
        "group": "",
        "met": False,
        "message": "none",
    }
    refused = _compiled("Would not run on sm_90a: 300 KiB of [bold]shared memory.")
    result = {"verdict": "passed", "cases": [], "requirements": [requirement]}
    console, out = _console()
    show.show_result(console, {**result, "compiled": [_compiled(registers=26, spills=3), refused, refused]})
    text = out.getvalue()
    assert (
        "  sm_90a  k: 26 registers, 3 spills, 0 B shared, wgmma 0, tcgen05 0, TMA 0, LDG.128 4  (gpu_ranked, B=64)\n"
        in text
    )
    assert text.count("Would not run on sm_90a: 300 KiB of [bold]shared memory.") == 1
    assert "not met  wgmma (sm_90a: wgmma > 0, for information): none" in text


def test_of_many_candidates_a_terminal_shows_the_first() -> None:
    console, out = _console()
    show.show_result(console, {"verdict": "passed", "cases": [], "compiled": [_compiled()] * 20})
    assert out.getvalue().count("gpu_ranked") == show.MAX_COMPILED
    assert "… 8 more; --json shows them" in out.getvalue()


def test_a_hidden_case_has_no_seconds() -> None:
    console, out = _console()
    show.show_cases(console, [CASE | {"name": "odd sizes", "visibility": "hidden", "seconds": None}])
    assert "odd sizes (hidden)" in out.getvalue()


def test_progress_is_printed_once() -> None:
    console, out = _console()
    live = Live(console)
    live.submission(_submission(position=2))
    phases = [{"phase": "preparing", "at": 1.0}]
    live.submission(_submission(phases=phases))
    live.submission(_submission(phases=[*phases, {"phase": "checking", "at": 2.0}], cases=[CASE]))
    live.submission(_submission(phases=[*phases, {"phase": "checking", "at": 2.0}], cases=[CASE]))
    assert out.getvalue().split("\n") == [
        "2 before you", "preparing …", "checking …", "  wrong answer  large", "",
    ]  # fmt: skip


def test_another_attempt_is_told_from_its_beginning() -> None:
    console, out = _console()
    live = Live(console)
    phases = [{"phase": "preparing", "at": 1.0}]
    live.submission(_submission(phases=phases))
    live.submission(_submission(phases=phases, trouble="Our node failed."))
    assert out.getvalue().count("preparing") == 2
    assert "Our node failed." in out.getvalue()


@pytest.mark.parametrize(
    ("verdict", "status"),
    [("passed", 0), ("wrong_answer", 1), ("time_limit", 1), ("grader_error", 3), (None, 3)],
)
def test_a_verdict_gives_an_exit_status(verdict: str | None, status: int) -> None:
    assert options.status_of(verdict) == status


@pytest.mark.parametrize(("microseconds", "text"), [(2.5, "2.5 µs"), (1500.0, "1.5 ms"), (2e6, "2 s")])
def test_a_duration_has_its_unit(microseconds: float, text: str) -> None:
    assert show.duration(microseconds) == text


def test_a_time_is_on_the_readers_clock_and_says_its_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "PST8")
        time.tzset()
        assert show.moment("2026-11-29T07:59:00Z") == "2026-11-28 23:59 PST"
        assert show.moment(None) == ""
    time.tzset()


def test_a_lane_is_chosen_among_those_that_grade() -> None:
    rung = {"slug": "softmax", "lanes": ["cpu", "h200"]}
    assert options.choose_lane(rung, None) == "cpu"
    assert options.choose_lane(rung, "h200") == "h200"
    with pytest.raises(UsageError, match="cpu, h200"):
        options.choose_lane(rung, "b200")


def _waiting(**wait: object) -> dict[str, object]:
    plain = {"has_node": True, "measured": True, "low_s": 130.0, "likely_s": 175.0, "high_s": 290.0}
    return _submission(position=12, lane="h200", wait=plain | wait)


def test_a_wait_says_the_place_and_an_interval() -> None:
    assert show.turn(_waiting()) == "12 before you · result in about 3 min (2 to 5)"
    assert show.turn(_waiting(measured=False)).endswith("(2 to 5), a guess")
    assert show.turn(_submission(position=0)) == "you are next"


def test_without_a_node_nobody_can_say_when() -> None:
    text = show.turn(_waiting(has_node=False, low_s=None, likely_s=None, high_s=None))
    assert text == "12 before you; no node grades h200 right now, so the wait is unknown. It keeps its place."


def test_a_place_is_printed_when_it_moves_and_what_it_stands_for_once() -> None:
    console, out = _console()
    live = Live(console)
    for position in (3, 3, 2):
        live.submission(_submission(position=position, superseded_by=5, state="superseded"))
    live.submission(_submission(position=7, line="measuring", verdict="passed", state="queued"))
    assert out.getvalue().split("\n") == [
        "superseded by #5; graded later", "3 before you", "2 before you", "passed; waiting to be measured",
        "7 before you", "",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("low", "likely", "high", "text"),
    [
        (2.1, 2.2, 2.4, "about 3 s"),
        (25.5, 40.2, 67.1, "about 40 s (25 to 68)"),
        (3.0, 70.0, 300.0, "about 1 min (under 5)"),
        (7300.0, 9000.0, 13000.0, "about 2 h (2 to 4)"),
    ],
)
def test_an_estimate_is_rounded_outwards(low: float, likely: float, high: float, text: str) -> None:
    assert show.estimate(low, likely, high) == text


def _terminal(width: int) -> tuple[Console, io.StringIO]:
    text = io.StringIO()
    return Console(file=text, force_terminal=True, color_system=None, width=width, soft_wrap=True), text


def _rung(slug: str, **more: object) -> dict[str, object]:
    points = {"correctness": 60.0, "speed": 35.0, "quiz": 5.0}
    rung = {"rung": 26, "slug": slug, "title": "Bias, GELU and dropout, fused", "languages": ["triton", "cuda"]}
    return {**rung, "points": points, "due_at": "2026-12-05T22:00:00+00:00", **more}


SLUGS = ("bias_gelu_dropout_fused", "flash_attention_2", "flash_attention_4")
HISTORY = [
    {
        "public_id": f"01M8GP4YNT3T1V829S0391WSX{number}", "assignment": slug, "mode": mode, "number": 12,
        "lane": "cpu", "state": "done", "verdict": "nondeterministic", "points": 60.0,
        "uploaded_at": "2026-11-28T09:00:00+00:00",
    }
    for number, (slug, mode) in enumerate(zip(SLUGS, ("run", "submission", "submission"), strict=True))
]  # fmt: skip


@pytest.mark.parametrize("width", [40, 80, 200])
def test_a_narrow_terminal_shows_fewer_columns_and_cuts_no_name(width: int) -> None:
    out, text = _terminal(width)
    grades = [{"assignment": SLUGS[1], "points": 60.0, "possible": 100.0, "verdict": "passed"}]
    show.show_assignments(out, [_rung(slug) for slug in SLUGS], grades)
    show.show_history(out, HISTORY)
    lines = text.getvalue().splitlines()
    assert "…" not in text.getvalue()
    for slug in SLUGS:
        assert sum(slug in line for line in lines) == 2
    for item in HISTORY:
        assert any(item["public_id"] in line for line in lines)
    assert ("languages" in lines[0]) == (width == 200)
    if width >= 80:
        assert all(len(line) <= width for line in lines)
        assert any("60 of 100" in line and "passed" in line for line in lines)


def test_a_pipe_gets_every_column() -> None:
    text = io.StringIO()
    out = Console(file=text, force_terminal=False, width=80, soft_wrap=True)
    show.show_history(out, HISTORY)
    show.show_assignments(out, [_rung(slug) for slug in SLUGS])
    assert text.getvalue().count("cpu") == len(HISTORY)
    assert text.getvalue().count("triton, cuda") == len(SLUGS)
    assert len(text.getvalue().splitlines()) == 2 + len(HISTORY) + len(SLUGS)


def test_a_first_compilation_is_said_to_take_longer_where_files_are_compiled_whole() -> None:
    for language, told in (("cuda", True), ("triton", False)):
        out, text = _console()
        Live(out).submission(_submission(language=language, phases=[{"phase": "compiling"}]))
        assert ("can take half a minute" in text.getvalue()) is told
