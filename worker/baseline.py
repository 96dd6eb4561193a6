"""The GPU's processes and memory when the worker started; after each job they are those again, but for what is ours.

What is ours after a job is the judge and the runners that it keeps: everything below this process, and the containers
that it started. Their memory is subtracted where the driver tells whose is what. Where it does not (in a container that
does not see the machine's process ids), what is ours has an allowance, and only a judge that is ended shows exactly.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from worker.nvml import Gpu, Use
from worker.processes import descendants

MEBIBYTE = 2**20
SLACK_BYTES = 512 * MEBIBYTE
"""What the driver itself may keep beside what it attributes to processes."""
STRICT_SLACK_BYTES = 128 * MEBIBYTE
"""How far from the baseline memory may be when nothing of ours is left."""
ALLOWANCE_BYTES = 96 * 2**30
"""For a judge and its runners, where it is not told what they have."""
MOST_OURS = 12
"""A judge, the references that it keeps, the pool, and a few that are ending."""
PATIENCE_S = 15.0
"""How long memory of processes that were killed may take to be free."""


@dataclass(frozen=True)
class Baseline:
    """What was there before us; `None` where it is not told."""

    used_bytes: int | None
    users: frozenset[int] | None


def take(gpu: Gpu) -> Baseline:
    """The GPU as it is now."""
    users = gpu.users()
    return Baseline(gpu.used_bytes(), None if users is None else frozenset(one.pid for one in users))


class Hygiene:
    """Compares the GPU with its baseline.

    Args:
        ours: tells which of some processes are ours.
    """

    def __init__(self, gpu: Gpu, baseline: Baseline, ours: Callable[[set[int]], set[int]]) -> None:
        self._gpu = gpu
        self.baseline = baseline
        self._ours = ours

    def after_job(self) -> str:
        """What is not as it was, while the judge lives; `""` if nothing."""
        users = self._gpu.users() or ()
        ours, strangers = self._sorted(users)
        if strangers:
            return _named(strangers)
        if len(ours) > MOST_OURS:
            return f"{len(ours)} processes of ours use it, {MOST_OURS} may"
        told = sum(one.used_bytes or 0 for one in ours)
        allowed = SLACK_BYTES if told else ALLOWANCE_BYTES
        return self._excess(told + allowed)

    def strict(self, patience_s: float = PATIENCE_S, *, every_s: float = 0.2) -> str:
        """What is not as it was when nothing of ours is left; waits for it to become so."""
        give_up_at = time.monotonic() + patience_s
        while found := self._left():
            if time.monotonic() > give_up_at:
                return found
            time.sleep(every_s)
        return ""

    def _left(self) -> str:
        ours, strangers = self._sorted(self._gpu.users() or ())
        if strangers or ours:
            return _named([*strangers, *ours])
        return self._excess(STRICT_SLACK_BYTES)

    def _excess(self, allowed: int) -> str:
        used, before = self._gpu.used_bytes(), self.baseline.used_bytes
        if before is not None and used is None:
            return "the driver no longer answers"
        if used is None or before is None or used <= before + allowed:
            return ""
        return f"{(used - before) // MEBIBYTE} MiB more than at the start are taken, {allowed // MEBIBYTE} MiB may be"

    def _sorted(self, users: tuple[Use, ...]) -> tuple[list[Use], list[Use]]:
        """What came after the baseline: what is ours, and what is not."""
        new = [one for one in users if one.pid not in (self.baseline.users or ())]
        ours = self._ours({one.pid for one in new})
        return [one for one in new if one.pid in ours], [one for one in new if one.pid not in ours]


def _named(users: list[Use]) -> str:
    told = ", ".join(f"{one.pid} ({_command(one.pid)})" for one in users[:5])
    return f"processes that should not use it: {told}"


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return "gone or out of sight"


def below_this_process(pids: set[int]) -> set[int]:
    """Which of them descend from this process."""
    return pids & descendants(os.getpid()) if pids else set()


def in_groups_of(names: Callable[[], frozenset[str]]) -> Callable[[set[int]], set[int]]:
    """Which of some processes are below this one or in a control group with one of these names in its path.

    Args:
        names: such as the ids of the containers that are ours; asked for each time.
    """

    def ours(pids: set[int]) -> set[int]:
        found = below_this_process(pids)
        others = pids - found
        known = names() if others else frozenset()
        return found | {pid for pid in others if any(name in _groups(pid) for name in known)}

    return ours


def _groups(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
