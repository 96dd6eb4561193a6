"""Real runners under real attacks, with what this machine has and with parts of it taken away."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from autograder import protocol, toolchain
from autograder.contract import Lane, Language
from autograder.errors import SandboxError
from autograder.sandbox import Exit, Promise, Purpose, RunnerLimits, cgroups, limits
from autograder.sandbox.cgroups import Layout
from autograder.sandbox.plan import Features, Namespaces, Plan
from autograder.sandbox.probe import Machine, machine
from autograder.sandbox.process import ProcessSandbox
from autograder.sandbox.process_runner import ProcessRunner
from tests.autograder.runner_talk import LIMITS, Talk, Tensor, talking, wait_for

REPOSITORY = Path(__file__).parents[3]
V1_FREEZER = "/sys/fs/cgroup/freezer"


def _variant(name: str) -> Machine:
    found = machine()
    if name == "as found":
        return found
    if name == "version 1 freezer":
        if os.getuid() or not os.access(V1_FREEZER, os.W_OK):
            pytest.skip("no version 1 freezer can be written here")
        return dataclasses.replace(
            found, cgroups=dataclasses.replace(found.cgroups, freezer=V1_FREEZER, freezer_version=1)
        )
    if name == "user namespace":
        if found.features.namespaces is Namespaces.none:
            pytest.skip("no namespaces can be made here")
        kept = dataclasses.replace(found.features, namespaces=Namespaces.user, own_uid=False)
        return Machine(kept, Layout())
    if not (found.features.landlock and found.features.seccomp):
        pytest.skip("this kernel has no Landlock or no seccomp")
    return Machine(Features(landlock=found.features.landlock, seccomp=True), Layout())


@pytest.fixture(scope="module", params=["as found", "version 1 freezer", "user namespace", "Landlock and seccomp only"])
def sandbox(request: pytest.FixtureRequest) -> Iterator[ProcessSandbox]:
    sandbox = ProcessSandbox(on=_variant(request.param))
    yield sandbox
    sandbox.close()


@pytest.fixture
def talk(sandbox: ProcessSandbox) -> Iterator[Talk]:
    with talking(sandbox) as talk:
        yield talk


def need(sandbox: ProcessSandbox, *promises: Promise) -> None:
    for promise in promises:
        if promise not in sandbox.promises:
            pytest.skip(f"this sandbox does not promise {promise} here")


SPINNING_DAEMON = """
import os
def run(out):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            counter = out.numpy()
            while True:
                counter[0] += 1
        os._exit(0)
"""


def start_daemon(talk: Talk) -> Tensor:
    """A double-forked process in a session of its own that counts in shared memory."""
    counter = Tensor("out", np.zeros(8, "i8"), writable=True)
    talk.load(SPINNING_DAEMON, "run", ("out",))
    talk.call(counter, record=False)
    wait_for(lambda: int(counter.view[0]) or None)
    return counter


def stands_still(counter: Tensor) -> bool:
    before = int(counter.view[0])
    time.sleep(0.1)
    return int(counter.view[0]) == before


@pytest.mark.full("slow")
def test_a_runner_says_its_toolchain(talk: Talk) -> None:
    assert set(talk.ready.versions) == {"torch", "triton", "numpy"}


def test_nothing_of_the_machine_can_be_read(sandbox: ProcessSandbox, talk: Talk, tmp_path: Path) -> None:
    need(sandbox, Promise.private_files)
    secret = tmp_path / "secret"
    secret.write_text("the judge's")
    secret.chmod(0o644)
    paths = [
        str(secret),
        "/etc/passwd",
        "/proc/1/environ",
        *map(str, (REPOSITORY / "pyproject.toml", REPOSITORY / "tests")),
    ]
    said = talk.run(f"""
for path in {paths!r}:
    try:
        os.listdir(path) if path.endswith("tests") else open(path).read()
        print("READ", path)
    except OSError:
        print("refused")
