"""Bite tests: with the one defence it meets switched off, each attack succeeds.

A defence that nothing gets through without is a defence; one that is never missed is decoration.
"""

from __future__ import annotations

import dataclasses
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.hostile.corpus import Attack, attacks
from tests.hostile.naive import Naive
from tests.hostile.stand import Stand, nothing_compiled, processes_left, processes_named, unshut_stand
from tests.hostile.test_hostile import skip_without_promises
from tests.suite.choose import each, first_of_each

from autograder import codec
from autograder.contract import GradeResult
from autograder.judge.defences import ALL_ON, Defences
from autograder.sandbox import cgroups, removal

ALL = attacks()
QUICK = first_of_each([attack for attack in ALL if not attack.at_the_edge])
STATE = [Path(folder, "hostile-state") for folder in ("/tmp", "/dev/shm", "/var/tmp", "/run", "/")]
NAIVE = [attack for attack in ALL if attack.bite.naive]
SANDBOX = [attack for attack in ALL if attack.bite.sandbox or attack.bite.inherits]
JUDGE = [attack for attack in ALL if not (attack.bite.naive or attack.bite.edge or attack in SANDBOX)]


@pytest.fixture(scope="session")
def harness(canary: None) -> Iterator[Naive]:
    made = Naive()
    yield made
    made.close()


def without(names: tuple[str, ...]) -> Defences:
    """Everything on but these."""
    return dataclasses.replace(ALL_ON, **dict.fromkeys(names, False), early_reveal_s=1.0, late_read_s=1.0)


def graded(attack: Attack, stand: Stand) -> GradeResult:
    bite = attack.bite
    with nothing_compiled():
        return stand.grade(
            attack.mended(),
            mode=bite.mode or attack.mode,
            limits=bite.limits,
            inputs=bite.inputs or attack.inputs,
            defences=without(bite.judge),
        )


def assert_it_succeeded(attack: Attack, result: GradeResult, stand: Stand) -> None:
    wanted = attack.bite.succeeds
    match wanted:
        case "loot":
            assert "LOOT" in codec.dumps(result), (result.verdict, result.explanation, result.log)
        case "alive":
            assert processes_named("hostile-daemon")
        case "early":
            pairs = [pair for measured in result.measurements for pair in measured.pairs]
            assert any(pair.submission_sealed_us < attack.at_least_us for pair in pairs)
        case "claims":
            assert any(pair.submission_event_us < 1 for measured in result.measurements for pair in measured.pairs)
        case _:
            assert result.verdict == wanted, result.explanation


@each(JUDGE, QUICK)
def test_with_the_judges_defence_off_it_succeeds(attack: Attack, stand: Stand) -> None:
    skip_without_promises(attack, stand)
    result = graded(attack, stand)
    assert_it_succeeded(attack, result, stand)
    assert not processes_left(stand)


@each(SANDBOX, QUICK)
def test_with_the_sandboxs_defence_off_it_succeeds(attack: Attack, stand: Stand, tmp_path: Path) -> None:
    skip_without_promises(attack, stand)
    weak = unshut_stand(attack.bite.sandbox, tmp_path, inherits=attack.bite.inherits)
    try:
        result = graded(attack, weak)
        assert_it_succeeded(attack, result, weak)
    finally:
        weak.close()
        for pid in processes_named("hostile-daemon"):
            os.kill(pid, signal.SIGKILL)
        for runner in weak.sandbox.started:
            cgroups.end(runner._plan.cgroups)
        for left in STATE:
            left.unlink(missing_ok=True)


@each(NAIVE, QUICK)
def test_with_the_judge_in_its_own_process_it_succeeds(
    attack: Attack, tmp_path: Path, stand: Stand, harness: Naive
) -> None:
    submission = tmp_path / "submission.py"
    submission.write_text(attack.source(), encoding="utf-8")
    problem = stand.folders({}, "").assignment / "problem.py"
    outcome = harness.judged(problem, submission, 1000)
    match attack.bite.succeeds:
        case "loot":
            assert outcome.loot
        case "left":
            assert (tmp_path / "shut").exists()
            removal.remove(str(tmp_path))
        case "no_time":
            assert outcome.microseconds == 0
        case wanted:
            assert outcome.verdict == wanted
