"""Control groups, version 1, 2 or both at once: memory, number of processes, freezing and killing a whole tree.

A group is made below the group this process is in (or beside it), so that limits around this process hold for its
runners too. Where nothing can be made there, the layout is empty and other means are used. Groups that somebody else
made, such as a container's, are found by a process that is in them (`of`).
"""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from autograder.errors import NotStoppedError, SandboxError

PREFIX = "kernel-ladder"
_FREEZE_S = 1.0
"""How long one attempt takes; the judge makes more, as long as the runner has time of its own (`own_time`)."""
_REMOVE_S = 5.0
_LOOK_S = 0.0001


@dataclass(frozen=True)
class Layout:
    """Folders in which groups can be made; `""` where there is none.

    Attributes:
        memory_version, freezer_version: of the hierarchy that has it, 1 or 2.
    """

    memory: str = ""
    memory_version: int = 0
    pids: str = ""
    freezer: str = ""
    freezer_version: int = 0

    @property
    def folders(self) -> tuple[str, ...]:
        """Each folder once."""
        return tuple(dict.fromkeys(folder for folder in (self.freezer, self.memory, self.pids) if folder))


def find() -> Layout:
    """The layout of this machine, as far as groups can be made; whether one can be entered is found by doing it."""
    unified = [folder for folder in _unified() if _can_make(folder, "cgroup.freeze")]
    freezer, freezer_version = (unified[0], 2) if unified else (_first(_own_v1("freezer"), "freezer.state"), 1)
    modern = [folder for folder in unified if _can_make(folder, "memory.max") and _can_make(folder, "pids.max")]
    if modern:
        return Layout(modern[0], 2, modern[0], modern[0], 2)
    memory = _first(_own_v1("memory"), "memory.limit_in_bytes")
    return Layout(
        memory, 1 if memory else 0, _first(_own_v1("pids"), "pids.max"), freezer, freezer_version if freezer else 0
    )


def _first(folders: Iterable[str], file: str) -> str:
    return next((folder for folder in folders if _can_make(folder, file)), "")


def _can_make(folder: str, file: str) -> bool:
    trial = Path(folder, f"{PREFIX}-{os.getpid()}-trial")
    try:
        trial.mkdir()
    except OSError:
        return False
    try:
        return os.access(trial / file, os.W_OK)
    finally:
        trial.rmdir()


def _unified() -> Iterator[str]:
    for own in _own("cgroup2", ""):
        for folder in (own, str(Path(own).parent)):
            # Refused where the group has processes itself, or the controllers are not its own to give.
            with suppress(OSError):
                Path(folder, "cgroup.subtree_control").write_text("+memory +pids")
            yield folder


def _own_v1(controller: str) -> Iterator[str]:
    return _own("cgroup", controller)


def of(pid: int) -> Layout:
    """The groups that another process is in, themselves: to read, freeze and kill, not to make groups in.

    Raises:
        SandboxError: it is in no group of its own that can be frozen, or its limits cannot be read.
    """
    unified = next(_apart(pid, "cgroup2", "", "cgroup.freeze"), "")
    freezer = unified or next(_apart(pid, "cgroup", "freezer", "freezer.state"), "")
    modern = next(_apart(pid, "cgroup2", "", "memory.max"), "")
    memory = modern or next(_apart(pid, "cgroup", "memory", "memory.limit_in_bytes"), "")
    pids = modern or next(_apart(pid, "cgroup", "pids", "pids.max"), "")
    if not (freezer and memory and pids):
        raise SandboxError(f"process {pid} has no control groups of its own")
    return Layout(memory, 2 if modern else 1, pids, freezer, 2 if unified else 1)


def accounting_of(pid: int) -> str:
    """The group of version 1 that counts another process's processor time; `""` if it has none of its own."""
    return next(_apart(pid, "cgroup", "cpuacct", "cpuacct.usage"), "")


