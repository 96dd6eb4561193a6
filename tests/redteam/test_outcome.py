"""What counts as a false accept, an escape or a false hold; and that a table with any of them is not fine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from autograder.contract import Lane
from tests.redteam.attacks import BITE, Task, tasks
from tests.redteam.outcome import Outcome, Seen, outcome
from tests.redteam.pool import Crew
from tests.redteam.table import Path, Table, from_json

ATTACK = Task("wrong_answer_x", "D1", "", "", ("wrong_answer",))
CLOCK = Task("held_x", "A1", "", "", ("passed",), held="harmless", least_ratio=1.0, claim=0.5)
HARMLESS = replace(CLOCK, claim=0.0)
HONEST = Task("honest_x", "honest", "", "", ("passed",), honest=True)
FORGED = Seen("passed", ratios=(0.3,), claimed=(0.3,))


@pytest.mark.parametrize(
    ("task", "seen", "wanted"),
    [
        (ATTACK, Seen("wrong_answer"), Outcome.as_expected),
        (ATTACK, Seen("passed"), Outcome.false_accept),
        (ATTACK, Seen("runtime_error"), Outcome.different),
        (ATTACK, Seen("grader_error"), Outcome.error),
        (replace(ATTACK, name=f"wrong_answer_x{BITE}", expected=("no_time",)), Seen("passed"), Outcome.no_bite),
        (replace(ATTACK, name=f"wrong_answer_x{BITE}", expected=("passed",)), Seen("grader_error"), Outcome.error),
        (ATTACK, Seen("wrong_answer", loot="LOOT"), Outcome.escape),
        (ATTACK, Seen("wrong_answer", left=("1 hostile-daemon",)), Outcome.escape),
        (CLOCK, FORGED, Outcome.false_accept),
        (CLOCK, replace(FORGED, held=True), Outcome.as_expected),
        (CLOCK, replace(FORGED, remeasure="the reference was slowed"), Outcome.as_expected),
        (CLOCK, Seen("passed", held=True, ratios=(1.0,), claimed=(1.0,)), Outcome.no_bite),
        (CLOCK, Seen("passed", ratios=(1.0,), claimed=(0.3,)), Outcome.as_expected),
        (HARMLESS, Seen("passed", ratios=(0.97,)), Outcome.as_expected),
        (HARMLESS, Seen("passed", ratios=(0.94,)), Outcome.false_accept),
        (HARMLESS, Seen("passed", ratios=(0.94,), held=True), Outcome.as_expected),
        (HONEST, Seen("passed"), Outcome.as_expected),
        (HONEST, Seen("passed", held=True), Outcome.false_hold),
        (HONEST, Seen("passed", findings=("no_kernel",)), Outcome.false_hold),
        (replace(ATTACK, expected=("passed",), findings=("decoration",)), Seen("passed"), Outcome.false_accept),
        (replace(ATTACK, expected=("passed",), unfound=("decoration",)), Seen("passed"), Outcome.as_expected),
        (
            replace(ATTACK, expected=("passed",), unfound=("decoration",)),
            Seen("passed", findings=("decoration",)),
            Outcome.no_bite,
        ),
        (replace(ATTACK, expected=("passed",), at_least_us=9), Seen("passed", sealed_us=(8.0,)), Outcome.false_accept),
    ],
)
def test_what_was_seen_is_held_against_what_must_be(task: Task, seen: Seen, wanted: Outcome) -> None:
    assert outcome(task, seen)[0] is wanted


def _row(task: Task, seen: Seen, again: Seen | None = None):
    return Crew(Lane.cpu, "process", 1, None, lambda _: None, 0.0)._with(task, seen, again)


def test_an_honest_file_that_a_second_measurement_clears_is_fine() -> None:
    held = Seen("passed", held=True, held_reason="because")
    assert _row(HONEST, held, Seen("passed")).outcome is Outcome.cleared
    assert _row(HONEST, held, held).outcome is Outcome.false_hold
    assert _row(CLOCK, FORGED, Seen("passed")).outcome is Outcome.false_accept


def test_a_table_is_fine_only_if_something_ran_and_nothing_differs() -> None:
    table = Table([Path("cpu", "process")], [_row(ATTACK, Seen("wrong_answer"))])
    assert table.ok
    assert not replace(table, rows=[]).ok
    table.rows.append(_row(replace(ATTACK, name="wrong_answer_y"), Seen("passed", explanation="a | b\nc")))
    assert not table.ok
    assert table.counts()["false_accept"] == 1
    text = table.as_text()
    assert "**false accept**: passed" in text
    assert all(line.count("|") == 6 for line in text.splitlines() if line.startswith("|"))
    assert from_json(table.as_json()).rows == table.rows


def test_every_path_has_its_tasks_and_names_are_theirs_alone() -> None:
    for lane in (Lane.cpu, Lane.h200):
        for sandbox in ("process", "docker"):
            found = tasks(lane, sandbox)
            assert len({task.name for task in found}) == len(found)
            assert all(task.expected or task.skipped for task in found)
    assert {task.threat for task in tasks(Lane.h200, "docker", only=["D"])} <= {f"D{number}" for number in range(1, 8)}
    assert {task.threat for task in tasks(Lane.cpu, "process", only=["A1"])} == {"A1"}
    bites = {task.name for task in tasks(Lane.h200, "process", only=["bite"])}
    assert bites == {task.name for task in tasks(Lane.h200, "process") if task.name.endswith(BITE)} != set()
