from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.doubles.nvml import FakeNvml
from worker import baseline
from worker.baseline import Hygiene, below_this_process, in_groups_of, take
from worker.nvml import open_gpu

GIB = 2**30


@pytest.fixture
def child():
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as process:
        yield process.pid
        process.kill()


def hygiene(fake, ours=below_this_process):
    gpu = open_gpu(nvml=fake)
    return Hygiene(gpu, take(gpu), ours)


def test_a_judge_and_its_memory_are_ours_and_the_rest_is_as_it_was(child):
    fake = FakeNvml(processes=[(1, GIB)], used=GIB)
    watched = hygiene(fake)
    fake.processes.append((child, 3 * GIB))
    fake.used = 4 * GIB
    assert watched.after_job() == ""


def test_a_process_that_is_not_ours_is_named(child):
    fake = FakeNvml()
    watched = hygiene(fake, ours=lambda _: set())
    fake.processes.append((child, GIB))
    assert f"{child} (python" in watched.after_job()
    fake.processes.clear()
    assert watched.after_job() == ""


def test_memory_that_nobody_has_is_told(child):
    fake = FakeNvml(used=GIB)
    watched = hygiene(fake)
    fake.processes.append((child, 2 * GIB))
    fake.used = 3 * GIB + baseline.SLACK_BYTES
    assert watched.after_job() == ""
    fake.used += baseline.MEBIBYTE
    assert "MiB more than at the start" in watched.after_job()


def test_where_processes_are_out_of_sight_ours_have_an_allowance():
    fake = FakeNvml(processes=None, used=GIB)
    watched = hygiene(fake)
    fake.used = GIB + baseline.ALLOWANCE_BYTES
    assert watched.after_job() == ""
    fake.used += baseline.MEBIBYTE
    assert watched.after_job() != ""


def test_without_a_judge_nothing_of_ours_may_be_left(child):
    fake = FakeNvml(used=GIB)
    watched = hygiene(fake)
    fake.processes.append((child, None))
    assert str(child) in watched.strict(0.0)
    fake.processes.clear()
    fake.used = GIB + baseline.STRICT_SLACK_BYTES + 1
    assert "MiB more" in watched.strict(0.0)
    fake.used -= 1
    assert watched.strict(0.0) == ""


def test_memory_that_is_freed_late_is_waited_for():
    fake = FakeNvml(used=9 * GIB)
    gpu = open_gpu(nvml=fake)
    watched = Hygiene(gpu, baseline.Baseline(GIB, frozenset()), below_this_process)
    looks = iter([9 * GIB, 5 * GIB, GIB])
    gpu.used_bytes = lambda: next(looks)
    assert watched.strict(60.0, every_s=0.0) == ""


def test_too_many_of_ours_are_told():
    fake = FakeNvml()
    watched = hygiene(fake, ours=lambda pids: pids)
    fake.processes += [(1000 + number, 1) for number in range(baseline.MOST_OURS + 1)]
    assert "13 processes of ours" in watched.after_job()


def test_a_gpu_that_does_not_answer_is_not_as_it_was():
    fake = FakeNvml()
    watched = hygiene(fake)
    fake.answers = False
    assert "no longer answers" in watched.after_job()


def test_a_container_of_ours_is_known_by_its_control_group(child):
    group = baseline._groups(os.getpid()).strip().rpartition(":")[2] or "/"
    none = in_groups_of(lambda: frozenset({"there-is-no-such-container"}))
    known = in_groups_of(lambda: frozenset({group}))
    assert none({os.getppid(), child}) == {child}
    if baseline._groups(os.getppid()).strip().endswith(group):
        assert known({os.getppid(), child}) == {os.getppid(), child}
