"""Whole runs of pytest on small files: what is not tested is not green, and its exit status says why."""

from __future__ import annotations

import datetime as dt
import json
import os
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest

from tests.suite import __main__ as suite
from tests.suite import policy
from tests.suite.__main__ import added, read, tell
from tests.suite.plugin import TURNS, Folder, Outcome

INI = "[pytest]\naddopts = -p tests.suite.plugin\nmarkers =\n  quick\n  full(why)\n  postgres\n"


def run(folder: Path, text: str, *arguments: str, **environ: str) -> tuple[int, dict[str, Any], str]:
    """Exit status, report and output of one run over a file with this text."""
    (folder / "pytest.ini").write_text(INI, encoding="utf-8")
    (folder / "test_it.py").write_text(f"import pytest\n{text}\n", encoding="utf-8")
    report = folder / "report.json"
    command = [sys.executable, "-m", "pytest", "-q", "--report", str(report), *arguments, "test_it.py"]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment = {**kept, "PYTHONPATH": str(policy.ROOT), "LADDER_CI": "", **environ}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, json.loads(report.read_text(encoding="utf-8")), done.stdout


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "by a worker"])
def test_a_skip_that_nobody_allowed_is_red(tmp_path: Path, workers: tuple[str, ...]) -> None:
    status, report, said = run(tmp_path, "def test_a(): pytest.skip('too tired')", *workers)
    assert status == policy.UNKNOWN_SKIP
    assert report["skips"] == ["Skipped: too tired"]
    assert "1 × Skipped: too tired" in said


def test_a_file_that_is_skipped_as_a_whole_is_red_too(tmp_path: Path) -> None:
    status, report, _ = run(tmp_path, "pytest.skip('no luck', allow_module_level=True)")
    assert status == policy.UNKNOWN_SKIP
    assert report["skips"] == ["Skipped: no luck"]


def test_an_allowed_skip_is_green(tmp_path: Path) -> None:
    status, report, _ = run(tmp_path, "def test_a(): pytest.skip('torch sees no GPU')\ndef test_b(): pass")
    assert status == 0
    assert (report["passed"], len(report["skips"])) == (1, 1)


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "by a worker"])
def test_a_test_that_is_not_begun_in_time_is_red(tmp_path: Path, workers: tuple[str, ...]) -> None:
    status, report, _ = run(tmp_path, "def test_a(): pass", "--until", "1", *workers)
    assert status == policy.NOT_BEGUN
    assert report["not_begun"] == ["test_it.py::test_a"]


def test_a_failure_is_red_whatever_else_there_is(tmp_path: Path) -> None:
    status, report, _ = run(tmp_path, "def test_a(): assert 0\ndef test_b(): pytest.skip('too tired')")
    assert status == policy.TESTS_FAILED
    assert report["failed"] == ["test_it.py::test_a"]


@pytest.mark.parametrize(("days", "wanted"), [(10, 0), (11, policy.TESTS_FAILED)])
def test_a_failure_in_quarantine_is_reported_and_green_until_its_time_is_over(
    tmp_path: Path, days: int, wanted: int
) -> None:
    since = policy.commit_day() - dt.timedelta(days=days)
    rows = f'[[test]]\ntest = "test_it.py::test_a"\nsince = {since}\nreason = "seen once"\n'
    (tmp_path / "quarantine.toml").write_text(rows, encoding="utf-8")
    (tmp_path / "conftest.py").write_text(
        "from pathlib import Path\nfrom tests.suite import policy\n"
        f"rows = policy.quarantine(Path({str(tmp_path)!r}, 'quarantine.toml'))\n"
        "policy.quarantine = lambda: rows\n"
        "from tests.suite import plugin\n"
        "def pytest_configure(config):\n"
        "    config.pluginmanager.get_plugin('suite-meter').__init__(config)\n",
        encoding="utf-8",
    )
    status, report, _ = run(tmp_path, "def test_a(): assert 0\ndef test_b(): pass")
    assert status == wanted
    assert report["passed"] == 1
    assert report["quarantined"] == ([] if wanted else ["test_it.py::test_a"])


PARTS = """
@pytest.mark.full("slow")
def test_slow(): pass
@pytest.mark.parametrize("database", ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def test_kept(database): pass
"""