def _apart(pid: int, kind: str, controller: str, file: str) -> Iterator[str]:
    """The process's group in one hierarchy, if this process is in another one; never a hierarchy's root."""
    own = set(_own(kind, controller))
    for folder in _own(kind, controller, str(pid)):
        listed = Path(folder, "cgroup.procs").read_text().split() if Path(folder, file).exists() else []
        if folder not in own and str(pid) in listed:
            yield folder


def _own(kind: str, controller: str, pid: str = "self") -> Iterator[str]:
    """Folders of the groups that this process is in, in the hierarchy of that kind and controller."""
    paths = dict(_memberships(pid))
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        root, mounted = before.split()[3:5]
        fields = after.split()
        controllers = fields[2].split(",") if kind == "cgroup" else [""]
        if fields[0] != kind or controller not in controllers:
            continue
        path = paths.get(controller, "/")
        inside = path.removeprefix(root.rstrip("/")) if path.startswith(root) else "/"
        folder = os.path.normpath(f"{mounted}/{inside}")
        yield folder if Path(folder).is_dir() else mounted


def _memberships(pid: str) -> Iterator[tuple[str, str]]:
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            yield controller, path


class Group:
    """The control groups of one runner: one folder in each hierarchy of the layout."""

    def __init__(self, layout: Layout, name: str, memory_bytes: int, processes: int) -> None:
        self._layout = layout
        self._name = name
        self.folders = tuple(f"{folder}/{name}" for folder in layout.folders)
        for folder in self.folders:
            Path(folder).mkdir()
        if layout.memory:
            self._limit_memory(memory_bytes)
        if layout.pids:
            self._write(layout.pids, "pids.max", str(processes))
        self._freezer = Freezer(f"{layout.freezer}/{name}", layout.freezer_version) if layout.freezer else None

    def _limit_memory(self, most: int) -> None:
        if self._layout.memory_version == 1:
            self._write(self._layout.memory, "memory.limit_in_bytes", str(most))
            # Where swap is not counted, there is no such file.
            with suppress(OSError):
                self._write(self._layout.memory, "memory.memsw.limit_in_bytes", str(most))
            return
        self._write(self._layout.memory, "memory.max", str(most))
        for file, text in (("memory.swap.max", "0"), ("memory.oom.group", "1")):
            with suppress(OSError):
                self._write(self._layout.memory, file, text)

    def _write(self, base: str, file: str, text: str) -> None:
        Path(base, self._name, file).write_text(text)

    @property
    def unified(self) -> str:
        """Its folder in the hierarchy of version 2; `""` if it has none there."""
        versions = (
            (self._layout.freezer, self._layout.freezer_version),
            (self._layout.memory, self._layout.memory_version),
        )
        return next((f"{folder}/{self._name}" for folder, version in versions if folder and version != 1), "")

    @property
    def freezes(self) -> bool:
        """Whether it can freeze."""
        return self._freezer is not None

    def freeze(self) -> None:
        """Stop every process in it; returns when they are stopped."""
        if self._freezer is not None:
            self._freezer.freeze()

    def thaw(self) -> None:
        """Let them go on."""
        if self._freezer is not None:
            self._freezer.thaw()

    def out_of_memory(self) -> bool:
        """Whether the kernel ended a process of it for its memory."""
        layout = self._layout
        return bool(layout.memory) and out_of_memory(f"{layout.memory}/{self._name}", layout.memory_version)

    def close(self) -> None:
        """Let go of its files; the folders are removed by `end`."""
        if self._freezer is not None:
            self._freezer.close()


