"""Real containers under real attacks: those of the process sandbox's tests, and what only a container withstands."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from autograder.contract import Language
from autograder.sandbox import Exit, Promise, Purpose, cgroups
from autograder.sandbox.docker import DockerSandbox
from autograder.sandbox.docker.cores import apart
from tests.autograder.runner_talk import LIMITS, Talk, talking, wait_for

# The same tests with another sandbox: pytest gives them this module's fixtures.
from tests.autograder.sandbox.test_process import (  # noqa: F401
    test_a_daemon_dies_when_its_runner_exits_by_itself,
    test_a_daemon_dies_with_its_runner,
    test_a_datagram_pair_that_could_send_anywhere_is_refused,
    test_a_fork_bomb_is_an_error_in_the_students_code,
    test_a_frozen_runner_that_ignores_signals_can_be_closed,
    test_a_memory_hog_is_ended_or_gets_an_error,
    test_a_runner_says_its_toolchain,
    test_a_tree_that_hogs_memory_is_ended,
    test_closing_every_descriptor_ends_nothing_of_ours,
    test_doors_to_the_kernel_are_closed,
    test_freezing_stops_every_process_and_thawing_lets_them_go_on,
    test_how_it_ended_is_told,
    test_it_has_another_user_id,
    test_it_has_no_capability,
    test_it_has_no_descriptor_but_log_channel_and_memory,
    test_it_may_start_and_kill_a_child_of_its_own,
    test_its_environment_has_nothing_of_ours,
    test_its_folder_has_a_size,
    test_its_limits_are_those_of_the_table_that_both_sandboxes_read,
    test_no_socket_can_be_opened,
    test_nothing_of_the_machine_can_be_read,
    test_nothing_outside_its_folder_can_be_written,
    test_one_file_has_a_size,
    test_ten_gigabytes_of_output_are_cut,
    test_the_limit_that_keeps_a_crash_from_the_machines_handler_cannot_be_changed,
    test_undecodable_output_is_shown_with_marks,
)


@pytest.fixture(scope="module")
def sandbox(docker_sandbox: DockerSandbox) -> DockerSandbox:
    return docker_sandbox


@pytest.fixture
def talk(sandbox: DockerSandbox) -> Iterator[Talk]:
    with talking(sandbox) as talk:
        yield talk


def test_every_promise_is_kept(sandbox: DockerSandbox) -> None:
    assert sandbox.promises == frozenset(Promise)
    assert sandbox.facts["container image"].startswith("sha256:")


def test_its_first_process_can_be_neither_steered_nor_looked_into(talk: Talk) -> None:
    """It has the runner's user, no more rights, and the same filter: signals, memory, limits and descriptors of it."""
    said = talk.run("""
for number in range(1, 65):
    try:
        os.kill(1, number)
    except OSError:
        pass
time.sleep(0.2)
def refused(what):
    try:
        print("REACHED", what())
    except OSError as error:
        print("refused")
for name in ("mem", "environ", "maps"):
    refused(lambda: open(f"/proc/1/{name}", "rb").read(1))
refused(lambda: os.listdir("/proc/1/fd"))
refused(lambda: open("/proc/1/oom_score_adj", "w").write("1000"))
refused(lambda: os.sched_setaffinity(1, {0}))
import resource
refused(lambda: resource.prlimit(1, resource.RLIMIT_NOFILE, (0, 0)))
refused(lambda: os.readlink("/proc/1/root"))
""")
    assert said.split() == ["refused"] * 8
    assert talk.runner.poll() is None


def test_only_it_and_the_first_process_are_there(talk: Talk) -> None:
    said = talk.run(f"""
print(sorted(int(name) for name in os.listdir("/proc") if name.isdigit()) == [1, os.getpid()])
try:
    os.kill({os.getpid()}, 0)
    print("REACHED")
except OSError:
    print("refused")
""")
    assert said.split() == ["True", "refused"]


