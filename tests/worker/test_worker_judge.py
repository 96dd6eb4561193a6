from __future__ import annotations

import os
import resource
import sys
import time
from pathlib import Path

import pytest

from autograder import codec
from autograder.contract import GradeRequest, GradeResult, Lane, Language, Mode, Phase, Verdict
from worker.judge import JudgeProcess
from worker.node_errors import JudgeBrokenError, JudgeDiedError, JudgeSilentError
from worker.processes import descendants, kill_tree

REPOSITORY = Path(__file__).parents[2]
DOUBLE = (sys.executable, str(REPOSITORY / "tests" / "doubles" / "judge.py"))


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))


@pytest.fixture
def judge(tmp_path):
    made = JudgeProcess(DOUBLE, tmp_path / "judge.log")
    yield made
    made.kill()


@pytest.fixture
def staged(tmp_path):
    """A folder with a source that tells the double what to do."""

    def stage(*directives):
        folder = tmp_path / f"attempt{len(list(tmp_path.iterdir()))}"
        (folder / "bundle" / "assignments" / "vector_add").mkdir(parents=True)
        source = "".join(f"# judge: {line}\n" for line in directives)
        request = GradeRequest("vector_add", "", Language.triton, Lane.cpu, Mode.submission, source, "kernel.py")
        (folder / "request.json").write_text(codec.dumps(request))
        return folder

    return stage


def grade(judge, folder, deadline_s=60.0):
    return list(judge.grade(folder, deadline_s=deadline_s))


def gone(pid):
    """It ends, or has ended."""
    give_up_at = time.monotonic() + 30
    while time.monotonic() < give_up_at:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def test_events_come_one_by_one_and_the_result_last(judge, staged):
    folder = staged("verdict wrong_answer")
    events = grade(judge, folder)
    assert [event.phase.phase for event in events if event.phase] == [
        Phase.preparing,
        Phase.checking,
        Phase.measuring,
    ]
    assert [event.case.index for event in events if event.case] == [0, 1, 2]
    assert events[-1].result.verdict is Verdict.wrong_answer
    assert codec.loads(GradeResult, (folder / "result.json").read_text()) == events[-1].result


def test_one_process_grades_many_folders(judge, staged):
    judge.start()
    pid = judge.pid
    for ratio in ("0.5", "2.0"):
        assert grade(judge, staged(f"ratio {ratio}"))[-1].result.measurements[0].ratio == float(ratio)
    assert judge.pid == pid


