"""A process and everything it started, found through `/proc`, for machines without control groups.

Every runner has a supervisor above it that adopts orphans, so whatever a runner starts stays below that supervisor,
however often it forks and whichever session it is in.
"""

from __future__ import annotations

import os
import signal
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

_STOP_S = 1.0
"""How long one attempt to stop a tree takes: a process inside a system call stops when that is over, on a busy machine
late. The judge makes more attempts, as long as the runner has time of its own (`own_time`)."""
_KILL_S = 15.0
_PAUSE_S = 0.001
_EAGER_PASSES = 10
"""So many passes are made before the first pause."""
_STOPPED, _DEAD = "Tt", "ZX"
"""Letters of states."""
_TIMES = slice(11, 15)
"""Where `_fields` has the times of a process and of the children that it has reaped."""
_THREADS = 17
"""Where `_fields` has the number of threads, of which a dead first one is one until the process is buried."""


def processes() -> list[int]:
    """The ids of all processes that this one can see."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 -- names only, and often.


def descendants(root: int) -> dict[int, str]:
    """All processes below `root`, with the letter of their state; `root` itself is not among them."""
    children: dict[int, list[int]] = defaultdict(list)
    states: dict[int, str] = {}
    for pid in processes():
        if (stat := _stat(pid)) is not None:
            states[pid], parent = stat
            children[parent].append(pid)
    found: dict[int, str] = {}
    waiting = list(children[root])
    while waiting:
        pid = waiting.pop()
        found[pid] = states[pid]
        waiting.extend(children[pid])
    return found


def children(root: int) -> list[int]:
    """The direct children of `root`."""
    stats = ((pid, _stat(pid)) for pid in processes())
    return [pid for pid, stat in stats if stat is not None and stat[1] == root]


def _stat(pid: int) -> tuple[str, int] | None:
    """The letter of a process's state and its parent, `None` if it is gone."""
    if (fields := _fields(f"/proc/{pid}/stat")) is None:
        return None
    state, parent, threads = fields[0], int(fields[1]), int(fields[_THREADS])
    # Its first thread may have ended, and look dead, while others go on.
    return (_of_the_others(pid) if state in _DEAD and threads > 1 else state), parent


def _of_the_others(pid: int) -> str:
    """The state of a process whose first thread is dead: that of a thread that moves, or else of one that is left."""
    try:
        names = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 -- names only, and often.
    except OSError:
        return "X"
    found = (_fields(f"/proc/{pid}/task/{name}/stat") for name in names)
    states = {fields[0] for fields in found if fields is not None} - set(_DEAD)
    return next(iter(states - set(_STOPPED)), "T" if states else "Z")


def _fields(path: str) -> list[str] | None:
    """What follows the name in a `stat` file of `/proc`: the name may hold anything."""
    try:
        return Path(path).read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None


def processor_ticks(root: int) -> int:
    """Processor time of `root` and everything below it, and of all that they have reaped, in clock ticks."""
    found = (_fields(f"/proc/{pid}/stat") for pid in (root, *descendants(root)))
    return sum(int(ticks) for fields in found if fields is not None for ticks in fields[_TIMES])


def waited_s(root: int) -> float | None:
    """How long the threads of `root` and of everything below it, one by one, were ready to run and had no processor.

    Of those that live; `None` where the kernel does not tell.
    """
    found = [_waited_ns(task) for pid in (root, *descendants(root)) for task in _tasks(pid)]
    told = [one for one in found if one is not None]
    return sum(told) / 1e9 if told else None


def _tasks(pid: int) -> list[str]:
    folder = f"/proc/{pid}/task"
    try:
        return [f"{folder}/{name}" for name in os.listdir(folder)]  # noqa: PTH208 -- names only, and often.
    except OSError:
        return []


def _waited_ns(task: str) -> int | None:
    with suppress(OSError, ValueError, IndexError):
        return int(Path(task, "schedstat").read_text(encoding="ascii").split()[1])
    return None


def send(pid: int, number: signal.Signals) -> None:
    """Signal a process that may be gone already."""
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def stop(root: int) -> bool:
    """Stop everything below `root`; whether a pass found all of it stopped.

    A process that forks while it is being stopped leaves a child for the next pass; a process with a pending stop
    forks no more, so the passes end.
    """
    deadline = time.monotonic() + _STOP_S
    passes = 0
    while True:
        moving = [pid for pid, state in descendants(root).items() if state not in _STOPPED + _DEAD]
        if not moving or time.monotonic() > deadline:
            return not moving
        for pid in moving:
            send(pid, signal.SIGSTOP)
        passes += 1
        if passes > _EAGER_PASSES:
            time.sleep(_PAUSE_S)


def resume(root: int) -> None:
    """Let everything below `root` go on."""
    for pid, state in descendants(root).items():
        if state in _STOPPED:
            send(pid, signal.SIGCONT)


def kill(root: int) -> bool:
    """Kill everything below `root`, stopped first so that nothing slips away; whether all of it is gone or dying."""
    deadline = time.monotonic() + _KILL_S
    while time.monotonic() <= deadline:
        stop(root)
        alive = [pid for pid, state in descendants(root).items() if state not in _DEAD]
        if not alive:
            return True
        for pid in alive:
            send(pid, signal.SIGKILL)
        time.sleep(_PAUSE_S)
    return False


def status_fields(pid: int) -> dict[str, str]:
    """What `/proc` says about a process by name, nothing if it is gone."""
    try:
        text = Path(f"/proc/{pid}/status").read_text(errors="replace")
    except OSError:
        return {}
    pairs = (line.partition(":") for line in text.splitlines())
    return {name: value.strip() for name, _, value in pairs}


def threads_of(uid: int) -> int:
    """How many threads a user has on this machine, as `RLIMIT_NPROC` counts them."""
    every = (status_fields(pid) for pid in processes())
    return sum(int(fields["Threads"]) for fields in every if fields and int(fields["Uid"].split()[0]) == uid)