def test_every_file_of_it_is_read_only_and_nothing_of_docker_is_there(talk: Talk) -> None:
    """Everything that is mounted, tried one by one; `/proc` and a few devices are all that takes a byte."""
    said = talk.run("""
import stat
def folders(top, deep):
    yield top
    if deep:
        try:
            names = [entry.path for entry in os.scandir(top) if entry.is_dir(follow_symlinks=False)]
        except OSError:
            return
        for name in names:
            yield from folders(name, deep - 1)
for line in open("/proc/self/mounts"):
    folder = line.split()[1]
    if folder == "/tmp" or folder.startswith("/proc"):
        continue
    for path in folders(folder, 2):
        if path.startswith(("/proc", "/tmp")):
            continue
        try:
            os.close(os.open(os.path.join(path, "written"), os.O_CREAT | os.O_WRONLY))
            print("WROTE", path)
        except OSError:
            pass
for path in ("/var/run/docker.sock", "/run/docker.sock", "/run/containerd", "/var/lib/docker", "/sys/class"):
    if os.path.exists(path):
        print("SEEN", path)
print(os.listdir("/run/ladder"), os.listdir("/sys"))
try:
    os.chmod("/run/ladder", 0o777)
except OSError:
    print("refused")
""")
    assert said.splitlines() == ["[] []", "refused"]


def test_what_setuid_programs_and_core_files_would_give(talk: Talk) -> None:
    said = talk.run("""
import resource
print(resource.getrlimit(resource.RLIMIT_CORE), os.path.exists("/dev/shm"))
print(os.listdir("/dev/mqueue"), os.listdir("/dev/pts"))
done = subprocess.run(["/usr/bin/su", "-c", "id"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
print("uid=0" in done.stdout)
""")
    assert said.splitlines() == ["(1, 1) False", "[] []", "False"]


def test_the_judge_cannot_be_reached_by_what_it_left(talk: Talk) -> None:
    """The socket is gone, and making another one by that name does not help."""
    said = talk.run("""
for path in ("/run/ladder/socket", "/tmp/socket"):
    try:
        socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).connect(path)
        print("CONNECTED", path)
    except OSError:
        print("refused")
""")
    assert said.split() == ["refused"] * 2
    assert list(talk.runner.container._gate.folder.iterdir()) == []


def test_descriptors_that_a_runner_sends_do_not_arrive(talk: Talk) -> None:
    """The judge reads plainly, so the kernel drops them."""
    sent = "sent = os.memfd_create('sent_by_a_runner')\n    socket.send_fds(socket.socket(fileno=3), [b'{}'], [sent])"
    talk.load(f"import os, socket\ndef run():\n    {sent}\n")
    talk.send_call()
    wait_for(lambda: _peek(talk.runner.channel))
    with pytest.raises(Exception, match="of no kind"):
        talk.receive()
    assert [link for link in _descriptors() if "sent_by_a_runner" in link] == []


def _descriptors() -> Iterator[str]:
    """What this process has open; other threads open and close meanwhile."""
    for path in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            yield str(path.readlink())


