"""What a runner's tree has spent: by control groups, by `/proc`, and never less than before."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from autograder.sandbox import Spent, tree
from autograder.sandbox.meter import Meter, meter, waited_s
from autograder.sandbox.tree import processor_ticks

SPIN = "import time\nwhile time.process_time() < {}: pass\n"


def write(folder: Path, **files: str) -> str:
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    return str(folder)


def test_a_group_of_version_2_tells_of_both(tmp_path: Path) -> None:
    pressure = "some avg10=0.00 avg60=0.00 avg300=0.00 total=2500000\nfull avg10=0.00 total=1\n"
    folder = write(tmp_path, cpu_stat="usage_usec 1500000\nuser_usec 1\n", cpu_pressure=pressure)
    assert meter(os.getpid(), folder).read() == Spent(1.5, 2.5)


def test_a_group_of_version_1_tells_of_processor_time(tmp_path: Path) -> None:
    (tmp_path / "cpuacct.usage").write_text("1500000000\n")
    assert meter(os.getpid(), "", str(tmp_path)).read().processor_s == 1.5


def test_what_has_ended_and_was_reaped_counts() -> None:
    before = processor_ticks(os.getpid())
    subprocess.run([sys.executable, "-c", SPIN.format(0.3)], check=True)
    assert processor_ticks(os.getpid()) >= before + 0.25 * os.sysconf("SC_CLK_TCK")


def test_who_lives_below_counts_in_whatever_session() -> None:
    with subprocess.Popen([sys.executable, "-c", SPIN.format(60)], start_new_session=True) as child:
        before = processor_ticks(os.getpid())
        until = time.monotonic() + 60
        while (found := processor_ticks(os.getpid())) <= before + 20 and time.monotonic() < until:
            time.sleep(0.05)
        child.send_signal(signal.SIGKILL)
    assert found > before + 20


TWO = """
import os, time
core = min(os.sched_getaffinity(0))
os.sched_setaffinity(0, {core})
other = os.fork()
end = time.process_time() + 0.4
while time.process_time() < end:
    pass
print(flush=True)
time.sleep(60)
"""


def test_who_waits_for_a_processor_is_told_from_who_sleeps() -> None:
    """Two share a core: both lose as much as they compute, and nothing while they sleep."""
    with subprocess.Popen([sys.executable, "-c", TWO], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.read(2)
        busy_s = tree.waited_s(child.pid)
        time.sleep(0.5)
        asleep_s = tree.waited_s(child.pid)
        for pid in (*tree.descendants(child.pid), child.pid):
            os.kill(pid, signal.SIGKILL)
    assert busy_s is not None
    assert asleep_s is not None
    assert busy_s > 0.3
    assert asleep_s - busy_s < 0.5


def test_it_never_goes_down() -> None:
    said: list[float | None] = [1.0, 5.0, 2.0, None]
    waited: list[float | None] = [1.0, 4.0, None, 3.0]
    read = Meter([lambda: said.pop(0)], [lambda: waited.pop(0)])
    assert [read.read() for _ in range(3)] == [Spent(5.0, 4.0), Spent(5.0, 4.0), Spent(5.0, 4.0)]


@pytest.mark.parametrize("text", ["", "some avg10=0.00", "total=x"])
def test_a_machine_that_does_not_tell_of_waiting(tmp_path: Path, text: str) -> None:
    (tmp_path / "cpu").write_text(text)
    assert waited_s(str(tmp_path / "cpu")) is None
    assert waited_s(str(tmp_path / "none")) is None
