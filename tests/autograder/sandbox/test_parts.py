"""The parts of the process sandbox by themselves: the filter, promises, folders, groups' places, output."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from autograder import toolchain
from autograder.errors import SandboxError
from autograder.sandbox import Promise, RunnerLimits, cgroups, removal, seccomp, tree, uids
from autograder.sandbox.cgroups import Freezer, Group, Layout
from autograder.sandbox.output import Output
from autograder.sandbox.plan import Features, Namespaces, Plan
from autograder.sandbox.process import promises
from autograder.sandbox.process_runner import ProcessRunner
from autograder.sandbox.zygote import Zygote

ALLOW, EPERM, ENOSYS, KILL = 0x7FFF0000, 0x00050001, 0x00050026, 0x80000000
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
HEADERS = {
    0: Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    1: Path("/usr/include/asm-generic/unistd.h"),
}


def run(steps: list[seccomp.Step], number: int, arguments: tuple[int, ...] = (), *, architecture: int) -> int:
    """What the kernel's machine for classic BPF would answer."""
    data = struct.pack("=iIQ6Q", number, architecture, 0, *[*arguments, 0, 0, 0, 0, 0, 0][:6])
    accumulator, place = 0, 0
    while True:
        step = steps[place]
        place += 1
        if step.code == 0x20:
            accumulator = struct.unpack_from("=I", data, step.value)[0]
        elif step.code == 0x54:
            accumulator &= step.value
        elif step.code == 0x06:
            return step.value
        else:
            holds = {
                0x15: accumulator == step.value,
                0x35: accumulator >= step.value,
                0x45: bool(accumulator & step.value),
            }
            place += step.yes if holds[step.code] else step.no


def ask(
    machine: str,
    number: int,
    *arguments: int,
    network: bool = False,
    signals_to: int | None = None,
    gpu: bool = False,
    profiler: bool = False,
) -> int:
    steps = seccomp.program(machine, network=network, signals_to=signals_to, gpu=gpu, profiler=profiler)
    return run(steps, number, arguments, architecture=ARCHITECTURES[machine])


@pytest.mark.parametrize(("machine", "column"), [("x86_64", 0), ("aarch64", 1)])
def test_every_listed_call_is_refused_and_ordinary_ones_are_not(machine: str, column: int) -> None:
    for calls in seccomp.REFUSED.values():
        for numbers in calls.values():
            assert ask(machine, numbers[column]) == EPERM
    assert ask(machine, 435) == ENOSYS
    assert ask(machine, seccomp.NEWEST) == ALLOW
    for newer in (seccomp.NEWEST + 1, 467, 470, 2**20, 2**30 - 1):
        assert ask(machine, newer) == ENOSYS
    for ordinary in ((0, 1, 9, 39), (63, 64, 222, 172))[column]:
        assert ask(machine, ordinary) == ALLOW


@pytest.mark.parametrize(("machine", "clone", "pair"), [("x86_64", 56, 53), ("aarch64", 220, 199)])
def test_calls_are_refused_by_their_arguments(machine: str, clone: int, pair: int) -> None:
    assert ask(machine, clone, 0x01200011) == ALLOW
    assert ask(machine, clone, 0x10000011) == EPERM
    assert ask(machine, pair, 1, 1) == ALLOW
    assert ask(machine, pair, 1, 5 | 0o2000000) == ALLOW
    assert ask(machine, pair, 1, 2) == EPERM
    assert ask(machine, pair, 1, 3) == EPERM
    assert ask(machine, pair, 2, 1) == EPERM
    assert ask(machine, pair, 1, 2, network=True) == ALLOW
    preadv2 = seccomp._BY_ARGUMENT["preadv2"][machine == "aarch64"]
    assert ask(machine, preadv2, 3, 0, 1, 0, 0, 0) == ALLOW
    assert ask(machine, preadv2, 3, 0, 1, 0, 0, os.RWF_NOWAIT) == EPERM


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_a_process_may_read_its_limits_and_set_all_but_that_on_core_files(machine: str) -> None:
    column, core, files, structure = machine == "aarch64", 4, 7, 0x7FFF_0000_0000
    prlimit, setrlimit = (seccomp._BY_ARGUMENT[name][column] for name in ("prlimit64", "setrlimit"))
    assert ask(machine, prlimit, 0, core, 0, structure) == ALLOW
    assert ask(machine, prlimit, 0, files, structure, 0) == ALLOW
    assert ask(machine, prlimit, 77, files, 0, structure) == EPERM
    for pointer in (1, structure, structure + 1):
        assert ask(machine, prlimit, 0, core, pointer, 0) == EPERM
    assert ask(machine, setrlimit, files, structure) == ALLOW
    assert ask(machine, setrlimit, core, structure) == EPERM