def _peek(channel: socket.socket) -> bool | None:
    try:
        return bool(channel.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
    except BlockingIOError:
        return None


def test_the_freezer_of_version_1_stops_it_too(sandbox: DockerSandbox, talk: Talk) -> None:
    """Where both are there, version 2 is used; older machines have the other one only."""
    container = talk.runner.container
    folder = Path("/sys/fs/cgroup/freezer/docker", container._id)
    if not folder.is_dir():
        pytest.skip("this machine's containers have no version 1 freezer")
    container._freezer.close()
    container._freezer = cgroups.Freezer(str(folder), 1)
    test_freezing_stops_every_process_and_thawing_lets_them_go_on(sandbox, talk)
    talk.runner.freeze()
    assert talk.close() == Exit(signal=9)


def test_its_memory_is_the_limit_beside_what_the_toolchain_took(talk: Talk) -> None:
    """A third of it, and not what was allowed for the imports."""
    said = talk.run("""
kept = bytearray(b"x") * (160 << 20)
print(len(kept))
""")
    assert said.split() == [str(160 << 20)]
    groups = talk.runner.container.groups
    name = "memory.limit_in_bytes" if groups.memory_version == 1 else "memory.max"
    limit = int(Path(groups.memory, name).read_text())
    assert LIMITS.memory_bytes < limit < LIMITS.memory_bytes + 2**30
    if groups.memory_version == 1:
        assert int(Path(groups.memory, "memory.memsw.limit_in_bytes").read_text()) == limit


def kernel_limits(folders: Iterable[str]) -> dict[str, str]:
    """What the kernel keeps a container to."""
    names = ("memory.max", "memory.swap.max", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "pids.max")
    files = [Path(folder, name) for folder in folders for name in names]
    found = {str(file): file.read_text() for file in files if file.is_file()}
    assert found
    return found


def stopped(groups: cgroups.Layout) -> bool:
    """Whether the kernel has stopped all of a container's processes."""
    if groups.freezer_version == 1:
        return Path(groups.freezer, "freezer.state").read_text().strip() == "FROZEN"
    return "frozen 1" in Path(groups.freezer, "cgroup.events").read_text()


def test_a_stopped_runner_goes_on_on_the_core_that_it_is_moved_to(talk: Talk) -> None:
    container, both = talk.runner.container, sorted(os.sched_getaffinity(0))[:2]
    if len(both) == 1:
        pytest.skip("there is no other core")
    own = f"{both[0]},{both[1]}"
    container._own_cores = own
    places = apart(own)
    if len(places) == 1:
        pytest.skip("both are one physical core")
    limits = kernel_limits(container.groups.folders)
    talk.load("import os\ndef run():\n    print(sorted(os.sched_getaffinity(0)), flush=True)\n")
    for turn in (1, 2, 0):
        talk.runner.freeze()
        talk.runner.pin_core(turn)
        assert stopped(container.groups), "it runs beside whoever is timed"
        talk.runner.thaw()
        talk.call()
    assert talk.runner.log().split("\n")[:3] == [f"[{places[0]}]", f"[{places[1]}]", f"[{both[0]}, {both[1]}]"]
    assert kernel_limits(container.groups.folders) == limits, "nothing else changes"


def test_whoever_looks_whether_it_has_ended_waits_for_nothing(talk: Talk) -> None:
    """A millisecond of every exchange that is timed, as the shortest time that is not nothing was."""
    talk.run("pass")
    assert talk.runner.poll() is None
    assert talk.runner.container._line.gettimeout() == 0.0


def test_a_closed_runner_leaves_nothing(sandbox: DockerSandbox) -> None:
    with talking(sandbox) as talk:
        talk.run("os.makedirs('a/b/c'); os.chmod('a/b', 0)")
        container = talk.runner.container
        pid, groups, folder = talk.runner.pid, container.groups.folders, container._gate.folder
        assert folder.exists()
        made = container._id
    assert not Path(f"/proc/{pid}").exists()
    assert not folder.exists()
    assert sandbox._engine.state(made) == {}
    wait_for(lambda: None if any(Path(group).exists() for group in groups) else True)


def test_a_runner_that_stops_itself_or_kills_everybody_hurts_only_itself(sandbox: DockerSandbox, talk: Talk) -> None:
    talk.load("""
import os, signal, subprocess
def run():
    child = subprocess.Popen(["/bin/sleep", "60"])
    os.kill(-1, signal.SIGKILL)
    if child.wait() == -9:
        os.kill(os.getpid(), signal.SIGKILL)
""")
    ended = talk.call()
    assert isinstance(ended, Exit)
    assert ended.signal == 9
    with talking(sandbox) as other:
        assert other.run("print('here')") == "here\n"


def test_a_container_is_never_used_twice(sandbox: DockerSandbox) -> None:
    names, seen = set(), []
    for _ in range(3):
        with talking(sandbox) as talk:
            names.add(talk.runner.name)
            seen.append(talk.run("print(os.listdir('/tmp')); open('mark', 'w').write('x')").strip())
    assert len(names) == 3
    assert seen == ["[]"] * 3


def test_a_compiling_runner_has_its_toolchain_too(sandbox: DockerSandbox) -> None:
    """Its channel speaks another protocol; that it is up, and no interpreter's, is enough here."""
    runner = sandbox.start(LIMITS, Language.triton, purpose=Purpose.compile)
    try:
        time.sleep(0.2)
        assert runner.poll() is None, runner.log()
        environ = Path(f"/proc/{runner.pid}/environ").read_text()
        assert "TRITON_INTERPRET" not in environ
    finally:
        runner.close()
