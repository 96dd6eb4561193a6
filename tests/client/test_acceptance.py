"""`scripts/acceptance.py` on the CPU lane: a step of it whole, what is not repeated, and what its table is believed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from autograder.signing import SigningKey

REPOSITORY = Path(__file__).parents[2]
SCRIPT = REPOSITORY / "scripts" / "acceptance.py"
STEP = "kernels:saxpy"


def acceptance(*words):
    return subprocess.run([sys.executable, SCRIPT, *map(str, words)], capture_output=True, text=True, check=False)


def run(folder, *more):
    key, only = folder / "key.pem", ("--only", STEP, "--language", "triton")
    return acceptance("run", "--lane", "cpu", "--out", folder / "table", "--key", key, *only, *more)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """One step of the CPU lane, graded."""
    folder = tmp_path_factory.mktemp("acceptance")
    done = run(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def read(folder):
    return json.loads((folder / "table" / "acceptance.json").read_text())


def test_a_step_is_in_the_table_with_its_figures_and_the_others_as_not_run(table):
    report = read(table)
    rows = {row["step"]: row for row in report["steps"]}
    assert rows[STEP]["outcome"] == "as expected"
    assert rows[STEP]["found"].startswith("triton: ")
    assert rows["redteam"] == {"step": "redteam", "outcome": "not run"}
    assert report["accepted"] is False


def test_what_is_done_is_not_done_again_until_a_file_of_it_differs(table):
    before = read(table)
    assert f"{STEP} …" not in run(table).stdout
    log = table / "table" / "kernels-saxpy.log"
    assert [row.get("seconds") for row in read(table)["steps"]] == [row.get("seconds") for row in before["steps"]]
    assert log.is_file()
    path = table / "table" / "kernels-saxpy" / "node-report.json"
    kept = path.read_text()
    path.write_text(kept.replace('"passed', '"Passed'))
    said = acceptance("verify", table / "table")
    assert (said.returncode, "was changed" in said.stdout) == (2, True)
    assert f"{STEP} …" in run(table).stdout
    assert acceptance("verify", table / "table").returncode == 1


def test_it_is_believed_as_it_was_signed_by_whom_it_should_be(table, tmp_path):
    public = SigningKey.load(table / "key.pem").public
    assert acceptance("verify", table / "table", "--key", public).returncode == 1
    assert acceptance("verify", table / "table", "--key", SigningKey.generate().public).returncode == 2
    report = read(table)
    report["accepted"] = True
    (tmp_path / "acceptance.json").write_text(json.dumps(report))
    said = acceptance("verify", tmp_path)
    assert (said.returncode, "changed after it was signed" in said.stdout) == (2, True)


def test_a_table_that_another_key_signed_is_begun_anew(table, tmp_path):
    report = SigningKey.generate().sign(read(table))
    (tmp_path / "table").mkdir()
    (tmp_path / "table" / "acceptance.json").write_text(json.dumps(report))
    done = run(tmp_path, "--limit-s", "0")
    assert (done.returncode, f"{STEP} …" in done.stdout) == (1, False)
    assert {row["outcome"] for row in read(tmp_path)["steps"]} == {"not run"}


def test_steps_of_a_gpu_lane_that_nobody_has_say_so(tmp_path):
    done = acceptance("run", "--lane", "cpu", "--out", tmp_path, "--key", tmp_path / "key.pem", "--only", "search")
    assert (done.returncode, "no such step" in done.stdout) == (2, True)
