"""What the judge's side of the process sandbox asks of the zygote: one plan per runner, as JSON over their socket."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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
        cgroups: folders of the control groups it enters before it does anything else.
        processes, file_bytes: set as rlimits, and as the size of its `/tmp`.
        data_bytes: `RLIMIT_DATA` above what the zygote has, where no control group limits memory; 0 to set none.
        readable: the toolchain; nothing else of the machine's files is there for it.
    """

    folder: str
    uid: int | None
    processes: int
    file_bytes: int
    data_bytes: int
    cgroups: tuple[str, ...]
    readable: tuple[str, ...]
    features: Features


@dataclass(frozen=True)
class Report:
    """What the supervisor of a runner tells the judge.

    Attributes:
        is_: `started` (with the descriptor of the init process), `error` or `ended`.
        pid: of the init process, as the judge sees it.
        code, signal: as in `Exit`.
    """

    kind: str
    pid: int = 0
    code: int | None = None
    signal: int | None = None
    message: str = ""
