"""`ladder node accept` on this machine's CPU, whole, and what `verify-report` believes."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from autograder.signing import SigningKey
from client import node_report
from client.commands.node import node as group

REPOSITORY = Path(__file__).parents[2]
pytestmark = pytest.mark.full("slow")


@pytest.fixture(scope="module")
def accepted(tmp_path_factory):
    """A report of this machine: the real judge, the process sandbox, one rung."""
    out = tmp_path_factory.mktemp("accept")
    command = [
        sys.executable, "-m", "client", "node", "accept", "--lane", "cpu", "--rung", "vector_add", "--gradings", "2",
        "--language", "triton", "--red-team", "none", "--out", str(out), "--key", str(out / "key.pem"),
    ]  # fmt: skip
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


def _verify(path, *more):
    return CliRunner().invoke(group, ["verify-report", str(path), *more])


def test_a_report_says_what_was_tried_and_what_came_of_it(accepted):
    report = json.loads((accepted / "node-report.json").read_text())
    assert (report["lane"], report["accepted"], report["problems"]) == ("cpu", True, [])
    assert {one["trouble"] for one in report["self_test"]} == {""}
    assert report["noise"]["calibration"]["gradings"] == 2
    [rung] = report["rungs"]
    assert (rung["slug"], [case["case"] for case in rung["cases"]]) == ("vector_add", ["ranked_odd", "ranked_half"])
    assert rung["check"]["outcome"].startswith("passed")
    assert "private_files" in report["sandbox"]["kept"]
    assert report["sandbox"]["environment"]["sandbox"].endswith(":ProcessSandbox")
    assert "pairs" not in json.dumps(rung["cases"][0]["control"])
    page = (accepted / "node-report.md").read_text()
    assert page == node_report.page(report)
    assert "lane cpu: accepted" in page
    assert "passed_tries_to_get_out | passed" in page


def test_a_report_is_believed_as_it_was_signed_and_not_when_it_was_changed(accepted, tmp_path):
    path = accepted / "node-report.json"
    public = SigningKey.load(accepted / "key.pem").public
    assert _verify(path, "--key", public).exit_code == 0
    assert "compare it with the owner's" in _verify(path).output
    report = json.loads(path.read_text())
    (tmp_path / "indented.json").write_text(json.dumps(report, indent=4, sort_keys=True))
    assert _verify(tmp_path / "indented.json").exit_code == 0
    report["rungs"][0]["cases"][0]["time_us"][0] /= 2
    (tmp_path / "faster.json").write_text(json.dumps(report))
    assert "changed after it was signed" in _verify(tmp_path / "faster.json").output
    assert _verify(path, "--key", SigningKey.generate().public).exit_code == 2


def _accept_with_judge(judge, out):
    command = [
        sys.executable, "-m", "client", "node", "accept", "--lane", "cpu", "--rung", "vector_add", "--gradings", "1",
        "--language", "triton", "--red-team", "none", "--out", str(out),
    ]  # fmt: skip
    told = {**os.environ, "LADDER_JUDGE": judge, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(command, cwd=REPOSITORY, env=told, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    return json.loads((out / "node-report.json").read_text()), (out / "node-report.md").read_text()


def test_a_judge_that_finds_everything_right_is_found_out(tmp_path):
    double = shlex.join([sys.executable, str(REPOSITORY / "tests/doubles/judge.py")])
    report, page = _accept_with_judge(double, tmp_path)
    assert not report["accepted"]
    assert any("wrong_answer_last_tile_skipped: passed instead of" in problem for problem in report["problems"])
    # It promises nothing, either.
    assert any("does not keep" in problem for problem in report["problems"])
    assert report["rungs"][0]["cases"][0]["ratio"] == [1.0, 0.99, 1.01]
    assert "not accepted" in page


def test_where_nothing_works_the_rest_is_not_tried_and_the_report_still_signed(tmp_path):
    report, page = _accept_with_judge(shlex.join([sys.executable, "-c", ""]), tmp_path)
    assert "a known-good kernel does not pass: the judge died" in report["problems"][0]
    assert (report["self_test"], report["rungs"], "counts" in report["red_team"]) == (None, None, False)
    assert "Not tried." in page
    assert _verify(tmp_path / "node-report.json").exit_code == 1


def test_what_the_clocks_said_is_in_the_page():
    bound = {"null_us": [210.0, 190.0], "calls": 32, "sealed_us": 181.5, "excess": 0.016}
    control = {"drift": -0.004, "tolerance": 0.02}
    case = {
        "case": "gpu_ranked", "time_us": [178.7, 178.0, 179.0], "ratio": [1.0004, 0.999, 1.002], "terabytes_per_s": 4.2,
        "teraflops": 700.0, "of_the_floor": 0.91, "bound": bound, "control": control,
    }  # fmt: skip
    rung = {"slug": "matmul", "language": "triton", "check": {"seconds": 1.0}, "cases": [case, {**case, "bound": None}]}
    report = {
        "node": {"host": "gpu-1", "gpu": "NVIDIA H200"}, "lane": "h200", "accepted": True, "problems": [],
        "seconds": 99.0, "made_at": "2026-11-21", "sandbox": None, "self_test": None, "noise": None,
        "rungs": [rung], "left_behind": None,
        "red_team": {"counts": {"rows": 9, "false_accepts": 1}, "differing": [
            {"attack": "passed_x", "lane": "h200", "sandbox": "docker", "outcome": "escape", "verdict": "passed"},
        ]},
    }  # fmt: skip
    page = node_report.page(report)
    assert "| matmul (triton) | 1.0 | – | gpu_ranked | 178.7 | 1.0004 [0.9990, 1.0020] | 4.20 | 700.0 | 91% |" in page
    assert "| matmul, gpu_ranked | 190 | 32 | 181.5 | +1.60% | -0.40% | 2.00% |" in page
    assert "| matmul, gpu_ranked | – | – | – | – | -0.40% | 2.00% |" in page
    assert "rows 9, false accepts 1" in page
    assert "- passed_x (h200, docker): escape, passed" in page


def test_a_node_that_was_not_accepted_is_no_success(tmp_path):
    report = SigningKey.generate().sign({"lane": "h200", "accepted": False, "made_at": "2026-11-21"})
    (tmp_path / "report.json").write_text(json.dumps(report))
    done = _verify(tmp_path / "report.json")
    assert (done.exit_code, "not accepted" in done.output) == (1, True)


@pytest.mark.parametrize("text", ["", "[]", "null", "{}", '{"signature": {}}', '{"signature": 7}', "[" * 100_000])
def test_what_is_no_report_is_refused(tmp_path, text):
    (tmp_path / "report.json").write_text(text)
    done = _verify(tmp_path / "report.json")
    assert (done.exit_code, done.exception.__class__) == (2, SystemExit)


def test_what_cannot_be_accepted_is_said_before_anything_is_tried(tmp_path, monkeypatch):
    def refused(*arguments):
        done = CliRunner().invoke(group, ["accept", *arguments])
        assert done.exit_code == 2, done.output
        return done.output

    monkeypatch.chdir(tmp_path)
    assert "there are no assignments" in refused()
    rungs = ["--assignments", str(REPOSITORY / "assignments")]
    assert "no such rung: jump" in refused(*rungs, "--rung", "jump")
    (tmp_path / "key.pem").write_text("no key")
    assert "cannot be used as the key" in refused(*rungs, "--key", str(tmp_path / "key.pem"))
    assert "LADDER_LANES" in refused(*rungs, "--lane", "abacus")


def test_strangers_are_not_let_join_a_process_sandbox(tmp_path):
    arguments = [
        "join",
        "https://127.0.0.1:1",
        "--name",
        "a",
        "--code",
        "c",
        "--untrusted",
        "--folder",
        str(tmp_path / "etc"),
    ]
    done = CliRunner().invoke(group, arguments)
    assert (done.exit_code, "--sandbox docker" in done.output) == (2, True)
