"""The chaos run's two-minute version: processes, services, connections, messages and clocks break, and nothing is lost.

`make chaos` is the full one; docs/reliability.md has its report.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.chaos.__main__ import NOT_HERE

REPOSITORY = Path(__file__).parents[2]
SEED = 20261121
PATIENCE_S = 1500


def start(tmp_path: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.chaos", "--quick", "--seed", str(SEED), *arguments]
    environ = {**os.environ, "PYTHONPATH": str(REPOSITORY), "TMPDIR": "/tmp"}
    logs = ("--logs", str(tmp_path / "logs"))
    return subprocess.Popen(
        [*command, *logs], cwd=REPOSITORY, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def leftovers(process: subprocess.Popen[str]) -> list[str]:
    """Processes that still run from a folder of the run's."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"ladder-chaos-of-{process.pid}-".encode() in path.read_bytes():
                found.append(path.parent.name)
        except OSError:
            continue
    return found


def holds_within(seconds: float, condition: Callable[[], bool]) -> bool:
    """Whether it holds at some time until then."""
    deadline = time.monotonic() + seconds
    while not (holds := condition()) and time.monotonic() < deadline:
        time.sleep(0.2)
    return holds


@pytest.fixture(autouse=True)
def _services() -> None:
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is not on this machine")


@pytest.mark.postgres
@pytest.mark.redis
@pytest.mark.timeout(PATIENCE_S + 60)
def test_nothing_is_lost_while_everything_breaks(tmp_path):
    report = tmp_path / "report.json"
    with start(tmp_path, "--report", str(report)) as process:
        said, _ = process.communicate(timeout=PATIENCE_S)
    if process.returncode == NOT_HERE:
        pytest.skip(said.splitlines()[-1])
    assert process.returncode == 0, said[-6000:]
    found = json.loads(report.read_text(encoding="utf-8"))
    assert found["passed"]
    assert found["broken"] == []
    assert found["measures"]["accepted"] > 130
    assert found["compared_with_fault_free"] > 130
    # It was not quiet: most kinds of fault came, and what they cost was made good.
    assert len(found["measures"]["faults"]) > 15
    assert found["measures"]["attempts"].get("lost", 0) + found["measures"]["attempts"].get("failed", 0) > 3
    assert sum(found["measures"]["deaths"].values()) > 3


@pytest.mark.postgres
@pytest.mark.redis
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_interrupted_leaves_nothing_behind(tmp_path, number):
    with start(tmp_path, "--no-calm") as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "not on this machine" in line:
                pytest.skip(line.strip())
            if "submissions," in line:
                break
        assert holds_within(60, lambda: len(leftovers(process)) > 8)
        process.send_signal(number)
        assert process.wait(120) == 130
    assert leftovers(process) == []
    assert f"ladder-chaos-of-{process.pid}-" not in Path("/proc/mounts").read_text(encoding="utf-8")
    assert not list(Path("/tmp").glob(f"ladder-chaos-of-{process.pid}-*"))
