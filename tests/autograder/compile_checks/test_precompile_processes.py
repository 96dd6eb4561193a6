"""The processes that compile beside each other: who is waited for, who is ended, and what is built by whom."""

from __future__ import annotations

import gc
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from triton.runtime import build

from autograder.compile_checks import dry, precompile, triton_session
from autograder.compile_checks.messages import DryCase
from autograder.contract import Language
from autograder.protocol import Load

LOAD = Load("", "mine.py", Language.triton, "entry", ())
LONG_S = 200.0


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], list[str]]]:
    """What processes said: the files of a folder."""
    monkeypatch.chdir(tmp_path)
    yield lambda: sorted(path.name for path in tmp_path.iterdir())
    gc.unfreeze()


def say(word: str) -> None:
    Path(word).touch()


def cases(*names: str) -> list[DryCase]:
    return [DryCase(name, (), {}, ()) for name in names]


# --- shares -----------------------------------------------------------------------------------------------------------


def called(monkeypatch: pytest.MonkeyPatch, call: Callable[[str], None]) -> None:
    """Have the call of a case be this."""

    def call_all(_: Load, share: list[DryCase]) -> None:
        for case in share:
            call(case.name)

    monkeypatch.setattr(precompile, "_call_all", call_all)


def all_called(shares: list[list[DryCase]], deadline: float) -> None:
    precompile._all_called(LOAD, shares, precompile._Launchers(precompile._Firsts()), deadline)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 16])
