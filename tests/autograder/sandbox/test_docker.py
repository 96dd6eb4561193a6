"""The Docker sandbox without Docker: its settings, its door, its pool, what it mounts and what it sweeps."""

from __future__ import annotations

import dataclasses
import gc
import os
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from autograder.contract import Lane, Language
from autograder.errors import SandboxError
from autograder.sandbox import Promise, Purpose, RunnerLimits, gpu, limits
from autograder.sandbox.docker import OWNER, DockerConfig, Gpu, load_config, mounts, sweep
from autograder.sandbox.docker.container import Container
from autograder.sandbox.docker.cores import Cores
from autograder.sandbox.docker.engine import Engine, Found, Image
from autograder.sandbox.docker.gate import Gate
from autograder.sandbox.docker.pool import Pool
from autograder.sandbox.docker.sandbox import DockerSandbox, left_bytes
from autograder.sandbox.docker.settings import Kind, Slot, settings

LIMITS = RunnerLimits(memory_bytes=512 * 2**20, processes=24, output_bytes=1 << 20, tmp_bytes=8 * 2**20)
KIND = Kind(Language.triton, Lane.cpu, Purpose.call, LIMITS)
SLOT = Slot(61234, "/run/somewhere", "1.2.3")
HOST, WHOLE = Image("sha256:1", {}), Image("sha256:2", {
    "org.kernel-ladder.toolchain": "image", "org.kernel-ladder.python": "/opt/toolchain/bin/python",
})  # fmt: skip
DEFAULT = DockerConfig()
NODES = ("/dev/nvidia3", "/dev/nvidiactl", "/dev/nvidia-uvm")


def made(
    kind: Kind = KIND, image: Image = HOST, config: DockerConfig = DEFAULT, *,
    without: frozenset[Promise] = frozenset(), background: bool = False,
) -> dict[str, Any]:  # fmt: skip
    return settings(kind, SLOT, image, config, without=without, background=background)


def test_a_container_has_nothing_but_what_it_needs() -> None:
    found = made()
    host = found["HostConfig"]
    assert found["Image"] == "sha256:1"
    assert found["User"] == "61234:61234"
    assert found["Labels"] == {OWNER: "1.2.3"}
    assert host["NetworkMode"] == "none"
    assert host["ReadonlyRootfs"] is True
    assert host["CapDrop"] == ["ALL"]
    assert host["SecurityOpt"] == ["no-new-privileges"]
    assert host["Privileged"] is False
    assert host["IpcMode"] == "none"
    assert host["PidMode"] == ""
    assert host["Memory"] == host["MemorySwap"]
    assert host["PidsLimit"] == 26
    assert "Devices" not in host
    assert "DeviceRequests" not in host
    assert {"/sys", "/proc/kcore", "/proc/keys", "/proc/driver"} <= set(host["MaskedPaths"])
    for kind in ("Soft", "Hard"):
        assert {one["Name"]: one[kind] for one in host["Ulimits"]} == limits.of_a_runner(LIMITS.tmp_bytes)


def test_every_mount_is_read_only_by_itself() -> None:
    binds = made()["HostConfig"]["Mounts"]
    assert binds
    for bind in binds:
        assert bind["ReadOnly"] is True
        assert bind["BindOptions"] == {"Propagation": "rprivate", "NonRecursive": True}
    assert {"Source": "/run/somewhere", "Target": "/run/ladder"}.items() <= binds[0].items()
    targets = [bind["Target"] for bind in binds]
    assert len(targets) == len(set(targets))
    assert not {"/", "/etc", "/var", "/run", "/home", "/proc", "/sys", "/dev"} & set(targets)


def test_its_folder_belongs_to_it_and_has_a_size() -> None:
    options = made()["HostConfig"]["Tmpfs"]["/tmp"].split(",")
    assert {"nosuid", "nodev", "exec", f"size={LIMITS.tmp_bytes}", "mode=0700", "uid=61234", "gid=61234"} <= set(
        options
    )