""")
    assert said.split() == ["refused"] * len(paths)


def test_a_toolchain_below_tmp_is_there_and_so_is_a_folder_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever tries a checkout out in /tmp got runners that did not start, or that had no temporary files."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        Path(folder, "part").write_text("of a toolchain")
        seen = toolchain.readable()
        monkeypatch.setattr(toolchain, "readable", lambda: (*seen, folder))
        sandbox = ProcessSandbox()
        try:
            with talking(sandbox) as talk:
                said = talk.run(f"""
print(open({folder!r} + "/part").read())
import tempfile
with tempfile.NamedTemporaryFile() as own:
    print(own.name.startswith(os.environ["TMPDIR"] + "/"))
try:
    open({folder!r} + "/part", "w")
except OSError:
    print("refused")
""")
        finally:
            sandbox.close()
    assert said.splitlines() == ["of a toolchain", "True", "refused"]


def test_nothing_outside_its_folder_can_be_written(sandbox: ProcessSandbox, talk: Talk) -> None:
    need(sandbox, Promise.private_files)
    said = talk.run("""
import autograder
package = os.path.dirname(autograder.__file__)
for path in ("/usr/written", package + "/written", sys.prefix + "/written", "/dev/shm/written"):
    try:
        open(path, "w")
        print("WROTE", path)
    except OSError:
        print("refused")
open("mine", "w").write("mine")
print(open("mine").read())
""")
    assert said.split() == ["refused"] * 4 + ["mine"]


def test_its_environment_has_nothing_of_ours(sandbox: ProcessSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LADDER_SECRET", "hush")
    with talking(sandbox) as talk:
        names = set(talk.run("print(*os.environ)").split())
    assert names == {
        "PATH", "LANG", "USER", "HOME", "TMPDIR", "TRITON_INTERPRET", "OMP_NUM_THREADS", "MKL_NUM_THREADS",
        "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS",
    }  # fmt: skip


def test_it_has_no_descriptor_but_log_channel_and_memory(talk: Talk) -> None:
    said = talk.run("""
import stat
for number in range(1024):
    try:
        mode = os.fstat(number).st_mode
    except OSError:
        continue
    print(number, "socket" if stat.S_ISSOCK(mode) else "pipe" if stat.S_ISFIFO(mode) else "")
""")
    lines = [line.split() for line in said.splitlines()]
    assert [line for line in lines if len(line) > 1] == [["1", "pipe"], ["2", "pipe"], ["3", "socket"]]
    assert ["0"] in lines


def test_no_socket_can_be_opened(sandbox: ProcessSandbox, talk: Talk) -> None:
    need(sandbox, Promise.no_network)
    said = talk.run("""
unix, netlink, vsock = socket.AF_UNIX, socket.AF_NETLINK, socket.AF_VSOCK
for family, kind in ((socket.AF_INET, 1), (socket.AF_INET6, 2), (netlink, 3), (vsock, 1), (unix, 1)):
    try:
        end = socket.socket(family, kind)
        end.settimeout(1)
        end.connect(("127.0.0.1", 22) if family == socket.AF_INET else ("::1", 22))
        print("OPEN", family)
    except (OSError, TypeError):
        print("refused")
""")
    assert said.split() == ["refused"] * 5


def test_a_datagram_pair_that_could_send_anywhere_is_refused(sandbox: ProcessSandbox, talk: Talk) -> None:
    need(sandbox, Promise.syscall_filter)
    said = talk.run("""
print(len(socket.socketpair()))
try:
    socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
except PermissionError:
    print("refused")
""")
    assert said.split() == ["2", "refused"]


def test_other_processes_can_neither_be_seen_nor_signalled(sandbox: ProcessSandbox, talk: Talk) -> None:
    need(sandbox, Promise.private_processes)
    said = talk.run(f"""
for pid in (os.getppid(), {os.getpid()}, {talk.runner.pid}):
    try:
        os.kill(pid, 0)
        print("REACHED", pid)
    except OSError:
        print("refused")
try:
    seen = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    print(len(seen) <= 3 or seen)
