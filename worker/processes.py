"""Process trees: keeping secrets from them, tying them to this process, and ending them whole."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36

_ROUNDS = 50
_PAUSE_S = 0.02


def _prctl(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def keep_memory_private() -> None:
    """Keep processes of the same user from reading this one's memory, where the node's key is."""
    _prctl(_PR_SET_DUMPABLE, 0)


def adopt_orphans() -> None:
    """Make this process the parent of what its descendants leave behind, so that it can be found and ended."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def tied_to_this_process(command: Sequence[str]) -> list[str]:
    """The command, started so that it dies with the thread that starts it, even by SIGKILL."""
    return [sys.executable, "-I", "-B", __file__, str(os.getpid()), *command]


def _become(parent: int, command: list[str]) -> None:
    """Ask the kernel for a SIGKILL when `parent` dies, then become `command`."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # It died before the kernel was asked.
        sys.exit(1)
    os.execvp(command[0], command)  # noqa: S606  (a list from the node's own configuration; there is no shell)


def children(pid: int) -> list[int]:
    """The processes whose parent is `pid`."""
    everybody = (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())
    return [other for other in everybody if _parent(other) == pid]


def _parent(pid: int) -> int | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name in parentheses may hold anything; state and parent follow its last parenthesis.
    return int(text.rpartition(")")[2].split()[1])


def descendants(pid: int) -> set[int]:
    """Every process below `pid`, without it."""
    found: set[int] = set()
    todo = [pid]
    while todo:
        for child in children(todo.pop()):
            if child not in found:
                found.add(child)
                todo.append(child)
    return found


def named(name: str) -> list[int]:
    """The processes on this machine that call themselves so, whoever's they are."""
    return [int(path.parent.name) for path in Path("/proc").glob("[0-9]*/comm") if _name_in(path) == name]


def _name_in(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def kill_tree(pid: int) -> None:
    """End `pid` and everything below it. The tree is stopped first, so that nothing is started while it is counted."""
    stopped: set[int] = set()
    for _ in range(_ROUNDS):
        tree = {pid} | descendants(pid)
        if tree <= stopped:
            break
        for member in tree - stopped:
            _signal(member, signal.SIGSTOP)
        stopped |= tree
    for member in stopped:
        _signal(member, signal.SIGKILL)


def end_orphans() -> None:
    """End and reap every child of this process: after `adopt_orphans`, what a dead tree left behind is among them."""
    for _ in range(_ROUNDS):
        left = children(os.getpid())
        if not left:
            return
        for child in left:
            kill_tree(child)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child, os.WNOHANG)
        time.sleep(_PAUSE_S)


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


if __name__ == "__main__":
    _become(int(sys.argv[1]), sys.argv[2:])