def test_its_environment_is_fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LADDER_NODE_KEY_FILE", "hush")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-1")
    assert not [text for text in made()["Env"] if "hush" in text or "CUDA" in text]
    assert "HOSTNAME" in made()["Env"]


@pytest.mark.parametrize("purpose", list(Purpose))
def test_an_image_with_a_toolchain_gets_the_harness_only(purpose: Purpose) -> None:
    found = made(Kind(Language.triton, Lane.cpu, purpose, LIMITS), WHOLE)
    assert found["Cmd"][0] == "/opt/toolchain/bin/python"
    targets = [bind["Target"] for bind in found["HostConfig"]["Mounts"]]
    assert targets == ["/run/ladder", "/opt/kernel-ladder/autograder"]
    assert "/opt/kernel-ladder" in found["Cmd"]


@pytest.fixture
def one_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "nodes", lambda: NODES)
    monkeypatch.setattr(gpu, "uuid", lambda: "GPU-1234")


@pytest.mark.usefixtures("one_gpu")
def test_a_gpu_lane_gets_one_gpus_nodes_and_may_not_make_any() -> None:
    host = made(Kind(Language.triton, Lane.h200, Purpose.call, LIMITS))["HostConfig"]
    assert [device["PathOnHost"] for device in host["Devices"]] == list(NODES)
    assert {device["CgroupPermissions"] for device in host["Devices"]} == {"rw"}


@pytest.mark.usefixtures("one_gpu")
@pytest.mark.parametrize(
    ("way", "request_"),
    [
        (Gpu.cdi, {"Driver": "cdi", "DeviceIDs": ["nvidia.com/gpu=GPU-1234"]}),
        (Gpu.nvidia, {
            "Driver": "nvidia", "DeviceIDs": ["GPU-1234"], "Capabilities": [["gpu", "compute", "utility"]],
        }),
    ],
)  # fmt: skip
def test_a_gpu_may_come_by_a_request_of_dockers(way: Gpu, request_: dict[str, Any]) -> None:
    config = DockerConfig(gpu=way)
    host = made(Kind(Language.triton, Lane.h200, Purpose.call, LIMITS), config=config)["HostConfig"]
    assert host["DeviceRequests"] == [request_]
    assert "Devices" not in host


@pytest.mark.usefixtures("one_gpu")
def test_who_only_compiles_gets_no_gpu() -> None:
    host = made(Kind(Language.triton, Lane.h200, Purpose.compile, LIMITS))["HostConfig"]
    assert "Devices" not in host


def test_who_waits_does_so_on_cores_of_its_own() -> None:
    config = DockerConfig(cores=Cores(warm="6-7"))
    assert made(config=config, background=True)["HostConfig"]["CpusetCpus"] == "6-7"
    assert made(config=config)["HostConfig"]["CpusetCpus"] == ""
    assert made(background=True)["HostConfig"]["CpusetCpus"] == ""


@pytest.mark.parametrize(
    ("promise", "key", "value"),
    [
        (Promise.no_network, "NetworkMode", "host"),
        (Promise.private_processes, "PidMode", "host"),
        (Promise.memory_limit, "Memory", 0),
        (Promise.process_limit, "PidsLimit", -1),
        (Promise.syscall_filter, "SecurityOpt", ["no-new-privileges", "seccomp=unconfined"]),
        (Promise.private_files, "Tmpfs", {}),
    ],
)
def test_a_promise_is_one_setting(promise: Promise, key: str, value: object) -> None:
    found = made(without=frozenset({promise}))
    assert found["HostConfig"][key] == value
    assert promise in found["Cmd"]