@pytest.mark.parametrize(
    "workers", [(), pytest.param(("-n", "1"), marks=pytest.mark.full("slow"))], ids=["alone", "by a worker"]
)
def test_the_two_parts_are_the_whole_and_the_first_says_what_it_left(tmp_path: Path, workers: tuple[str, ...]) -> None:
    passed = {part: run(tmp_path, PARTS, "--part", part, *workers)[1] for part in ("quick", "rest", "full")}
    rest = passed["rest"]["passed"] + sum(passed["rest"]["turns"].values())
    assert (passed["quick"]["passed"], rest, passed["full"]["passed"]) == (1, 2, 3)
    assert passed["quick"]["left"] == {"slow": 1, "on the second database": 1}
    assert passed["full"]["left"] == {}


IN_TURN = """
@pytest.mark.full("in turn"){turns}
@pytest.mark.parametrize("number", range(7))
def test_one(number): pass
"""


@pytest.mark.parametrize(("marked", "turns"), [("", TURNS), ("\n@pytest.mark.turns(3)", 3)], ids=["all", "marked"])
def test_tests_take_turns_by_the_number_of_the_commit_and_the_others_are_told_of(
    tmp_path: Path, marked: str, turns: int
) -> None:
    _, report, _ = run(tmp_path, IN_TURN.format(turns=marked), "--part", "rest")
    mine = [
        number
        for number in range(7)
        if zlib.crc32(f"test_it.py::test_one[{number}]".encode()) % turns == policy.commit_number() % turns
    ]
    assert report["passed"] == len(mine)
    assert report["turns"] == {"in turn": 7 - len(mine)}


def test_a_test_of_the_first_part_waits_for_no_turn(tmp_path: Path) -> None:
    _, report, _ = run(tmp_path, IN_TURN.replace('@pytest.mark.full("in turn"){turns}\n', ""), "--part", "quick")
    assert (report["passed"], report["turns"]) == (7, {})


def test_who_asks_for_tests_gets_all_of_them(tmp_path: Path) -> None:
    assert run(tmp_path, IN_TURN.format(turns=""), "--part", "full")[1]["passed"] == 7
    assert run(tmp_path, IN_TURN.format(turns=""))[1]["passed"] == 7


def test_what_two_parts_leave_to_other_commits_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    part = Outcome(passed=1, left={"slow": 2}, turns={"in turn": 5})
    tell(added(part, part), whole=True)
    assert "Other commits have their turn of 5 tests\n      5 in turn" in capsys.readouterr().out


def test_what_a_folder_costs_is_written_down(tmp_path: Path) -> None:
    _, report, _ = run(tmp_path, "def test_a(): sum(i for i in range(3_000_000))")
    assert report["folders"]["test_it.py"]["tests"] == 1
    assert report["folders"]["test_it.py"]["cpu_s"] > 0.01
    assert report["yardsticks"]


def test_a_run_that_wrote_no_report_has_failed(tmp_path: Path) -> None:
    assert read(tmp_path / "most.json").failed == ["most.json: pytest ended without a report"]


def test_runs_add_up_and_the_status_is_the_most_telling(capsys: pytest.CaptureFixture[str]) -> None:
    one = Outcome(passed=2, folders={"tests/golden": Folder(2, 1.0, 1.0)})
    other = Outcome(passed=1, not_begun=["tests/x"], folders={"tests/golden": Folder(1, 1.0, 10_000_000.0)})
    assert tell(added(one), whole=True) == 0
    assert tell(added(one, other), whole=True) == policy.NOT_BEGUN
    assert capsys.readouterr().out.endswith("3 passed, 0 failed, 0 skipped, 1 not begun, 0 failed in quarantine\n")
    other.not_begun.clear()
    assert tell(added(one, other), whole=True) == policy.OVER_BUDGET
    assert tell(added(one, other), whole=False) == 0


def test_a_run_forgets_the_reports_of_the_one_before_and_a_rest_keeps_the_quick_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the folder of pytest's own that the run before left; none of these commands writes a report."""
    monkeypatch.setattr(suite, "BOOK", tmp_path)
    monkeypatch.setattr(suite, "PYTEST", (sys.executable, "-c", ""))
    monkeypatch.setattr(suite, "_docker", dict)
    (tmp_path / "cache").mkdir()
    for name in ("quick-most", "rest-most"):
        (tmp_path / f"{name}.json").write_text("{}", encoding="utf-8")
    assert len(suite.run("rest", []).failed) == 3
    assert [path.name for path in tmp_path.glob("*.json")] == ["quick-most.json"]
    assert len(suite.run("quick", []).failed) == 3
    assert not list(tmp_path.glob("*.json"))
