"""What the judge's side of the process sandbox asks of the zygote: one plan per runner, as JSON over their socket."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from autograder.sandbox import Promise


class Namespaces(StrEnum):
    """Which namespaces this machine lets a runner have."""

    none = "none"
    user = "user"
    """Through a user namespace, without root."""
    root = "root"


@dataclass(frozen=True)
class Features:
    """What was found to work on this machine by trying it.

    Attributes:
        landlock: the kernel's Landlock ABI, 0 where there is none.
        nproc_by_namespace: `RLIMIT_NPROC` counts the user namespace's own processes only.
        own_uid: this process may become another user, and that user can read the toolchain.
    """

    namespaces: Namespaces = Namespaces.none
    landlock: int = 0
    seccomp: bool = False
    nproc_by_namespace: bool = False
    own_uid: bool = False


@dataclass(frozen=True)
class Plan:
    """How one runner is shut in.

    Attributes:
        folder: made for this runner alone: its own folder, or the mount point of its new root.
        uid: the user it becomes, `None` to stay who the zygote is.
        processes: how many it may have, itself included.
        tmp_bytes: of its own folder, and of any one file.
        data_bytes: `RLIMIT_DATA` above what the zygote has, where no control group limits memory; 0 to set none.
        watched_bytes: what the tree may have of memory where it is watched instead; 0 to watch nothing.
        devices: of a GPU, beside those that every runner has.
        cgroups: folders of the control groups it enters before it does anything else.
        readable: the toolchain; nothing else of the machine's files is there for it.
        profiler: it runs one, which talks to itself by a unix socket and locks files of its own.
        without: promises that are not to be kept. Tests switch one off to show what it stops.
    """

    folder: str
    uid: int | None
    processes: int
    tmp_bytes: int
    data_bytes: int
    cgroups: tuple[str, ...]
    readable: tuple[str, ...]
    features: Features
    without: tuple[Promise, ...] = ()
    watched_bytes: int = 0
    devices: tuple[str, ...] = ()
    profiler: bool = False

    def keeps(self, promise: Promise) -> bool:
        """Whether this promise is to be kept."""
        return promise not in self.without

    @property
    def pid_namespace(self) -> bool:
        """Whether the runner gets its own process ids, and init's end is its tree's."""
        wanted = self.keeps(Promise.private_processes) and self.keeps(Promise.whole_tree)
        return wanted and self.features.namespaces is not Namespaces.none

    @property
    def new_root(self) -> bool:
        """Whether the runner gets a file system of its own."""
        return self.keeps(Promise.private_files) and self.features.namespaces is not Namespaces.none


@dataclass(frozen=True)
class Report:
    """What is said about a runner to the judge.

    Attributes:
        kind: `started` (with the descriptor of the init process), `error` or `ended`.
        pid: of the init process, as the judge sees it.
        code, signal: as in `Exit`.
    """

    kind: str
    pid: int = 0
    code: int | None = None
    signal: int | None = None
    message: str = ""