def test_what_is_mounted_below_a_folder_is_bound_by_itself(tmp_path: Path) -> None:
    """Docker would leave it writable."""
    inner = tmp_path / "tools" / "driver"
    inner.mkdir(parents=True)
    table = tmp_path / "mountinfo"
    line = "29 27 254:16 / {} ro,nosuid - {} /dev/vdb ro\n"
    table.write_text(line.format(inner, "squashfs") + line.format(tmp_path / "tools" / "proc", "proc"))
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "tools")
    found = mounts.of_host([str(tmp_path / "tools"), str(inner), str(link), "/nowhere"], table)
    assert found == (
        mounts.Bind(str(tmp_path / "tools"), str(tmp_path / "tools")),
        mounts.Bind(str(inner), str(inner)),
        mounts.Bind(str(tmp_path / "tools"), str(link)),
        mounts.Bind(str(inner), f"{link}/driver"),
    )


def test_folders_above_what_is_mounted_are_not_to_be_listed() -> None:
    binds = [
        mounts.Bind("x", path) for path in ("/usr", "/etc/alternatives", "/run/ladder", "/srv/people/tools", "/usr/a")
    ]
    assert mounts.above(binds) == ("/srv",)
    found = made()["HostConfig"]["Tmpfs"]
    assert all("mode=0711" in options for path, options in found.items() if path != "/tmp")
    assert "/usr" not in found


def test_the_configuration_is_read_from_the_environment() -> None:
    environ = {
        "LADDER_SANDBOX_IMAGE": "sha256:3", "LADDER_SANDBOX_POOL": "3", "LADDER_SANDBOX_CPUS_SUBMISSION": "2-5, 8",
        "LADDER_SANDBOX_GPU": "cdi", "LADDER_SANDBOX_FOLDER": "/run/other",
    }  # fmt: skip
    found = load_config(environ)
    assert (found.image, found.pool, found.cores, found.gpu) == ("sha256:3", 3, Cores(submission="2-5,8"), Gpu.cdi)
    assert found.folder == Path("/run/other")
    assert load_config({}) == DockerConfig()


@pytest.mark.parametrize(
    "environ",
    [{"LADDER_SANDBOX_POOL": "-1"}, {"LADDER_SANDBOX_CPUS_WARM": "all"}, {"LADDER_SANDBOX_GPU": "every"}],
    ids=lambda environ: next(iter(environ)),
)
def test_a_variable_that_cannot_be_read_is_named(environ: dict[str, str]) -> None:
    with pytest.raises(SandboxError, match=next(iter(environ))):
        load_config(environ)


# --- the door ---------------------------------------------------------------------------------------------------------

CONNECT = """
import os, socket, sys
number = int(sys.argv[2])
os.setgroups([]), os.setresgid(number, number, number), os.setresuid(number, number, number)
end = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
try:
    end.connect(sys.argv[1])
except OSError as error:
    raise SystemExit(str(error))
print("connected", flush=True)
sys.stdin.read()
"""
UID = 61_111


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    if os.getuid() != 0:
        pytest.skip("the folder has to be root's")
    made = Gate(Path("/run", f"kernel-ladder-gate-{os.getpid()}"), UID)
    yield made
    made.remove()
    made.folder.parent.rmdir()


def comer(gate: Gate, uid: int = UID) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", CONNECT, str(gate.folder / "socket"), str(uid)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_the_first_process_of_the_container_is_let_in(gate: Gate) -> None:
    with comer(gate) as process:
        groups = Path(f"/proc/{process.pid}/cgroup").read_text().splitlines()
        name = next((last for group in groups if (last := group.rpartition("/")[2])), "")
        if not name:
            pytest.skip("this machine's processes are in no control group with a name")
        with gate.accept(process.pid, name, time.monotonic() + 10):
            assert not (gate.folder / "socket").exists()
            with comer(gate) as second:
                assert "No such file" in second.communicate()[1]
        process.communicate()


def test_somebody_else_of_the_same_user_is_not(gate: Gate) -> None:
    with comer(gate) as process:
        with pytest.raises(SandboxError, match="instead of a container"):
            gate.accept(os.getpid(), "", time.monotonic() + 10)
        process.communicate()
    assert not (gate.folder / "socket").exists()