class Freezer:
    """Stops and resumes all processes of one group; its files stay open, so that nothing is looked up meanwhile.

    Of a group that is gone nothing is left to stop: the kernel removes none that has a process. A runner may end at any
    moment, and whoever asks how it ended is told; that it could not be frozen any more is no error.

    Args:
        folder: of the group, in the hierarchy of this version.
    """

    def __init__(self, folder: str, version: int) -> None:
        modern = version != 1
        name = "cgroup.freeze" if modern else "freezer.state"
        self._state = os.open(f"{folder}/{name}", os.O_RDWR | os.O_CLOEXEC)
        self._events = os.open(f"{folder}/cgroup.events", os.O_RDONLY | os.O_CLOEXEC) if modern else -1

    def freeze(self) -> None:
        """Stop every process in it; returns when they are stopped.

        Raises:
            NotStoppedError: one is not after seconds, such as in a system call that takes so long.
            SandboxError: the kernel refuses.
        """
        if self._state < 0:
            return
        with _none_left():
            os.pwrite(self._state, b"FROZEN" if self._events < 0 else b"1", 0)
            deadline = time.monotonic() + _FREEZE_S
            while not self._is_frozen():
                if time.monotonic() > deadline:
                    raise NotStoppedError(f"a runner could not be frozen within {_FREEZE_S:g} s")
                # Looked at rather than waited for: version 2 tells of a change at most every 10 ms, which would be in
                # every time that is measured.
                time.sleep(_LOOK_S)

    def _is_frozen(self) -> bool:
        if self._events < 0:
            return os.pread(self._state, 32, 0).startswith(b"FROZEN")
        return b"frozen 1" in os.pread(self._events, 256, 0)

    def thaw(self) -> None:
        """Let them go on.

        Raises:
            SandboxError: the kernel refuses.
        """
        if self._state < 0:
            return
        with _none_left():
            os.pwrite(self._state, b"THAWED" if self._events < 0 else b"0", 0)

    def close(self) -> None:
        """Let go of its files; may be called again."""
        for descriptor in (self._state, self._events):
            if descriptor >= 0:
                os.close(descriptor)
        self._state = self._events = -1


@contextmanager
def _none_left() -> Iterator[None]:
    """A group that is gone ends the block; what else the kernel refuses is an error of the sandbox."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.ENODEV:
            raise SandboxError(f"a runner cannot be frozen or thawed: {error}") from None


def out_of_memory(folder: str, version: int) -> bool:
    """Whether the kernel ended a process of the group for its memory."""
    with suppress(OSError):
        text = Path(folder, "memory.oom_control" if version == 1 else "memory.events").read_text()
        counts = dict(line.split() for line in text.splitlines())
        return int(counts.get("oom_kill", 0)) > 0
    return False


def used_bytes(folder: str, version: int) -> int:
    """Memory of the group that cannot be had back by dropping caches of files."""
    name = "memory.usage_in_bytes" if version == 1 else "memory.current"
    counts = dict(line.split() for line in Path(folder, "memory.stat").read_text().splitlines())
    prefix = "total_" if version == 1 else ""
    files = sum(int(counts.get(f"{prefix}{kind}_file", 0)) for kind in ("active", "inactive"))
    return max(0, int(Path(folder, name).read_text()) - files)


def enter(folders: Iterable[str]) -> None:
    """Put this process into these groups."""
    for folder in folders:
        Path(folder, "cgroup.procs").write_text("0")


def kill(folders: Iterable[str]) -> None:
    """Kill all processes in these groups, frozen ones too."""
    for folder in folders:
        with suppress(OSError):
            Path(folder, "cgroup.kill").write_text("1")
        with suppress(OSError):
            for line in Path(folder, "cgroup.procs").read_text().split():
                with suppress(ProcessLookupError):
                    os.kill(int(line), signal.SIGKILL)
        # A frozen process of version 1 dies when it is thawed.
        with suppress(OSError):
            Path(folder, "freezer.state").write_text("THAWED")


def end(folders: tuple[str, ...]) -> None:
    """Kill what is left in these groups and remove them."""
    deadline = time.monotonic() + _REMOVE_S
    while left := [folder for folder in folders if Path(folder).is_dir()]:
        for folder in left:
            with suppress(OSError):
                Path(folder).rmdir()
        if time.monotonic() > deadline:
            return
        if any(Path(folder).is_dir() for folder in left):
            kill(left)
            time.sleep(0.002)


def sweep(layout: Layout) -> None:
    """Remove empty groups that a judge left behind when it was killed together with all its supervisors."""
    for folder in layout.folders:
        for group in Path(folder).glob(f"{PREFIX}-*"):
            owner = group.name.split("-")[2]
            if not Path("/proc", owner).exists():
                with suppress(OSError):
                    group.rmdir()