@pytest.mark.parametrize(("machine", "column"), [("x86_64", 0), ("aarch64", 1)])
def test_on_a_gpu_unix_sockets_are_the_only_other_thing(machine: str, column: int) -> None:
    calls = seccomp.REFUSED["sockets"]
    open_call, connect = calls["socket"][column], calls["connect"][column]
    assert ask(machine, open_call, 1, 2, gpu=True) == ALLOW
    for other in (2, 10, 16, 17, 40):
        assert ask(machine, open_call, other, 1, gpu=True) == EPERM
    assert ask(machine, connect, gpu=True) == EPERM
    assert [ask(machine, calls[name][column], gpu=True) for name in ("bind", "listen", "accept4")] == [ALLOW] * 3
    for group, members in seccomp.REFUSED.items():
        if group != "sockets":
            assert {ask(machine, numbers[column], gpu=True) for numbers in members.values()} == {EPERM}


@pytest.mark.parametrize(("machine", "kill", "tkill"), [("x86_64", 62, 200), ("aarch64", 129, 130)])
def test_signals_may_be_kept_to_one_process(machine: str, kill: int, tkill: int) -> None:
    assert ask(machine, kill, 1) == ALLOW
    assert ask(machine, kill, 77, signals_to=77) == ALLOW
    for other in (1, 0, 0xFFFFFFFF, 78):
        assert ask(machine, kill, other, signals_to=77) == EPERM
    assert ask(machine, tkill, 77, signals_to=77) == EPERM
    assert ask(machine, tkill, 77) == ALLOW


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_files_are_neither_locked_nor_watched(machine: str) -> None:
    fcntl_call = seccomp._BY_ARGUMENT["fcntl"][machine == "aarch64"]
    for command in ("F_DUPFD", "F_GETFD", "F_SETFD", "F_GETFL", "F_SETFL", "F_DUPFD_CLOEXEC"):
        assert ask(machine, fcntl_call, 3, getattr(fcntl, command)) == ALLOW
    for command in ("LK", "LKW"):
        assert ask(machine, fcntl_call, 3, getattr(fcntl, f"F_SET{command}")) == EPERM
        assert ask(machine, fcntl_call, 3, getattr(fcntl, f"F_OFD_SET{command}")) == EPERM
    for name in ("F_GETLK", "F_OFD_GETLK", "F_SETLEASE", "F_GETLEASE", "F_NOTIFY"):
        assert ask(machine, fcntl_call, 3, getattr(fcntl, name)) == EPERM


def test_another_numbering_kills() -> None:
    steps = seccomp.program("x86_64", network=False, signals_to=None)
    assert run(steps, 1, architecture=0x40000003) == KILL
    assert run(steps, 0x40000000 | 41, architecture=ARCHITECTURES["x86_64"]) == KILL


@pytest.mark.parametrize("column", [0, 1])
def test_the_numbers_are_those_of_the_kernels_headers(column: int) -> None:
    if not HEADERS[column].exists():
        pytest.skip(f"{HEADERS[column]} is not installed")
    found = re.findall(r"#define __NR3?2?6?4?_?_?(\w+)\s+(\d+)", HEADERS[column].read_text())
    known = {name: int(number) for name, number in found}
    listed = {name: numbers[column] for calls in seccomp.REFUSED.values() for name, numbers in calls.items()}
    listed |= {name: numbers[column] for name, numbers in (seccomp._BY_ARGUMENT | seccomp._SIGNALS).items()}
    listed |= seccomp._ONLY_X86 if column == 0 else {}
    compared = {name for name in listed if name in known}
    assert len(compared) > len(listed) / 2
    assert {name: known[name] for name in compared} == {name: listed[name] for name in compared}


def test_nothing_is_promised_where_nothing_works() -> None:
    assert promises(Features(), Layout()) == frozenset()


def test_everything_is_promised_to_root_with_control_groups() -> None:
    features = Features(Namespaces.root, landlock=7, seccomp=True, own_uid=True)
    assert promises(features, Layout("/m", 1, "/p", "/f", 2)) == frozenset(Promise)


def test_without_root_memory_and_user_are_not_promised() -> None:
    features = Features(Namespaces.user, landlock=7, seccomp=True, nproc_by_namespace=True)
    assert frozenset(Promise) - promises(features, Layout()) == {Promise.memory_limit, Promise.other_uid}