def test_a_process_outside_of_the_containers_group_is_not(gate: Gate) -> None:
    with comer(gate) as process:
        with pytest.raises(SandboxError, match="not in the control group"):
            gate.accept(process.pid, "f" * 64, time.monotonic() + 10)
        process.communicate()


def test_another_user_cannot_connect(gate: Gate) -> None:
    with comer(gate, UID + 1) as process:
        assert "Permission denied" in process.communicate()[1]


def test_the_door_is_not_held_open_for_ever(gate: Gate) -> None:
    with pytest.raises(SandboxError, match="in time"):
        gate.accept(os.getpid(), "", time.monotonic() + 0.1)


def test_a_container_that_is_gone_is_not_waited_for(gate: Gate) -> None:
    with subprocess.Popen(["/bin/true"]) as process:
        process.wait()
    with pytest.raises(SandboxError, match="ended before"):
        gate.accept(process.pid, "", time.monotonic() + 60)


def test_a_folder_that_others_may_write_to_is_refused() -> None:
    if os.getuid() != 0:
        pytest.skip("the folder has to be root's")
    with pytest.raises(SandboxError, match="nobody else may write"):
        Gate(Path("/tmp"), UID)


# --- the pool ---------------------------------------------------------------------------------------------------------


class Fake:
    """Stands for a container."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.living = True
        self.closed = False

    def alive(self) -> bool:
        return self.living

    def close(self) -> None:
        self.closed = True


class Maker:
    """Makes fakes, and remembers them."""

    def __init__(self) -> None:
        self.made: list[Fake] = []
        self.fails = False

    def __call__(self, kind: Kind, background: bool) -> Container:
        if self.fails and background:
            raise SandboxError("no room")
        self.made.append(Fake(kind))
        return cast("Container", self.made[-1])


def until(look: Any) -> None:
    deadline = time.monotonic() + 20
    while not look():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def kind(number: int) -> Kind:
    return Kind(Language.triton, Lane.cpu, Purpose.call, RunnerLimits(number, 1, 1, 1))


def test_a_pool_gives_each_container_away_once_and_makes_new_ones() -> None:
    make = Maker()
    pool = Pool(make, 2)
    taken = [pool.take(KIND)]
    until(lambda: len(pool.waiting()) == 2)
    taken += [pool.take(KIND) for _ in range(5)]
    until(lambda: len(pool.waiting()) == 2)
    assert len({id(one) for one in taken}) == 6
    assert not set(map(id, pool.waiting())) & set(map(id, taken))
    pool.close()
    assert sum(one.closed for one in make.made) == len(make.made) - 6


def test_a_pool_replaces_the_dead_and_never_gives_one_away() -> None:
    make = Maker()
    pool = Pool(make, 1)
    pool.take(KIND)
    until(lambda: len(pool.waiting()) == 1)
    dead = cast("Fake", pool.waiting()[0])
    dead.living = False
    taken = pool.take(KIND)
    assert cast("Fake", taken) is not dead
    assert dead.closed
    pool.close()


def test_a_pool_forgets_what_was_asked_for_longest_ago() -> None:
    make = Maker()
    pool = Pool(make, 1)
    for number in range(12):
        pool.take(kind(number))
        until(lambda number=number: any(one.kind == kind(number) for one in pool.waiting()))
    until(lambda: len(pool.waiting()) == 8)
    assert {one.kind for one in pool.waiting()} == {kind(number) for number in range(4, 12)}
    pool.close()
    assert sum(not one.closed for one in make.made) == 12


def test_a_pool_that_cannot_be_filled_still_starts_what_is_asked_for() -> None:
    make = Maker()
    make.fails = True
    pool = Pool(make, 2)
    assert pool.take(KIND) is not pool.take(KIND)
    assert pool.waiting() == []
    pool.close()


class Slow(Maker):
    """Makes containers that take until somebody says so."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = threading.Semaphore(0)
        self.begun = 0

    def __call__(self, kind: Kind, background: bool) -> Container:
        self.begun += 1
        self.go_on.acquire(timeout=20)
        return super().__call__(kind, background)


