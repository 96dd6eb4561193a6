"""Every file of the table gets its verdict, gets nothing else, and leaves nothing behind."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.hostile.corpus import HONEST, Attack, attacks
from tests.hostile.stand import Stand, folders_left, nothing_compiled, processes_left
from tests.suite.choose import each, first_of_each

from autograder import codec
from autograder.contract import GradeResult, Mode, Verdict, Work
from autograder.counters import doubt_of, points_of
from autograder.judge import grading
from autograder.judge.grading import Grading
from autograder.sandbox import Promise

GRADED = [attack for attack in attacks() if not attack.at_the_edge]
ALONE_TOO = {
    "time_limit_endless_call",
    "out_of_memory_hog",
    "runtime_error_exits_at_call",
    "output_limit_ten_gibibytes",
}
BESIDE = [attack for attack in GRADED if attack.mode == Mode.submission or attack.name in ALONE_TOO]
SANDBOXED = [
    attack
    for attack in GRADED
    if attack.needs or attack.threat in {"B5", "C5", "D4", "F1", "F3", "F4", "F5", "F8", "F9"}
]


def skip_without_promises(attack: Attack, stand: Stand) -> None:
    if absent := [name for name in attack.needs if Promise(name) not in stand.sandbox.promises]:
        pytest.skip(f"the process sandbox does not promise {', '.join(absent)} on this machine")


@each(GRADED, first_of_each(GRADED))
def test_a_hostile_file_gets_its_verdict_and_leaves_nothing(attack: Attack, stand: Stand) -> None:
    skip_without_promises(attack, stand)
    descriptors = set(os.listdir("/proc/self/fd"))
    result = stand.grade(attack.source(), mode=attack.mode, inputs=attack.inputs)
    assert result.verdict in attack.verdicts, result.explanation
    assert {finding.kind for finding in result.findings} >= set(attack.findings)
    assert attack.doubt in doubt_of(result)
    assert_it_got_nothing(result)
    assert_its_times_are_times(result, attack.at_least_us)
    assert not processes_left(stand)
    assert not folders_left(stand)
    assert len(os.listdir("/proc/self/fd")) <= len(descriptors)


@each(SANDBOXED)
def test_what_the_sandbox_stops_it_stops_without_root_too(attack: Attack, bare_stand: Stand) -> None:
    skip_without_promises(attack, bare_stand)
    result = bare_stand.grade(attack.source(), mode=attack.mode, inputs=attack.inputs)
    assert result.verdict in attack.verdicts, result.explanation
    assert_it_got_nothing(result)
    assert not processes_left(bare_stand)
    assert not folders_left(bare_stand)


@each(BESIDE)
def test_what_meets_hidden_cases_gets_its_verdict_beside_others_too(
    attack: Attack, stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a GPU's lane: cases dealt to several runners, the replay beside them."""
    skip_without_promises(attack, stand)
    monkeypatch.setattr(Grading, "_can_overlap", lambda self: self._work is not Work.measure)
    monkeypatch.setattr(grading, "MIN_CASES_PER_RUNNER", 1)
    monkeypatch.setattr(stand.sandbox, "warm_count", lambda *_: 6)
    descriptors = set(os.listdir("/proc/self/fd"))
    with nothing_compiled():
        result = stand.grade(attack.source(), mode=attack.mode, inputs=attack.inputs)
    assert result.verdict in attack.verdicts, result.explanation
    assert {finding.kind for finding in result.findings} >= set(attack.findings)
    assert_it_got_nothing(result)
    assert not processes_left(stand)
    assert not folders_left(stand)
    assert len(os.listdir("/proc/self/fd")) <= len(descriptors)


def assert_it_got_nothing(result: GradeResult) -> None:
    """Nothing that a student would be shown has what the file was after."""
    shown = codec.dumps(result.for_student())
    assert "LOOT" not in shown, shown[shown.index("LOOT") :][:300]
    for text in texts(codec.to_json(result)):
        assert all(letter.isprintable() or letter in "\n\t" for letter in text), text[:300]


def texts(value: codec.Json) -> Iterator[str]:
    """Every string in it, keys too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)
    elif isinstance(value, dict):
        yield from texts(list(value.keys()))
        yield from texts(list(value.values()))


def assert_its_times_are_times(result: GradeResult, at_least_us: float) -> None:
    """The clock that ranks is the judge's: never zero, and never less than what the file made it take."""
    for measured in result.measurements:
        assert measured.clock == "sealed"
        assert measured.time_us > 0
        assert measured.ratio > 0
        assert all(pair.submission_sealed_us >= at_least_us for pair in measured.pairs)


@pytest.mark.quick
def test_the_judge_is_alive_after_all_of_them(stand: Stand) -> None:
    """It runs last in this file, in the same judge and the same sandbox."""
    result = stand.grade(HONEST.read_text(encoding="utf-8"))
    assert result.verdict is Verdict.passed, result.explanation
    assert not result.findings
    assert not doubt_of(result)
    assert points_of(result.requirements) == 35


@pytest.mark.quick
def test_nothing_that_was_to_be_found_was_changed(stand: Stand) -> None:
    assert Path("/tmp/hostile-canary/secret").read_text(encoding="utf-8") == "a secret that no runner may read"