def test_every_share_is_called_once_in_a_process_of_its_own(
    said: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    called(monkeypatch, lambda name: say(f"{name} {os.getpid()}"))
    all_called([cases(f"c{number}") for number in range(count)], time.monotonic() + LONG_S)
    names, pids = zip(*(one.split() for one in said()), strict=True)
    assert sorted(names) == sorted(f"c{number}" for number in range(count))
    assert len(set(pids)) == count
    assert str(os.getpid()) not in pids


def test_who_ends_itself_takes_nobody_along(said: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    """The first process has started half of the others, which has started half of the rest."""

    def call(name: str) -> None:
        if name == "c0":
            os.kill(os.getpid(), signal.SIGKILL)
        if name == "c2":
            raise KeyboardInterrupt
        time.sleep(0.2)
        say(name)

    called(monkeypatch, call)
    all_called([cases(f"c{number}") for number in range(6)], time.monotonic() + LONG_S)
    assert said() == ["c1", "c3", "c4", "c5"]


@pytest.mark.full("slow")
def test_nobody_is_waited_for_longer_than_there_is_time(
    said: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def call(name: str) -> None:
        say(f"{name} {os.getpid()}")
        if name != "c1":
            time.sleep(600)

    called(monkeypatch, call)
    started = time.monotonic()
    all_called([cases(f"c{number}") for number in range(4)], started + 5.0)
    assert time.monotonic() - started < LONG_S
    pids = [int(one.split()[1]) for one in said()]
    assert len(pids) == 4
    until = time.monotonic() + LONG_S
    while any(is_at_work(pid) for pid in pids):
        assert time.monotonic() < until
        time.sleep(0.01)


def is_at_work(pid: int) -> bool:
    """Neither gone nor waiting to be asked how it ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.full("slow")
def test_who_leaves_the_group_is_waited_for_no_longer(
    said: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is ended with its container; this process must not wait for it."""

    def call(name: str) -> None:
        say(f"{name} {os.getpid()}")
        os.setpgid(0, os.getpgid(os.getppid()))
        say("has left")
        time.sleep(600)

    called(monkeypatch, call)
    started = time.monotonic()
    all_called([cases("c0")], started + 5.0)
    assert time.monotonic() - started < LONG_S
    one, left = said()
    assert left == "has left"
    assert not is_at_work(int(one.split()[1]))


def test_nobody_waits_for_what_a_case_has_started(
    said: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file may have helpers of its own: they hold all that it holds, and go with the container."""
    helpers: list[int] = []

    def call(name: str) -> None:
        has_left, leaves = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.setsid()
            os.write(leaves, b".")
            time.sleep(LONG_S)
            os._exit(0)
        # Who is still of the group is ended with it.
        os.read(has_left, 1)
        say(f"{name} {pid}")

    called(monkeypatch, call)
    started = time.monotonic()
    try:
        all_called([cases("c0"), cases("c1")], started + 2 * LONG_S)
        helpers += (int(one.split()[1]) for one in said())
        assert all(is_at_work(pid) for pid in helpers)
        assert len(helpers) == 2
    finally:
        for pid in helpers:
            os.kill(pid, signal.SIGKILL)


# --- launchers --------------------------------------------------------------------------------------------------------


@pytest.fixture
def launchers(said: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch) -> precompile._Launchers:
    """Whose building says by which process it was done."""
    del said
    monkeypatch.setattr(precompile, "_ARE_BUILT", True)
    monkeypatch.setattr(precompile, "CudaLauncher", lambda src, _: say(f"{src.signature['x']} {os.getpid()}"))
    return precompile._Launchers(precompile._Firsts())


def source(kind: str) -> Any:
    return SimpleNamespace(signature={"x": kind, "n": "i32"})


@pytest.fixture
def forked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Processes that were started."""
    pids: list[int] = []
    fork = os.fork

    def noted() -> int:
        pid = fork()
        if pid:
            pids.append(pid)
        return pid

    monkeypatch.setattr(os, "fork", noted)
    return pids


def test_a_launcher_is_built_beside_its_kernel_and_once(
    said: Callable[[], list[str]], launchers: precompile._Launchers, forked: list[int]
) -> None:
    for _ in range(2):
        launchers.begin(source("*fp32"))
        launchers.after_compiling()(source("*fp32"), SimpleNamespace())
    assert len(forked) == 1
    launchers.wait()
    (built,) = said()
    assert built.split()[0] == "*fp32"
    assert built.split()[1] != str(os.getpid())


def test_what_launches_descriptors_waits_for_what_the_compiler_makes_of_them(
    said: Callable[[], list[str]], launchers: precompile._Launchers, forked: list[int]
) -> None:
    kind = "tensordesc<fp16[64, 64]>"
    launchers.begin(source(kind))
    assert not forked
    for meta in ([{"swizzle": 3}], [{"swizzle": 3}], [{"swizzle": 1}]):
        launchers.after_compiling()(source(kind), SimpleNamespace(tensordesc_meta=meta))
    assert said() == [f"{kind} {os.getpid()}"]


def test_a_launcher_that_cannot_be_built_is_nobodys_problem(
    monkeypatch: pytest.MonkeyPatch, launchers: precompile._Launchers, forked: list[int]
) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("no compiler")

    monkeypatch.setattr(precompile, "CudaLauncher", fails)
    launchers.begin(source("*i32"))
    assert [os.waitpid(pid, 0)[1] for pid in forked] == [0]
    launchers.after_compiling()(source("*i64"), SimpleNamespace())


def test_a_triton_that_needs_no_launchers_has_none_built(
    monkeypatch: pytest.MonkeyPatch, launchers: precompile._Launchers, forked: list[int]
) -> None:
    monkeypatch.setattr(precompile, "_ARE_BUILT", False)
    launchers.begin(source("*fp32"))
    assert not forked


def test_where_no_process_can_be_had_the_kernel_is_compiled_all_the_same(
    monkeypatch: pytest.MonkeyPatch, launchers: precompile._Launchers
) -> None:
    def fork() -> int:
        raise BlockingIOError

    monkeypatch.setattr(os, "fork", fork)
    launchers.begin(source("*fp32"))
    launchers.wait()


def test_the_c_compiler_optimises_no_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Any, ...]] = []

    def build_it(name: str, ccflags: list[str], language: str = "c") -> str:
        asked.append((name, ccflags, language))
        return "made"

    monkeypatch.setattr(build, "_build", build_it)
    precompile._optimise_no_launcher()
    assert cast("Any", build)._build("one", ["-g"], language="c++") == "made"
    assert asked == [("one", ["-g", "-O0"], "c++")]


def test_a_triton_that_builds_otherwise_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def build_it(name: str) -> str:
        return name

    monkeypatch.setattr(build, "_build", build_it)
    precompile._optimise_no_launcher()
    assert cast("Any", build)._build is build_it


# --- cases of a compile check -----------------------------------------------------------------------------------------


def beside(monkeypatch: pytest.MonkeyPatch, call: Callable[[str], None], *names: str, patience_s: float) -> Any:
    monkeypatch.setattr(dry, "entry_of", lambda _: None)
    monkeypatch.setattr(dry, "call", lambda _entry, _names, case: call(case.name))
    return triton_session._Beside(LOAD, cases(*names), patience_s)


def test_a_case_has_been_called_when_it_is_its_turn(
    said: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def call(name: str) -> None:
        time.sleep(0.3 if name == "first" else 0.6)
        say(name)

    ahead = beside(monkeypatch, call, "first", "second", patience_s=LONG_S)
    ahead.wait()
    assert "first" in said()
    ahead.wait()
    assert said() == ["first", "second"]
    ahead.wait()
    ahead.end()


def test_who_takes_too_long_beside_is_ended(said: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    ahead = beside(monkeypatch, lambda _: time.sleep(600), "first", "second", patience_s=0.5)
    assert len(ahead._running) == 2
    started = time.monotonic()
    ahead.wait()
    ahead.end()
    assert time.monotonic() - started < LONG_S
    assert ahead._running == []
    assert said() == []


def test_a_submission_that_waits_for_all_processes_ends_nothing_of_ours(
    said: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    handled = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        ahead = beside(monkeypatch, say, "first", "second", patience_s=LONG_S)
        ahead.wait()
        ahead.wait()
    finally:
        signal.signal(signal.SIGCHLD, handled)
    assert said() == ["first", "second"]
