"""The script that goes the whole way on a GPU: what it hands in is there, names say what is expected, logs are read."""

from __future__ import annotations

import importlib.util
import sqlite3
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from autograder import codec
from autograder.contract import Phase, PhaseTime
from tests.doubles.world import passed

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def script() -> Any:
    spec = importlib.util.spec_from_file_location("gpu_whole_way", ROOT / "scripts" / "gpu_whole_way.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.mark.parametrize("name", ["smoke", "quick", "whole"])
def test_everything_that_is_handed_in_is_there(script: Any, name: str) -> None:
    steps = script.SETS[name]()
    assert {script.Verdict(step.expected) for step in steps} >= {script.Verdict.passed, script.Verdict.wrong_answer}
    assert all((ROOT / step.path).is_file() for step in steps)
    assert all((ROOT / "assignments" / step.slug).is_dir() for step in steps)


@pytest.mark.parametrize(
    ("path", "expected", "held"),
    [
        ("reference/softmax/solutions/triton.py", "passed", False),
        ("somewhere/wrong_answer_zeros.py", "wrong_answer", False),
        ("somewhere/out_of_memory_hog.py", "out_of_memory", False),
        ("somewhere/held_forges_its_time.py", "passed", True),
    ],
)
def test_a_name_says_the_verdict(script: Any, path: str, expected: str, held: bool) -> None:
    step = script.Step("alice", "softmax", path)
    assert (step.expected, step.is_held) == (expected, held)


def seen(**changed: object) -> dict[str, object]:
    state = {"state": "running", "phase": None, "verdict": None, "is_final": False}
    return {**state, "cases": (), "cases_passed": False, "measurements": (), **changed}


def test_times_are_those_of_the_first_look_that_shows_it(script: Any) -> None:
    handed = script.Handed(script.Step("alice", "softmax", "held_x.py"), "id", script.time.monotonic() - 10)
    handed.note(seen())
    handed.note(seen(cases=({"case": "one"},), cases_passed=True))
    said = handed.cases_s
    assert said is not None
    assert not handed.check_s
    handed.note(seen(state="queued", verdict="passed"))
    checked = handed.check_s
    handed.note(seen(verdict="passed", measurements=({"case": "one"},)))
    handed.note(seen(state="done", verdict="passed", measurements=({"case": "one"},), is_final=True, review="held"))
    assert checked is not None
    assert 10 <= said == handed.cases_s < checked == handed.check_s < handed.measured_s < handed.final_s
    states = ["running 0", "running 1", "queued/passed 0", "running/passed 0", "done/passed 0"]
    assert [state for _, state in handed.seen] == states
    assert handed.is_expected
    handed.final = {**handed.final, "review": "none"}
    assert not handed.is_expected


def test_phases_are_read_from_the_workers_log(script: Any, tmp_path: Path) -> None:
    lines = (
        ("09:00:00,000", "worker.judge", "started the judge, process 7"),
        ("09:00:01,000", "worker.grade", "trace abcdef0123: attempt 01AB (fence 1) begins"),
        ("09:00:01,500", "worker.grade", "trace abcdef0123: the judge is preparing"),
        ("09:00:02,500", "worker.grade", "trace abcdef0123: the judge is checking"),
        ("09:00:05,000", "worker.grade", "trace abcdef0123: attempt 01AB ended after 4.00 s"),
        ("09:00:06,000", "worker.grade", "trace abcdef0123: attempt 01AC (fence 2) begins"),
    )
    log = tmp_path / "worker.log"
    log.write_text("".join(f"2026-11-21 {at} INFO {name}: {text}\n" for at, name, text in lines))
    assert script.phases_of(log) == ["abcdef01 fence 1: staging 0.50 preparing 1.00 checking 2.50", "abcdef01 fence 2:"]


def test_what_measurements_took_is_read_from_the_results_of_the_database(script: Any, tmp_path: Path) -> None:
    database = tmp_path / "ladder.sqlite"
    result = passed(1.25)
    result = replace(result, exclusive_s=3.14159, phases=(PhaseTime(Phase.measuring, 0.0, 3.25),))
    with closing(sqlite3.connect(database)) as connection:
        connection.executescript(
            "create table submissions (id, public_id); create table attempts (id, fence, work);"
            "create table results (attempt_id, submission_id, payload);"
            "insert into submissions values (7, 'S'); insert into attempts values (1, 1, 'check'), (2, 2, 'measure');"
        )
        text = codec.dumps(result)
        connection.executemany("insert into results values (?, 7, ?)", [(1, text), (2, text)])
        connection.commit()
    assert script.measured(database) == [
        {
            "submission": "S", "fence": 2, "work": "measure", "exclusive_s": 3.142, "phases": {"measuring": 3.25},
            "cases": [{"case": "large", "clock": "event", "ratio": 1.25, "batches": 0, "remeasure": ""}],
        }
    ]  # fmt: skip
