"""The self-test through the real judge: every file gets its verdict, and where a wall is missing it says so."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from autograder.contract import GradeRequest, GradeResult, Lane, Language, Mode, Verdict, Work
from worker import selftest
from worker.judge import JudgeProcess
from worker.known import KNOWN_GOOD, SLUG, KnownJobs, Outcome

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def jobs(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    made: list[JudgeProcess] = []

    def make(*options: str) -> KnownJobs:
        command = (sys.executable, "-P", "-m", "autograder.judge", *options, "serve")
        made.append(JudgeProcess(command, tmp_path / "judge.log"))
        return KnownJobs(made[-1], tmp_path / "known", Lane.cpu)

    yield make
    for judge in made:
        judge.close()


@pytest.mark.full("slow")
def test_every_file_gets_its_verdict_here(jobs, tmp_path):
    tried = selftest.run(jobs(), tmp_path)
    assert selftest.problems(tried) == ""
    assert tried[0].name == "passed_known_good"
    assert {one.name for one in tried} == {path.stem for path in selftest.SUBMISSIONS.glob("*.py")}
    assert {one.verdict for one in tried} >= {"passed", "wrong_answer", "illegal_access", "time_limit", "out_of_memory"}
    assert not (tmp_path / "selftest-secret").exists()


@pytest.mark.full("slow")
def test_a_sandbox_without_walls_is_found_out(jobs, tmp_path, monkeypatch):
    kept = {"passed_known_good", "passed_tries_to_get_out"}
    files = tmp_path / "submissions"
    files.mkdir()
    for name in kept:
        (files / f"{name}.py").write_text((selftest.SUBMISSIONS / f"{name}.py").read_text())
    monkeypatch.setattr(selftest, "SUBMISSIONS", files)
    tried = selftest.run(jobs("--sandbox", "tests.doubles.open_sandbox:OpenSandbox"), tmp_path)
    assert [one.name for one in tried if one.trouble] == ["passed_tries_to_get_out"]
    for wall in ("read ", "wrote to", "connected to port"):
        assert f"LOOT {wall}" in tried[1].trouble


def test_a_judge_that_is_wrong_or_dies_fails_it():
    class Jobs:
        def __init__(self, outcome):
            self.run = lambda *_: outcome

    wrong = Outcome(GradeResult(Verdict.passed, "", ()))
    found = selftest._tried(Jobs(wrong), selftest.SUBMISSIONS / "wrong_answer_last_tile_skipped.py", {})
    assert "passed instead of wrong_answer" in selftest.problems([found])
    died = selftest._tried(Jobs(Outcome(None, "it died")), selftest.SUBMISSIONS / "passed_known_good.py", {})
    assert "it died" in selftest.problems([died])


@pytest.mark.parametrize(
    ("name", "verdicts", "tries", "fails"),
    [
        ("out_of_memory_takes_the_machines", ["time_limit", "out_of_memory"], 2, False),
        ("out_of_memory_takes_the_machines", ["time_limit"] * 4, 3, True),
        ("out_of_memory_takes_the_machines", ["passed", "out_of_memory"], 1, True),
        ("time_limit_never_returns", ["time_limit", "passed"], 1, False),
    ],
)
def test_a_busy_machine_is_given_time_and_no_other_fault_a_second_try(name, verdicts, tries, fails):
    given = []

    class Jobs:
        def run(self, *_):
            given.append(verdicts[len(given)])
            return Outcome(GradeResult(Verdict(given[-1]), "", ()))

    tried = selftest._tried(Jobs(), selftest.SUBMISSIONS / f"{name}.py", {})
    assert (len(given), bool(tried.trouble)) == (tries, fails)


def test_a_process_that_is_left_behind_fails_it(monkeypatch):
    monkeypatch.setattr(selftest, "named", lambda _: [4242])
    assert "4242" in selftest._daemons(0.0)


def test_whoever_leaves_a_job_early_leaves_no_judge_that_goes_on_with_it(jobs, tmp_path):
    """The GPU's lock is given up on the way out: nothing may work on it any more."""
    known = jobs()
    pids = []

    def interrupt(_):
        pids.append(known._judge._process.pid)
        raise KeyboardInterrupt

    with known._staged(request_of(known)) as folder, pytest.raises(KeyboardInterrupt):
        known.judged(folder, enter=interrupt)
    assert pids
    assert not Path(f"/proc/{pids[0]}").exists()


def request_of(known):
    source = KNOWN_GOOD.read_text(encoding="utf-8")
    return GradeRequest(SLUG, "", Language.triton, known.lane, Mode.submission, source, "canary.py", Work.check)
