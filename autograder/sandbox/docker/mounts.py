"""What of this machine's files a container gets to read: the toolchain, mount by mount, and nothing mounted unseen.

Docker makes a folder's mount read-only, but not what is mounted further down in it. So every mount is bound by itself,
not recursively, and those below a folder of the toolchain are bound and made read-only like it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from autograder import toolchain

_MOUNTS = Path("/proc/self/mountinfo")
_PSEUDO = frozenset(
    {"proc", "sysfs", "cgroup", "cgroup2", "devpts", "devtmpfs", "mqueue", "securityfs", "debugfs", "tracefs"}
)
HARNESS = "/opt/kernel-ladder"
"""Where this package is in an image that has a toolchain of its own."""


@dataclass(frozen=True)
class Bind:
    """A file or folder of this machine, and where a container has it, to read only."""

    source: str
    target: str

    def settings(self) -> dict[str, object]:
        """As Docker wants it."""
        options = {"Propagation": "rprivate", "NonRecursive": True}
        return {"Type": "bind", "Source": self.source, "Target": self.target, "ReadOnly": True, "BindOptions": options}


def of_host(readable: Iterable[str] | None = None, mounts: Path = _MOUNTS) -> tuple[Bind, ...]:
    """The toolchain of this machine, where it stands here; for an image of empty folders."""
    kept: list[str] = []
    for path in toolchain.readable() if readable is None else readable:
        if os.path.exists(path) and not any(path.startswith(f"{above}/") for above in kept):  # noqa: PTH110
            kept.append(path)
    binds = [Bind(os.path.realpath(path), path) for path in kept]
    return tuple(inner for bind in binds for inner in (bind, *_below(bind, _mounted(mounts))))


def of_image(driver: str) -> tuple[Bind, ...]:
    """The harness, and the GPU driver's libraries if they are named; for an image with a toolchain of its own."""
    harness = Bind(str(toolchain.PACKAGE), f"{HARNESS}/{toolchain.PACKAGE.name}")
    return (harness, Bind(os.path.realpath(driver), driver)) if driver else (harness,)


def above(binds: Iterable[Bind]) -> tuple[str, ...]:
    """Top folders that are there only because something is bound further down: not to be listed."""
    targets = {bind.target for bind in binds}
    tops = {"/" + target.split("/")[1] for target in targets} - targets
    return tuple(sorted(tops - {"/etc", "/run"}))


def _mounted(mounts: Path) -> list[str]:
    """Where something is mounted on this machine that has files."""
    found = []
    for line in mounts.read_text(encoding="utf-8").splitlines():
        before, _, after = line.partition(" - ")
        if after.split()[0] not in _PSEUDO:
            found.append(before.split()[4].encode().decode("unicode_escape"))
    return sorted(set(found))


def _below(bind: Bind, mounted: list[str]) -> list[Bind]:
    return [
        Bind(path, bind.target + path.removeprefix(bind.source))
        for path in mounted
        if path.startswith(f"{bind.source}/") and os.path.isdir(path)  # noqa: PTH112
    ]
