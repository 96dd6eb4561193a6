from __future__ import annotations

import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from threading import Event, Thread

import pytest

from autograder.contract import Work
from worker.gpulock import GpuLock
from worker.node_errors import HandedBackError

REPOSITORY = Path(__file__).parents[2]


def test_checks_run_side_by_side_and_no_check_beside_a_measurement(tmp_path):
    one, two = GpuLock(tmp_path, "GPU-a"), GpuLock(tmp_path, "GPU-a")
    with one.held(Work.check, patience_s=0), two.held(Work.check, patience_s=0):
        pass
    for mine, other in [(Work.measure, Work.check), (Work.check, Work.measure), (Work.all, Work.measure)]:
        with (
            one.held(mine, patience_s=0),
            pytest.raises(HandedBackError, match="in use"),
            two.held(other, patience_s=0),
        ):
            pass


def test_another_gpu_has_another_lock_and_no_gpu_has_none(tmp_path):
    with ExitStack() as held:
        for uuid in ("GPU-a", "GPU-b", "", ""):
            held.enter_context(GpuLock(tmp_path / "locks", uuid).held(Work.measure, patience_s=0))
    assert {path.name for path in (tmp_path / "locks").iterdir()} == {
        "GPU-a.lock", "GPU-a.turn", "GPU-b.lock", "GPU-b.turn",
    }  # fmt: skip


def test_a_measurement_that_waits_is_not_overtaken_by_checks(tmp_path):
    order: list[str] = []
    waiting, first = Event(), GpuLock(tmp_path, "GPU-a")

    def measure():
        def wait(seconds):
            waiting.set()
            time.sleep(seconds)

        with GpuLock(tmp_path, "GPU-a").held(Work.measure, patience_s=60, wait=wait):
            order.append("measure")

    def check():
        with GpuLock(tmp_path, "GPU-a").held(Work.check, patience_s=60):
            order.append("check")

    with first.held(Work.check, patience_s=0):
        measuring = Thread(target=measure)
        measuring.start()
        assert waiting.wait(60)
        checking = Thread(target=check)
        checking.start()
        time.sleep(0.3)
        assert order == []
    measuring.join()
    checking.join()
    assert order == ["measure", "check"]


def test_what_a_killed_holder_held_is_free(tmp_path):
    program = (
        "import sys, time; from pathlib import Path; from autograder.contract import Work;"
        "from worker.gpulock import GpuLock\n"
        "with GpuLock(Path(sys.argv[1]), 'GPU-a').held(Work.measure, patience_s=0):\n"
        "    print('held', flush=True); time.sleep(600)"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True
    )
    with other:
        assert other.stdout.readline() == "held\n"
        with pytest.raises(HandedBackError), GpuLock(tmp_path, "GPU-a").held(Work.check, patience_s=0):
            pass
        other.kill()
        other.wait()
    with GpuLock(tmp_path, "GPU-a").held(Work.measure, patience_s=30):
        pass


def test_whoever_waits_can_be_called_off(tmp_path):
    def stopped(_):
        raise HandedBackError("the node was stopped")

    with GpuLock(tmp_path, "GPU-a").held(Work.measure, patience_s=0):
        late = GpuLock(tmp_path, "GPU-a").held(Work.check, patience_s=60, wait=stopped)
        with pytest.raises(HandedBackError, match="stopped"), late:
            pass
    with GpuLock(tmp_path, "GPU-a").held(Work.measure, patience_s=0):
        pass