except OSError:
    print(True)
""")
    assert said.split() == ["refused"] * 3 + ["True"]


def test_it_may_start_and_kill_a_child_of_its_own(sandbox: ProcessSandbox, talk: Talk) -> None:
    said = talk.run("""
child = subprocess.Popen(["/bin/sleep", "0.01"])
print(child.wait())
""")
    assert said.split() == ["0"]


def test_it_has_another_user_id(sandbox: ProcessSandbox, talk: Talk) -> None:
    need(sandbox, Promise.other_uid)
    with talking(sandbox) as other:
        ids = {int(each.run("print(os.getuid())")) for each in (talk, other)}
    assert len(ids) == 2
    assert os.getuid() not in ids


def test_it_has_no_capability(sandbox: ProcessSandbox, talk: Talk) -> None:
    said = talk.run("""
libc = ctypes.CDLL(None)
header, sets = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
libc.capget(header, sets)
print(sum(sets), libc.prctl(39, 0, 0, 0, 0))
""")
    assert said.split() == ["0", "1"]


READ_LIMITS = """
import json, resource
names = {name: getattr(resource, "RLIMIT_" + name.upper()) for name in %r}
print(json.dumps({name: resource.getrlimit(number) for name, number in names.items()}))
"""


def test_its_limits_are_those_of_the_table_that_both_sandboxes_read(talk: Talk) -> None:
    table = limits.of_a_runner(LIMITS.tmp_bytes)
    assert json.loads(talk.run(READ_LIMITS % list(table))) == {name: [most, most] for name, most in table.items()}


def test_the_limit_that_keeps_a_crash_from_the_machines_handler_cannot_be_changed(
    sandbox: ProcessSandbox, talk: Talk
) -> None:
    """A handler that the kernel pipes core files to is started at a limit of 0, and is not at 1."""
    need(sandbox, Promise.syscall_filter)
    said = talk.run("""
import resource
libc = ctypes.CDLL(None, use_errno=True)
core, setrlimit = resource.RLIMIT_CORE, 164 if os.uname().machine == "aarch64" else 160
none = (ctypes.c_ulong * 2)(0, 0)
for change in (
    lambda: resource.setrlimit(core, (0, 0)),
    lambda: resource.setrlimit(core, (0, 1)),
    lambda: resource.prlimit(0, core, (0, 1)),
):
    try:
        change()
    except (OSError, ValueError):
        pass
    print(*resource.getrlimit(core))
print(libc.syscall(setrlimit, core, none), ctypes.get_errno(), *resource.getrlimit(core))
resource.setrlimit(resource.RLIMIT_NOFILE, (512, 1024))
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
""")
    assert said.splitlines() == ["1 1"] * 3 + [f"-1 {errno.EPERM} 1 1", "512 1024"]


def test_doors_to_the_kernel_are_closed(sandbox: ProcessSandbox, talk: Talk) -> None:
    need(sandbox, Promise.syscall_filter)
    said = talk.run("""
libc = ctypes.CDLL(None, use_errno=True)
column = 1 if os.uname().machine == "aarch64" else 0
from autograder.sandbox.seccomp import REFUSED
for calls in REFUSED.values():
    for name, numbers in calls.items():
        ctypes.set_errno(0)
        result = libc.syscall(numbers[column], -1, 0, 0, 0, 0, 0)
        if result != -1 or ctypes.get_errno() != 1:
            print(name, result, ctypes.get_errno())
