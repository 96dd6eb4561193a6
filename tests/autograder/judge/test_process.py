"""The judge as a process: folders in, lines out, whatever happens."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from autograder import codec
from autograder.assignment import Limits, load_assignment
from autograder.contract import Event, GradeRequest, GradeResult, Lane, Language, Mode, Phase, Verdict, Work
from autograder.errors import GpuError
from autograder.judge.__main__ import BROKEN, Server
from autograder.judge.compile import cross_compile
from autograder.judge.correctness import explain
from autograder.judge.protocol import devices
from autograder.judge.protocol.host import HostDevice
from autograder.judge.protocol.loading import limits_of, limits_on
from autograder.sandbox import Purpose, RunnerLimits
from autograder.sandbox.process import ProcessSandbox
from tests.autograder.grading_bench import ASSIGNMENT, FIXTURES, GOOD, REFERENCE, body

COMMAND = [sys.executable, "-m", "autograder.judge"]
ROOTS = ["--assignments", str(FIXTURES / "assignments"), "--reference", str(FIXTURES / "reference")]
HERE = Path(__file__).parents[3]


def attempt(
    folder: Path, source: str = GOOD, *, bundle: bool = True, mode: Mode = Mode.run, work: Work = Work.all
) -> Path:
    """An attempt's folder as a worker stages it."""
    folder.mkdir()
    request = GradeRequest("double", "", Language.triton, Lane.cpu, mode, source, "double.py", work)
    (folder / "request.json").write_text(codec.dumps(request), encoding="utf-8")
    if bundle:
        for place, staged in ((ASSIGNMENT, "assignments"), (REFERENCE, "reference")):
            into = folder / "bundle" / staged / "double"
            shutil.copytree(place, into, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


class Judge:
    """A serving judge."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, *ROOTS, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=HERE
        )

    def job(self, line: str) -> list[Event]:
        """Send one line, and read events up to the result."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        events: list[Event] = []
        while not events or events[-1].result is None:
            events.append(codec.loads(Event, self.process.stdout.readline()))
        return events

    def grade(self, folder: Path) -> GradeResult:
        result = self.job(json.dumps({"folder": str(folder)}))[-1].result
        assert result
        return result

    def close(self) -> int:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait(60)


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    served = Judge()
    yield served
    assert served.close() == 0


@pytest.mark.full("slow")
def test_a_folder_is_answered_with_events_and_a_result(judge: Judge, tmp_path: Path) -> None:
    folder = attempt(tmp_path / "1")
    events = judge.job(json.dumps({"folder": str(folder)}))
    assert [event.phase.phase for event in events if event.phase] == [
        Phase.preparing,
        Phase.compiling,
        Phase.checking,
        Phase.reporting,
    ]
    assert [event.case.index for event in events if event.case] == [0, 1, 2]
    assert events[-1].result == codec.loads(GradeResult, (folder / "result.json").read_bytes())
    assert events[-1].result is not None
    assert events[-1].result.verdict is Verdict.passed
    assert not (folder / "result.json.new").exists()


def test_without_a_bundle_the_folders_given_are_used(judge: Judge, tmp_path: Path) -> None:
    result = judge.grade(attempt(tmp_path / "1", bundle=False, mode=Mode.submission))
    assert (result.verdict, len(result.cases)) == (Verdict.passed, 5)


def test_a_bundle_without_a_reference_is_a_students_machine(judge: Judge, tmp_path: Path) -> None:
    folder = attempt(tmp_path / "1", mode=Mode.submission)
    shutil.rmtree(folder / "bundle" / "reference")
    result = judge.grade(folder)
    assert (result.verdict, len(result.cases)) == (Verdict.passed, 3)


@pytest.mark.parametrize(
    "line", ["not json", "3", "{}", '{"folder": 3}', '{"folder": "/nowhere/at/all"}', '{"folder": "\\u0000"}', "[1]"]
)
def test_a_job_that_is_none_is_ours_and_the_next_one_is_graded(judge: Judge, tmp_path: Path, line: str) -> None:
    result = judge.job(line)[-1].result
    assert result is not None
    assert result.verdict is Verdict.grader_error
    assert judge.grade(attempt(tmp_path / "1")).verdict is Verdict.passed


@pytest.mark.parametrize(("work", "cases", "measured"), [(Work.check, 5, 0), (Work.measure, 1, 1), (Work.all, 5, 1)])
def test_a_request_says_which_half_is_wanted(
    judge: Judge, tmp_path: Path, work: Work, cases: int, measured: int
) -> None:
    result = judge.grade(attempt(tmp_path / "1", mode=Mode.submission, work=work))
    assert (result.verdict, len(result.cases), len(result.measurements)) == (Verdict.passed, cases, measured)


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff", b"[" * 10_000])
def test_a_request_that_is_none_is_ours(judge: Judge, tmp_path: Path, content: bytes) -> None:
    folder = attempt(tmp_path / "1")
    (folder / "request.json").write_bytes(content)
    assert judge.grade(folder).verdict is Verdict.grader_error


def test_an_assignment_that_prints_and_raises_does_not_disturb_the_lines(judge: Judge, tmp_path: Path) -> None:
    folder = attempt(tmp_path / "1")
    problem = folder / "bundle" / "assignments" / "double" / "problem.py"
    problem.write_text("import os\nprint('hello')\nos.system('echo hello')\nraise KeyError(1)\n", encoding="utf-8")
    assert judge.grade(folder).verdict is Verdict.grader_error
    assert judge.grade(attempt(tmp_path / "2")).verdict is Verdict.passed


def test_a_hostile_submission_does_not_stop_the_judge(judge: Judge, tmp_path: Path) -> None:
    hostile = body("os.kill(os.getppid(), 9)\nos.kill(0, 9)")
    assert judge.grade(attempt(tmp_path / "1", hostile)).verdict is not Verdict.grader_error
    assert judge.grade(attempt(tmp_path / "2")).verdict is Verdict.passed


def test_nothing_is_compiled_into_a_bundle(judge: Judge, tmp_path: Path) -> None:
    folder = attempt(tmp_path / "1")
    judge.grade(folder)
    assert not list(folder.rglob("__pycache__"))


@pytest.mark.full("slow")
@pytest.mark.parametrize(("source", "verdict", "status"), [(GOOD, "passed", 0), ("x = 1\n", "compile_error", 0)])
def test_once_grades_one_folder_and_ends(tmp_path: Path, source: str, verdict: str, status: int) -> None:
    folder = attempt(tmp_path / "1", source)
    done = subprocess.run(
        [*COMMAND, "once", str(folder)], capture_output=True, text=True, timeout=120, check=False, cwd=HERE
    )
    assert done.returncode == status, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["result"]["verdict"] == verdict
    assert json.loads((folder / "result.json").read_text(encoding="utf-8"))["verdict"] == verdict


def test_once_says_by_its_status_that_something_of_ours_failed(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(HERE)}
    done = subprocess.run(
        [*COMMAND, "once", str(tmp_path)], capture_output=True, text=True, timeout=120, check=False, env=environment
    )
    assert done.returncode == 1
    assert "grader_error" in done.stdout


class BrokenHost(HostDevice):
    """A device that a fault has made unusable for this process."""

    def works(self) -> bool:
        return False


@pytest.mark.parametrize("works", [True, False])
def test_a_judge_that_cannot_use_its_device_any_more_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, works: bool
) -> None:
    monkeypatch.setattr(devices, "of", lambda _: HostDevice() if works else BrokenHost())
    out = io.StringIO()
    folder = attempt(tmp_path / "one")
    (folder / "bundle" / "assignments" / "double" / "problem.py").unlink()
    sandbox = ProcessSandbox()
    server = Server(folder, None, sandbox, out)
    try:
        with nullcontext() if works else pytest.raises(SystemExit, match=str(BROKEN)):
            server.job(json.dumps({"folder": str(folder)}))
    finally:
        server.close()
    # The job is answered all the same.
    assert codec.loads(Event, out.getvalue().splitlines()[-1]).result
    assert json.loads((folder / "result.json").read_text())["verdict"] == Verdict.grader_error


class Expecting(ProcessSandbox):
    """Notes what it is to be ready for."""

    def __init__(self) -> None:
        super().__init__()
        self.expected: list[tuple[RunnerLimits, Lane, Purpose]] = []

    def prewarm(
        self, limits: RunnerLimits, language: Language, lane: Lane = Lane.cpu, *, purpose: Purpose = Purpose.call
    ) -> None:
        assert language is Language.triton
        self.expected.append((limits, lane, purpose))


@pytest.mark.parametrize("lane", [Lane.cpu, Lane.h200])
def test_a_judge_is_ready_for_the_runners_of_its_lane(lane: Lane, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it expects are the very kinds that a first job asks for: containers that wait are kept by their limits."""
    rehearsed: list[object] = []
    monkeypatch.setattr(devices, "of", lambda _: HostDevice())
    monkeypatch.setattr(explain, "rehearse", rehearsed.append)
    sandbox = Expecting()
    server = Server(ASSIGNMENT.parent, REFERENCE.parent, sandbox, io.StringIO())
    server.warm([Language.triton], lane)
    server.close()
    assert rehearsed == ([] if lane is Lane.cpu else [HostDevice().where])
    rung = load_assignment(HERE / "assignments" / "vector_add")
    assert set(sandbox.expected) == {
        (limits_of(rung, lane), lane, Purpose.call),
        (cross_compile.LIMITS, Lane.cpu, Purpose.compile),
        (cross_compile.LIMITS, Lane.cpu, Purpose.read),
    }


def test_what_cannot_be_rehearsed_is_the_first_wrong_ones_to_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(_: object) -> None:
        raise RuntimeError("CUDA out of memory")

    monkeypatch.setattr(devices, "of", lambda _: HostDevice())
    monkeypatch.setattr(explain, "rehearse", no_memory)
    server = Server(ASSIGNMENT.parent, REFERENCE.parent, Expecting(), io.StringIO())
    server.warm([Language.triton], Lane.h200)
    server.close()


def test_something_wrong_can_be_explained_before_anything_is() -> None:
    explain.rehearse(HostDevice().where)


def test_a_lane_that_is_not_there_is_the_first_jobs_to_fail_at(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_: Lane) -> HostDevice:
        raise GpuError("there is none")

    monkeypatch.setattr(devices, "of", none)
    sandbox = Expecting()
    server = Server(ASSIGNMENT.parent, REFERENCE.parent, sandbox, io.StringIO())
    server.warm([Language.triton], Lane.h200)
    server.close()
    assert sandbox.expected


def test_a_sandbox_of_processes_imports_what_it_is_to_expect(bench_limits: RunnerLimits) -> None:
    sandbox = ProcessSandbox()
    sandbox.prewarm(bench_limits, Language.triton)
    zygote = sandbox._zygotes[Language.triton, Lane.cpu, Purpose.call]
    runner = sandbox.start(bench_limits, Language.triton)
    assert sandbox._zygotes == {(Language.triton, Lane.cpu, Purpose.call): zygote}
    runner.close()
    sandbox.close()


@pytest.fixture
def bench_limits() -> RunnerLimits:
    return limits_on(Lane.cpu, Limits())