def test_an_old_landlock_does_not_promise_files() -> None:
    assert Promise.private_files not in promises(Features(landlock=2, seccomp=True), Layout())
    assert Promise.private_processes not in promises(Features(landlock=2), Layout())


def test_a_folder_made_to_be_hard_to_remove_is_removed(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    outside = tmp_path / "outside"
    outside.write_text("stays")
    place = os.open(folder, os.O_RDONLY)
    for depth in range(600):
        name = f"{'d' * 200}{depth}"
        os.mkdir(name, dir_fd=place)
        os.symlink(outside, f"link{depth}", dir_fd=place)
        below = os.open(name, os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = below
    os.close(place)
    (folder / "closed").mkdir()
    (folder / "closed" / "inner").mkdir()
    (folder / "closed" / "inner").chmod(0)
    (folder / "closed").chmod(0)
    removal.remove(str(folder))
    assert not folder.exists()
    assert outside.read_text() == "stays"
    removal.remove(str(folder))


def test_output_is_counted_and_its_beginning_kept() -> None:
    output = Output(most=100)
    os.write(output.writer, b"first " + b"x" * 50)
    assert not output.exceeded()
    os.write(output.writer, b"y" * 60)
    assert output.exceeded()
    assert output.text().startswith("first xxx")
    output.close_writer()
    output.close()
    assert output.text().endswith("y")


def test_one_user_id_is_held_once() -> None:
    first, second = uids.take(), uids.take()
    try:
        assert first.number != second.number
        assert uids.FIRST_UID <= first.number <= uids.LAST_UID
    finally:
        first.release()
        second.release()


def test_the_toolchain_is_not_the_repository() -> None:
    readable = [Path(path) for path in toolchain.readable()]
    repository = toolchain.PACKAGE.parent
    assert toolchain.PACKAGE in readable
    assert not any(path == repository or path in repository.parents for path in readable)
    for secret in ("reference", "tests", "assignments", "server", "var"):
        assert not any((repository / secret).is_relative_to(path) for path in readable)


def test_what_lies_below_a_readable_folder_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools, kept = tmp_path / "tools", tmp_path / "tools-of-staff"
    tools.mkdir()
    (tmp_path / "link").symlink_to(tools)
    monkeypatch.setattr(toolchain, "readable", lambda: (str(tmp_path / "link"), "/usr"))
    for shown in (tools, tools / "later" / "reference", tmp_path / "link" / "x", Path("/usr/local/kernel-ladder")):
        assert toolchain.shown_by(shown)
    for hidden in (tmp_path, kept, tools / ".." / "kept", Path("/usrx")):
        assert not toolchain.shown_by(hidden)


class ZygoteThatIsGone(Zygote):
    def __init__(self) -> None:
        pass

    def fork(self, *_: object, **__: object) -> None:
        raise SandboxError("the zygote is gone")


def test_a_runner_that_cannot_be_started_leaves_no_descriptor_and_no_folder(tmp_path: Path) -> None:
    before = sum(1 for _ in Path("/proc/self/fd").iterdir())
    folder = tmp_path / "runner"
    folder.mkdir()
    plan = Plan(str(folder), None, 4, 2**20, 0, (), (), Features())
    limits = RunnerLimits(memory_bytes=2**20, processes=4, output_bytes=2**10, tmp_bytes=2**20)
    with pytest.raises(SandboxError, match="gone"):
        ProcessRunner(ZygoteThatIsGone(), plan, limits, Group(Layout(), "none", 2**20, 4), None)
    assert sum(1 for _ in Path("/proc/self/fd").iterdir()) == before
    assert not folder.exists()


def test_descendants_are_found_whatever_their_session() -> None:
    ready, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(writer, b"x")
            os.read(os.pipe()[0], 1)
        os.read(os.pipe()[0], 1)
    try:
        os.read(ready, 1)
        assert len(tree.descendants(pid)) == 1
        assert pid in tree.descendants(os.getpid())
        # Below the child, not below this process: what other tests left running is none of this one's.
        assert tree.stop(pid)
        assert set(tree.descendants(pid).values()) <= {"T"}
    finally:
        assert tree.kill(pid)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(ready)
        os.close(writer)


def test_a_process_whose_first_thread_has_ended_is_stopped_and_killed_like_any_other() -> None:
    ready, writer = os.pipe()
    # Below a shell, not below this process: what other tests left running is none of this one's.
    command = ["sh", "-c", '"$@"; exit $?', "sh", sys.executable, "-c", ONLY_ITS_SECOND_THREAD_LIVES, str(writer)]
    with subprocess.Popen(command, pass_fds=[writer]) as shell:
        os.close(writer)
        try:
            os.read(ready, 1)
            (pid,) = tree.descendants(shell.pid)
            while _state_of_the_first_thread(pid) != "Z":
                pass
            assert tree.stop(shell.pid)
            assert tree.descendants(shell.pid) == {pid: "T"}
            os.set_blocking(ready, False)
            _drain(ready)
            time.sleep(0.05)
            assert not _drain(ready)
            tree.resume(shell.pid)
            os.set_blocking(ready, True)
            assert os.read(ready, 1)
            assert tree.kill(shell.pid)
            assert shell.wait(10) == 128 + signal.SIGKILL
        finally:
            tree.kill(shell.pid)
            shell.kill()
            os.close(ready)


ONLY_ITS_SECOND_THREAD_LIVES = """
import ctypes, os, platform, sys, threading, time

def go_on():
    while True:
        os.write(int(sys.argv[1]), b"x")
        time.sleep(0.002)

threading.Thread(target=go_on).start()
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[platform.machine()], 0)
"""


def _state_of_the_first_thread(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def _drain(descriptor: int) -> int:
    """How many bytes were waiting."""
    count = 0
    try:
        while data := os.read(descriptor, 4096):
            count += len(data)
    except BlockingIOError:
        pass
    return count


# --- freezing --------------------------------------------------------------------------------------------------------


@pytest.fixture(params=[1, 2])
def group_of_its_own(request: pytest.FixtureRequest) -> Iterator[tuple[Path, int]]:
    """An empty control group that freezes, and its version."""
    version = request.param
    found = cgroups.find()
    base = found.freezer if found.freezer_version == version else "/sys/fs/cgroup/freezer" if version == 1 else ""
    file = "freezer.state" if version == 1 else "cgroup.freeze"
    if not base or not cgroups._can_make(base, file):
        pytest.skip(f"no group that freezes can be made here in a hierarchy of version {version}")
    folder = Path(base, f"{cgroups.PREFIX}-{os.getpid()}-gone")
    folder.mkdir()
    yield folder, version
    if folder.is_dir():
        folder.rmdir()


def test_in_a_group_that_is_gone_nothing_is_left_to_stop(group_of_its_own: tuple[Path, int]) -> None:
    """The kernel removes none that has a process: a container that died in its call is found dead, and no error."""
    folder, version = group_of_its_own
    freezer = Freezer(str(folder), version)
    freezer.freeze()
    folder.rmdir()
    freezer.freeze()
    freezer.thaw()
    freezer.close()
    freezer.freeze()
    freezer.thaw()


def test_a_freezer_that_fails_otherwise_is_an_error_of_the_sandbox(tmp_path: Path) -> None:
    """Such as one whose files are no group's: these take what is written, and a pipe takes nothing at a place."""
    state = tmp_path / "freezer.state"
    os.mkfifo(state)
    freezer = Freezer(str(tmp_path), 1)
    for switch in (freezer.freeze, freezer.thaw):
        with pytest.raises(SandboxError, match=r"a runner cannot be frozen or thawed: .*seek"):
            switch()
    freezer.close()


@pytest.mark.parametrize(("machine", "column"), [("x86_64", 0), ("aarch64", 1)])
def test_a_profiler_connects_and_locks_and_opens_no_other_door(machine: str, column: int) -> None:
    allowed = {"connect", "flock", "socket", "bind", "listen", "accept", "accept4"}
    fcntl = (72, 25)[column]
    for calls in seccomp.REFUSED.values():
        for name, numbers in calls.items():
            if name not in allowed:
                assert ask(machine, numbers[column], gpu=True, profiler=True) == EPERM
    for name, group in (("connect", "sockets"), ("flock", "shared files")):
        number = seccomp.REFUSED[group][name][column]
        assert ask(machine, number, gpu=True, profiler=True) == ALLOW
        assert ask(machine, number, gpu=True) == EPERM
    take_a_lock, ask_for_a_lease = 6, 1024
    assert ask(machine, fcntl, 3, take_a_lock, gpu=True, profiler=True) == ALLOW
    assert ask(machine, fcntl, 3, take_a_lock, gpu=True) == EPERM
    assert ask(machine, fcntl, 3, ask_for_a_lease, gpu=True, profiler=True) == EPERM
    internet = 2
    assert ask(machine, seccomp.REFUSED["sockets"]["socket"][column], internet, gpu=True, profiler=True) == EPERM