ctypes.set_errno(0)
print("clone3", libc.syscall(435, 0, 0), ctypes.get_errno())
print("namespace", libc.syscall(220 if column else 56, 0x10000011, 0, 0, 0, 0), ctypes.get_errno())
print("pdeathsig", libc.prctl(1, 18, 0, 0, 0))
""")
    assert said.splitlines() == [f"clone3 -1 {errno.ENOSYS}", f"namespace -1 {errno.EPERM}", "pdeathsig -1"]


def test_a_daemon_dies_with_its_runner(sandbox: ProcessSandbox) -> None:
    need(sandbox, Promise.whole_tree)
    with talking(sandbox) as talk:
        counter = start_daemon(talk)
        assert not stands_still(counter)
    assert stands_still(counter)


def test_a_daemon_dies_when_its_runner_exits_by_itself(sandbox: ProcessSandbox) -> None:
    need(sandbox, Promise.whole_tree)
    with talking(sandbox) as talk:
        counter = Tensor("out", np.zeros(8, "i8"), writable=True)
        exits = "    import time\n    while not out.numpy()[0]:\n        time.sleep(0.001)\n    os._exit(7)\n"
        talk.load(SPINNING_DAEMON + exits, "run", ("out",))
        ended = talk.call(counter, record=False)
        assert ended == Exit(code=7)
        wait_for(lambda: stands_still(counter) or None)
        assert counter.view[0] > 0


def test_freezing_stops_every_process_and_thawing_lets_them_go_on(sandbox: ProcessSandbox, talk: Talk) -> None:
    need(sandbox, Promise.freezes_tree)
    counter = start_daemon(talk)
    for _ in range(5):
        talk.runner.freeze()
        assert stands_still(counter)
        talk.runner.thaw()
        before = int(counter.view[0])
        wait_for(lambda before=before: int(counter.view[0]) > before or None)


def test_one_that_ends_before_it_is_frozen_is_told_by_how_it_ended(sandbox: ProcessSandbox, talk: Talk) -> None:
    """Whoever could make it an error of ours would be graded again for it."""
    talk.load("import os\ndef run():\n    os._exit(7)\n")
    talk.send_call()
    wait_for(lambda: None if Path("/proc", str(talk.runner.pid)).exists() else True)
    # Here the supervisor does this later; a container's group goes with its last process.
    cgroups.end(talk.runner._plan.cgroups)
    talk.runner.freeze()
    talk.runner.thaw()
    assert wait_for(talk.runner.poll) == Exit(code=7)


def test_a_frozen_runner_that_ignores_signals_can_be_closed(sandbox: ProcessSandbox) -> None:
    with talking(sandbox) as talk:
        talk.run("signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.signal(signal.SIGCONT, lambda *_: None)")
        talk.runner.freeze()
        assert talk.close() == Exit(signal=signal.SIGKILL)
        assert talk.runner.close() == Exit(signal=signal.SIGKILL)


def test_a_fork_bomb_is_an_error_in_the_students_code(sandbox: ProcessSandbox, talk: Talk) -> None:
    need(sandbox, Promise.process_limit)
    said = talk.run("""
started = 0
try:
    while started < 200:
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        started += 1
except BlockingIOError:
    print(started)
""")
    assert int(said) == LIMITS.processes - 1


@pytest.mark.full("slow")
def test_a_memory_hog_is_ended_or_gets_an_error(sandbox: ProcessSandbox, talk: Talk) -> None:
    talk.load("def run():\n    kept = [bytearray(1 << 20) for _ in range(2048)]\n")
    ended = talk.call()
    if isinstance(ended, Exit):
        assert ended.out_of_memory
    else:
        assert Promise.memory_limit not in sandbox.promises
        assert ended.kind == "MemoryError"


def test_a_tree_that_hogs_memory_is_ended(sandbox: ProcessSandbox, talk: Talk) -> None:
    talk.load("""
import os, time
def run():
    for _ in range(8):
        if os.fork() == 0:
            kept = bytearray(b"x") * (200 << 20)
            time.sleep(60)
    time.sleep(60)
""")
    ended = talk.call()
    assert isinstance(ended, Exit)
    assert ended.out_of_memory


def test_ten_gigabytes_of_output_are_cut(sandbox: ProcessSandbox, talk: Talk) -> None:
    talk.load("import os\ndef run():\n    for _ in range(10 << 14):\n        os.write(1, b'x' * 65536)\n")
    ended = talk.call()
    assert isinstance(ended, Exit)
    assert ended.output_exceeded
    assert set(talk.runner.log()) == {"x"}
    assert len(talk.runner.log()) <= 16_384


def test_undecodable_output_is_shown_with_marks(talk: Talk) -> None:
    assert talk.run(r"os.write(1, b'\xff ok')") == "� ok"


def test_its_folder_has_a_size(sandbox: ProcessSandbox, talk: Talk) -> None:
    talk.load("""
