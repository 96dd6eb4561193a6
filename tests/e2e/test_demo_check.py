"""The judge on one's own machine: `ladder check` as a student types it, `ladder admin grade-file` as staff do."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from client.workspace import Note, write_note

REPOSITORY = Path(__file__).resolve().parents[2]
KERNELS = REPOSITORY / "scripts" / "demo"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What `ladder get vector_add` makes."""
    made = tmp_path / "vector_add"
    shutil.copytree(REPOSITORY / "assignments" / "vector_add", made)
    write_note(made, Note("http://127.0.0.1:1", "gpu-demo", "vector_add", "triton", "vector_add.py"))
    return made


def _ladder(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LADDER_")}
    command = [sys.executable, "-m", "client", *arguments]
    return subprocess.run(command, cwd=folder, env=clean, capture_output=True, text=True, timeout=200, check=False)


def test_a_right_kernel_passes_without_a_server(folder: Path) -> None:
    shutil.copy(KERNELS / "passed_correct.py", folder / "vector_add.py")
    done = _ladder(folder, "check")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout
    assert "(hidden)" not in done.stdout


def test_the_starter_runs_and_is_wrong(folder: Path) -> None:
    shutil.copy(folder / "starters" / "triton.py", folder / "vector_add.py")
    done = _ladder(folder, "check")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "wrong answer" in done.stdout


def test_the_judges_events_are_json_lines(folder: Path) -> None:
    shutil.copy(KERNELS / "runtime_error_crashes.py", folder / "vector_add.py")
    done = _ladder(folder, "check", "--json")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 1
    assert all(case["visibility"] == "public" for case in events[-1]["result"]["cases"])
    assert events[-1]["result"]["verdict"] == "runtime_error"
    assert next(event["phase"]["phase"] for event in events if event["phase"]) == "preparing"


def test_a_folder_that_is_no_assignment_is_said_to_be_none(tmp_path: Path) -> None:
    (tmp_path / "vector_add.py").write_text("pass\n")
    done = _ladder(tmp_path, "check", "vector_add.py")
    assert done.returncode == 2
    assert "ladder get vector_add" in done.stderr


def test_staff_see_the_hidden_cases_of_a_file(tmp_path: Path) -> None:
    done = _ladder(REPOSITORY, "admin", "grade-file", "vector_add", str(KERNELS / "passed_correct.py"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "(hidden)" in done.stdout
    assert "n=" in done.stdout


def test_grading_a_file_needs_the_staffs_folder(tmp_path: Path) -> None:
    done = _ladder(tmp_path, "admin", "grade-file", "vector_add", str(KERNELS / "passed_correct.py"))
    assert done.returncode == 2
    assert "--reference" in done.stderr