def test_a_pool_makes_several_side_by_side_and_who_asks_gets_the_first_that_is_ready() -> None:
    make = Slow()
    pool = Pool(make, 3, keepers=3)
    taken: list[Container] = []
    asking = threading.Thread(target=lambda: taken.append(pool.take(KIND)))
    asking.start()
    # One for who asks, three to wait.
    until(lambda: make.begun >= 3)
    make.go_on.release()
    until(lambda: len(make.made) == 1)
    make.go_on.release(20)
    asking.join(20)
    until(lambda: len(pool.waiting()) == 3)
    assert len(taken) == 1
    assert taken[0] not in pool.waiting()
    pool.close()


def test_a_pool_makes_what_is_expected_before_anybody_asks_one_of_each_kind_first() -> None:
    make = Slow()
    pool = Pool(make, 2, keepers=1)
    for number in range(3):
        pool.prewarm(kind(number))
    make.go_on.release(20)
    until(lambda: len(pool.waiting()) == 6)
    assert {one.kind for one in make.made[:3]} == {kind(number) for number in range(3)}
    assert pool.take(kind(1)) in cast("list[Container]", make.made)
    assert len(make.made) <= 7
    pool.close()


def test_a_pool_keeps_more_of_what_makes_calls_on_a_gpu() -> None:
    make = Maker()
    pool = Pool(make, 5)
    on_a_gpu = dataclasses.replace(kind(1), lane=Lane.h200)
    reads, compiles = (dataclasses.replace(kind(3), purpose=one) for one in (Purpose.read, Purpose.compile))
    for one in (on_a_gpu, kind(2), reads, compiles):
        pool.prewarm(one)
    until(lambda: len(pool.waiting()) == 15)
    kept = Counter(cast("Fake", one).kind for one in pool.waiting())
    assert kept == {on_a_gpu: 5, kind(2): 3, reads: 3, compiles: 4}
    assert [pool.warm_count(on_a_gpu), pool.warm_count(kind(2)), pool.warm_count(kind(9))] == [5, 3, 0]
    pool.close()


def test_a_pool_first_makes_what_lacks_the_largest_part() -> None:
    """A check takes six of what makes calls, three of what compiles, a measurement one of each: nobody waits."""
    make = Slow()
    pool = Pool(make, 8, keepers=1)
    on_a_gpu = dataclasses.replace(kind(1), lane=Lane.h200)
    for one in (on_a_gpu, dataclasses.replace(kind(2), purpose=Purpose.compile)):
        pool.prewarm(one)
    make.go_on.release(30)
    until(lambda: len(pool.waiting()) == 12)
    pool.close()
    first = [one.kind for one in make.made[:6]]
    assert (first.count(on_a_gpu), len(first)) == (4, 6)