import time
def run():
    for number in range(64):
        with open(f"file{number}", "wb") as file:
            file.write(b"x" * (1 << 20))
    time.sleep(60)
""")
    ended = talk.call()
    assert isinstance(ended, protocol.Raised | Exit)
    if isinstance(ended, protocol.Raised):
        assert "No space left" in ended.message
    else:
        assert ended.out_of_memory


def test_one_file_has_a_size(talk: Talk) -> None:
    said = talk.run("""
try:
    with open("file", "wb") as file:
        file.truncate(1 << 40)
except OSError as error:
    print(error.errno)
""")
    assert int(said) == errno.EFBIG


@pytest.mark.parametrize(
    ("body", "ended"),
    [
        ("os._exit(0)", Exit(code=0)),
        ("os._exit(3)", Exit(code=3)),
        ("os.kill(os.getpid(), signal.SIGKILL)", Exit(signal=signal.SIGKILL)),
        ("os.kill(os.getpid(), signal.SIGTERM)", Exit(signal=signal.SIGTERM)),
        ("ctypes.string_at(0)", Exit(signal=signal.SIGSEGV)),
        ("os.abort()", Exit(signal=signal.SIGABRT)),
    ],
)
def test_how_it_ended_is_told(sandbox: ProcessSandbox, talk: Talk, body: str, ended: Exit) -> None:
    talk.load(f"import os, signal, ctypes\ndef run():\n    {body}\n")
    assert talk.call() == ended


def test_closing_every_descriptor_ends_nothing_of_ours(sandbox: ProcessSandbox, talk: Talk) -> None:
    talk.load("import os\ndef run():\n    os.closerange(0, 1024)\n")
    assert isinstance(talk.call(), Exit)


def test_nothing_is_left_of_a_closed_runner(sandbox: ProcessSandbox) -> None:
    with talking(sandbox) as talk:
        talk.run("os.makedirs('a/b/c'); open('a/b/c/file', 'w').write('x'); os.chmod('a/b', 0)")
        pid, plan = talk.runner.pid, talk.runner._plan
        assert Path(plan.folder).exists()
    assert not Path(plan.folder).exists()
    assert not any(Path(folder).exists() for folder in plan.cgroups)
    assert not Path(f"/proc/{pid}").exists()


JUDGE = """
import json, os, sys, time
from autograder.contract import Lane
from autograder.sandbox import Purpose
from tests.autograder.runner_talk import *
sandbox = ProcessSandbox()
talk = Talk(sandbox.start(LIMITS, Language.triton))
talk.load("import os, time\\ndef run():\\n    if os.fork() == 0:\\n        os.setsid()\\n        time.sleep(600)\\n")
talk.call(record=False)
if sys.argv[1] == "frozen":
    talk.runner.freeze()
