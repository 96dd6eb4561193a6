"""The whole way on this machine's GPU: server, queue, worker and judge, and a student who submits."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import tarfile
from contextlib import closing
from pathlib import Path

import pytest

from autograder.contract import Lane

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]
SCRIPT = Path(__file__).parents[2] / "scripts" / "gpu_whole_way.py"


def test_submissions_are_graded_and_ranked_and_their_pages_come_back(lane: Lane, tmp_path: Path) -> None:
    for name in ("celery", "fastapi", "sqlalchemy", "supervisor"):
        pytest.importorskip(name)
    command = [sys.executable, str(SCRIPT), "--lane", lane.value, "--out", str(tmp_path), "--set", "smoke"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((tmp_path / "whole_way.json").read_text())
    passed, wrong = (one["final"] for one in report["submissions"])
    assert (passed["verdict"], wrong["verdict"]) == ("passed", "wrong_answer")
    assert passed["lane"] == lane.value
    assert {one["case"] for one in passed["measurements"]} == {"gpu_ranked", "gpu_ranked_bfloat16"}
    assert [entry["name"] for entry in report["boards"]["vector_add"]["entries"]] == ["Staff solution"]
    with tarfile.open(tmp_path / "whole_way.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    with closing(sqlite3.connect(tmp_path / "home" / "ladder.sqlite")) as database:
        found = database.execute("SELECT public_id, verdict FROM submissions ORDER BY id").fetchall()
    assert found == [(passed["public_id"], "passed"), (wrong["public_id"], "wrong_answer")]