def test_containers_that_wait_are_ready_as_far_as_memory_goes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each may take its limit: ten of eight gigabytes are more than many a node has."""
    pool = Pool(Maker(), 3)
    pool.prewarm(KIND)
    until(lambda: pool.warm_count(KIND) == 3)
    sandbox = object.__new__(DockerSandbox)
    sandbox._pool = pool
    for left, expected in ((10**12, 3), (2 * KIND.limits.memory_bytes, 2), (KIND.limits.memory_bytes - 1, 0)):
        monkeypatch.setattr("autograder.sandbox.docker.sandbox.left_bytes", lambda left=left: left)
        assert sandbox.warm_count(KIND.limits, Language(KIND.language), KIND.lane) == expected
    pool.close()
    file = tmp_path / "meminfo"
    file.write_text("MemTotal:  1000 kB\nMemAvailable:  300 kB\n", encoding="ascii")
    assert left_bytes(file) == 300 * 1024
    file.write_text("MemTotal:  1000 kB\n", encoding="ascii")
    assert left_bytes(file) == 0


def test_a_pool_begins_nothing_while_somebody_is_timed() -> None:
    """Eight imports beside a measurement held an honest kernel on an H200."""
    make = Maker()
    pool = Pool(make, 2, keepers=1)
    with pool.pause_background_work():
        pool.prewarm(KIND)
        taken = pool.take(KIND)
        time.sleep(0.1)
        assert cast("list[Container]", make.made) == [taken]
    until(lambda: len(pool.waiting()) == 2)
    pool.close()


def test_a_pool_of_none_makes_each_when_it_is_asked_for() -> None:
    make = Maker()
    pool = Pool(make, 0)
    pool.take(KIND)
    assert len(make.made) == 1
    pool.close()
    assert threading.active_count() >= 1


# --- what is left over ------------------------------------------------------------------------------------------------


class Listed:
    """Stands for the daemon."""

    def __init__(self, labels: list[str]) -> None:
        self._labels = labels
        self.removed: list[str] = []

    def labelled(self, label: str) -> list[Found]:
        assert label == OWNER
        return [Found(text, {OWNER: text}) for text in self._labels]

    def state(self, _: str) -> dict[str, Any]:
        return {"Pid": 0}

    def remove(self, container: str) -> None:
        self.removed.append(container)


def test_only_what_a_dead_judge_left_is_swept(tmp_path: Path) -> None:
    mine = sweep.owner()
    pid, began, namespace = mine.split(".")
    labels = [
        mine,
        f"{pid}.{int(began) + 1}.{namespace}",
        f"4194304.1.{namespace}",
        f"{pid}.1.999",
        "",
        "nonsense",
        "1",
    ]
    listed = Listed(labels)
    (tmp_path / f"{os.getpid()}-abc").mkdir()
    (tmp_path / "4194304-abc").mkdir()
    sweep.sweep(cast("Engine", listed), tmp_path)
    assert listed.removed == [f"{pid}.{int(began) + 1}.{namespace}", f"4194304.1.{namespace}"]
    assert [path.name for path in tmp_path.iterdir()] == [f"{os.getpid()}-abc"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_daemon_that_does_not_answer_is_our_error(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("docker")
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    engine = Engine()
    with pytest.raises(SandboxError, match="could not"):
        engine.version()
    engine.close()
    # The package drops a socket that could not connect, and Python says so when it is collected.
    gc.collect()


class Daemon:
    """Removes a container at the given try, and before says what Docker says of one that ends at that moment."""

    def __init__(self, at: int, says: str) -> None:
        self.at, self.says, self.asked = at, says, 0

    def remove_container(self, *_: object, **__: object) -> None:
        from docker import errors  # noqa: PLC0415

        self.asked += 1
        if self.asked < self.at:
            raise errors.APIError("500 Server Error", response=SimpleNamespace(status_code=500), explanation=self.says)


_ENDS = "Could not kill running container 10f0, cannot remove - Container 10f0 is not running"


@pytest.mark.parametrize(
    ("at", "says", "asked", "fails"),
    [(1, "", 1, False), (3, _ENDS, 3, False), (99, _ENDS, 10, True), (2, "no", 1, True)],
)
def test_a_container_that_ends_while_it_is_removed_is_removed(
    at: int, says: str, asked: int, *, fails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A whole grading had ended as an error of ours."""
    pytest.importorskip("docker")
    daemon = Daemon(at, says)
    monkeypatch.setattr(Engine, "_api", daemon)
    with pytest.raises(SandboxError) if fails else nullcontext():
        Engine().remove("10f0")
    assert daemon.asked == asked


def test_sockets_are_not_inherited(gate: Gate) -> None:
    assert not os.get_inheritable(gate._listener.fileno())
    assert gate._listener.type == socket.SOCK_SEQPACKET