def test_a_worker_with_many_descriptors_hears_its_judge(judge, staged):
    """`select.select` ends at 1023."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2400:
        pytest.skip(f"this process may have {hard} descriptors only")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2400), hard))
    taken = [os.open("/dev/null", os.O_RDONLY) for _ in range(1200)]
    try:
        assert grade(judge, staged())[-1].result.verdict is Verdict.passed
        assert judge._pidfd > 1023
    finally:
        for descriptor in taken:
            os.close(descriptor)
        judge.kill()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize(
    ("directive", "error"),
    [("die", JudgeDiedError), ("garbage", JudgeBrokenError), ("flood", JudgeBrokenError), ("silent", JudgeSilentError)],
)
def test_a_judge_that_breaks_is_found_out_and_replaced(judge, staged, directive, error):
    deadline_s = 1.0 if directive == "silent" else 60.0
    with pytest.raises(error):
        grade(judge, staged(directive), deadline_s)
    judge.kill()
    assert grade(judge, staged())[-1].result.verdict is Verdict.passed


def test_a_judge_that_dies_is_found_out_although_its_child_holds_its_output(judge, staged, tmp_path):
    orphan = tmp_path / "orphan"
    began = time.monotonic()
    with pytest.raises(JudgeDiedError, match="-9"):
        grade(judge, staged(f"leave_child {orphan}", "die"), deadline_s=600)
    assert time.monotonic() - began < 300
    kill_tree(int(orphan.read_text()))


def test_killing_a_judge_kills_what_it_started_even_in_another_session(judge, staged, tmp_path):
    orphan = tmp_path / "orphan"
    events = judge.grade(staged(f"leave_child {orphan}", "silent"), deadline_s=600)
    assert next(events).phase is not None
    while not orphan.exists() or not orphan.read_text():
        time.sleep(0.01)
    pid, child = judge.pid, int(orphan.read_text())
    assert child in descendants(pid)
    judge.kill()
    assert gone(pid)
    assert gone(child)


def test_a_judge_that_no_signal_ends_is_left_behind_and_replaced(judge, staged, monkeypatch, caplog):
    """A call into a driver that hangs: SIGKILL waits for it."""
    events = judge.grade(staged("silent"), deadline_s=600)
    next(events)
    process, pidfd = judge._process, judge._pidfd
    with monkeypatch.context() as hanging:
        hanging.setattr("worker.judge.kill_tree", lambda _pid: None)
        hanging.setattr("worker.judge.EXIT_S", 0.1)
        judge.kill()
    assert process.poll() is None
    assert f"process {process.pid}" in caplog.text
    assert (process.stdin.closed, process.stdout.closed) == (True, True)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(pidfd)
    assert grade(judge, staged())[-1].result.verdict is Verdict.passed
    kill_tree(process.pid)
    process.wait(30)


def test_closing_lets_a_judge_end_by_itself(judge, staged):
    grade(judge, staged())
    pid = judge.pid
    judge.close()
    assert gone(pid)
    assert judge.pid is None


def test_a_judge_gets_neither_the_nodes_key_nor_the_brokers_address(judge, monkeypatch):
    monkeypatch.setenv("LADDER_NODE_KEY_FILE", "kn_secret")
    monkeypatch.setenv("LADDER_BROKER_URL", "redis://:password@localhost")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    judge.start()
    names = set()
    while "CUDA_VISIBLE_DEVICES" not in names:  # Until it has become the judge's program.
        environ = Path(f"/proc/{judge.pid}/environ").read_bytes()
        names = {item.partition(b"=")[0].decode() for item in environ.split(b"\0") if item}
    assert {name for name in names if name.startswith("LADDER")} == set()
    assert b"kn_secret" not in environ


def test_a_judge_dies_with_a_worker_that_is_killed(tmp_path, staged):
    """Its parent is another process here, which kills itself in the middle of a grading."""
    folder, note = staged("silent"), tmp_path / "pid"
    program = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom worker.judge import JudgeProcess\n"
        f"judge = JudgeProcess({DOUBLE!r}, Path({str(tmp_path / 'other.log')!r}))\n"
        f"next(judge.grade(Path({str(folder)!r}), deadline_s=600))\n"
        f"Path({str(note)!r}).write_text(str(judge.pid))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    status = os.spawnve(os.P_WAIT, sys.executable, [sys.executable, "-c", program], os.environ.copy())
    assert status == -9
    assert gone(int(note.read_text()))


def test_when_a_judge_has_ended_what_it_left_elsewhere_is_swept(tmp_path):
    """Containers are below a daemon; a frozen one notices nothing, and there may be no next judge."""
    alive = []
    made = JudgeProcess(DOUBLE, tmp_path / "judge.log", sweep=lambda: alive.append(Path(f"/proc/{pid}").exists()))
    made.kill()
    assert alive == [], "there was none"
    for end in (made.kill, made.close):
        made.start()
        pid = made.pid
        end()
    assert alive == [False, False]


@pytest.mark.parametrize("where", ["kill_tree", "end_orphans", "sweep"])
def test_who_is_interrupted_while_a_judge_is_killed_kills_it_once_more(tmp_path, monkeypatch, where):
    interrupts, swept = [KeyboardInterrupt], []

    def interrupted(done):
        def once(*args):
            if interrupts:
                raise interrupts.pop()
            return done(*args)

        return once

    def sweep():
        swept.append(True)

    # The orphans of this process are other tests' processes.
    steps = {"kill_tree": kill_tree, "end_orphans": lambda: None, "sweep": sweep}
    steps[where] = interrupted(steps[where])
    monkeypatch.setattr("worker.judge.kill_tree", steps["kill_tree"])
    monkeypatch.setattr("worker.judge.end_orphans", steps["end_orphans"])
    made = JudgeProcess(DOUBLE, tmp_path / "judge.log", adopt=True, sweep=steps["sweep"])
    made.start()
    pid = made.pid
    with pytest.raises(KeyboardInterrupt):
        made.kill()
    assert swept == []
    made.kill()
    assert (gone(pid), swept, made.pid) == (True, [True], None)


def test_a_log_that_has_grown_too_long_is_begun_anew(judge, tmp_path, monkeypatch):
    monkeypatch.setattr("worker.judge.MAX_LOG_BYTES", 10)
    log = tmp_path / "judge.log"
    log.write_text("short")
    judge.start()
    judge.kill()
    assert log.read_text().startswith("short")
    log.write_text("much longer than that")
    judge.start()
    assert log.read_text() == ""