plan = talk.runner._plan
zygote = sandbox._zygotes[Language.triton, Lane.cpu, Purpose.call]
print(json.dumps([zygote.pid, talk.runner.pid, plan.folder, list(plan.cgroups)]), flush=True)
time.sleep(600)
"""


@pytest.mark.full("slow")
@pytest.mark.parametrize(("state", "also_the_zygote"), [("running", False), ("frozen", False), ("frozen", True)])
def test_a_killed_judge_leaves_nothing(state: str, also_the_zygote: bool) -> None:
    path = str(REPOSITORY)
    judge = subprocess.Popen(
        [sys.executable, "-c", JUDGE, state], env={"PYTHONPATH": path}, stdout=subprocess.PIPE, text=True
    )
    assert judge.stdout is not None
    with judge, judge.stdout:
        zygote, init, folder, groups = json.loads(judge.stdout.readline())
        assert Path(f"/proc/{init}").exists()
        if also_the_zygote:
            os.kill(zygote, signal.SIGKILL)
        judge.kill()
        judge.wait()
        for path in (f"/proc/{zygote}", f"/proc/{init}", folder, *groups):
            wait_for(lambda path=path: None if Path(path).exists() else True)


def test_a_runner_that_cannot_be_started_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    sandbox = ProcessSandbox(on=Machine(Features(), Layout()))
    try:
        sandbox._zygote(Language.triton, Lane.cpu, Purpose.call)._process.kill()
        with pytest.raises(SandboxError):
            ProcessRunner(
                sandbox._zygotes[Language.triton, Lane.cpu, Purpose.call],
                _plan(tmp_path),
                LIMITS,
                sandbox._group(LIMITS),
                None,
            )
    finally:
        sandbox.close()
    assert list(tmp_path.iterdir()) == []


def _plan(folder: Path) -> Plan:
    made = folder / "kernel-ladder-made"
    made.mkdir()
    return Plan(str(made), None, 8, 1 << 20, 0, (), (), Features())


def test_a_zygote_that_died_is_replaced() -> None:
    sandbox = ProcessSandbox()
    try:
        with talking(sandbox):
            first = sandbox._zygotes[Language.triton, Lane.cpu, Purpose.call].pid
        os.kill(first, signal.SIGKILL)
        wait_for(lambda: None if sandbox._zygotes[Language.triton, Lane.cpu, Purpose.call].alive() else True)
        with talking(sandbox) as talk:
            assert sandbox._zygotes[Language.triton, Lane.cpu, Purpose.call].pid != first
            assert talk.run("print('here')") == "here\n"
    finally:
        sandbox.close()


def test_switched_off_promises_are_not_kept() -> None:
    off = frozenset({Promise.private_files, Promise.no_network, Promise.syscall_filter, Promise.other_uid})
    sandbox = ProcessSandbox(without=off)
    try:
        assert not off & sandbox.promises
        with talking(sandbox) as talk:
            said = talk.run("""
print(len(open("/etc/passwd").read()) > 0)
print(int(socket.socket(socket.AF_INET, socket.SOCK_STREAM).family))
print(ctypes.CDLL(None).syscall(92 if os.uname().machine == "aarch64" else 135, 0xffffffff) >= 0)
print(os.getuid())
""")
        assert said.split() == ["True", "2", "True", str(os.getuid())]
    finally:
        sandbox.close()


def test_without_the_whole_tree_a_daemon_survives() -> None:
    sandbox = ProcessSandbox(without=frozenset({Promise.whole_tree}))
    counter = Tensor("out", np.zeros(8, "i8"), writable=True)
    try:
        with talking(sandbox, RunnerLimits(1 << 30, 24, 1 << 20, 1 << 23)) as talk:
            talk.load(
                """
import os, time
def run(out):
    if os.fork() == 0:
        os.setsid()
        os.close(3)
        while not out.numpy()[1]:
            out.numpy()[0] += 1
            time.sleep(0.001)
        os._exit(0)
""",
                "run",
                ("out",),
            )
            talk.call(counter, record=False)
        wait_for(lambda: None if stands_still(counter) else True)
        counter.view[1] = 1
        wait_for(lambda: stands_still(counter) or None)
    finally:
        counter.view[1] = 1
        sandbox.close()


def test_several_threads_start_runners_of_one_zygote_and_none_is_forgotten() -> None:
    sandbox = ProcessSandbox()
    limits = RunnerLimits(2**29, 32, 2**16, 2**20)
    with ThreadPoolExecutor(6) as threads:
        started = list(threads.map(lambda _: sandbox.start(limits, Language.triton, purpose=Purpose.read), range(6)))
    assert len(sandbox._zygotes) == 1
    assert set(sandbox._runners) == set(started)
    sandbox.close()
    assert all(runner.closed for runner in started)
