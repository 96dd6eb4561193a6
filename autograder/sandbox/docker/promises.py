"""Which promises a container keeps, by what was seen from inside of it and what its control groups say."""

from __future__ import annotations

import os
from pathlib import Path

from autograder.sandbox import Promise
from autograder.sandbox.docker.container import Container
from autograder.sandbox.docker.inside import View

_HARMLESS = {f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty")}
_ITS_OWN = 2
"""The first process and the runner."""
_MOST_BYTES = 1 << 40
_FILTERS = 2
"""Docker's own, and ours on top of it."""


def kept(view: View, container: Container, *, filtered: bool) -> frozenset[Promise]:
    """What is kept.

    Args:
        filtered: the daemon puts its own filter of system calls on containers.
    """
    powerless = view.capabilities == 0 and view.no_new_privileges
    found = {
        Promise.other_uid: powerless and set(view.ids) == {container.uid} and container.uid != os.getuid(),
        Promise.no_network: powerless and not view.interfaces,
        Promise.private_files: powerless and not view.writable and set(view.devices) <= _HARMLESS,
        Promise.private_processes: powerless and len(view.processes) == _ITS_OWN,
        # Its first process is that of a process namespace, so its end is the end of all.
        Promise.whole_tree: 1 in view.processes and len(view.processes) == _ITS_OWN,
        Promise.freezes_tree: _freezes(container),
        Promise.memory_limit: 0 < _memory_bytes(container) < _MOST_BYTES,
        Promise.process_limit: _limit(f"{container.groups.pids}/pids.max") > 0,
        Promise.syscall_filter: filtered and not view.allowed and view.filters >= _FILTERS,
    }
    return frozenset(promise for promise, is_kept in found.items() if is_kept)


def _freezes(container: Container) -> bool:
    """It returns only when they are stopped."""
    container.freeze()
    container.thaw()
    return True


def _memory_bytes(container: Container) -> int:
    name = "memory.limit_in_bytes" if container.groups.memory_version == 1 else "memory.max"
    return _limit(f"{container.groups.memory}/{name}")


def _limit(path: str) -> int:
    """The number in a control group's file, 0 where there is no limit."""
    text = Path(path).read_text(encoding="utf-8").strip()
    return int(text) if text.isdecimal() else 0
