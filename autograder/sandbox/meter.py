"""How much processor time a runner's processes have had, and how long they waited for a processor.

By the runner's control group, where it has one whose files say so; otherwise by `/proc`: processor time and waiting of
all processes below its init, or the waiting of the whole machine. Neither ever goes down.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from autograder.sandbox import Spent, tree

MACHINE = "/proc/pressure/cpu"
_TICKS = os.sysconf("SC_CLK_TCK")

Reading = Callable[[], float | None]
"""Seconds so far, `None` where nobody tells."""


class Meter:
    """Reads both.

    Args:
        processor: the readings of processor time. The first that tells counts, every time.
        waited: the same of waiting.
    """

    def __init__(self, processor: list[Reading], waited: list[Reading]) -> None:
        self._processor = _first(processor)
        self._waited = _first(waited)
        self._most = Spent(0.0, None)

    def read(self) -> Spent:
        """What was spent so far. Of a tree that is gone it says what it said last."""
        processor_s, waited_s = self._processor() or 0.0, self._waited()
        before = self._most
        if waited_s is None or before.waited_s is not None:
            waited_s = before.waited_s if waited_s is None else max(waited_s, before.waited_s or 0.0)
        self._most = Spent(max(processor_s, before.processor_s), waited_s)
        return self._most


def meter(root: int, unified: str = "", cpuacct: str = "") -> Meter:
    """The meter of a tree.

    Args:
        root: the process above all of it; what it has reaped counts.
        unified, cpuacct: folders of its control group, in the hierarchies of version 2 and 1 that have it.
    """
    return Meter(
        [
            lambda: _of_lines(unified, "cpu.stat", "usage_usec", 1e6),
            lambda: _of_number(cpuacct, "cpuacct.usage", 1e9),
            lambda: tree.processor_ticks(root) / _TICKS,
        ],
        [
            lambda: waited_s(f"{unified}/cpu.pressure") if unified else None,
            lambda: tree.waited_s(root),
            waited_s,
        ],
    )


def waited_s(path: str = MACHINE) -> float | None:
    """How long so far somebody, on this machine or in a group, waited for a processor; `None` if nobody tells."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path(path).read_text().split("total=")[1].split()[0]) / 1e6
    return None


def _first(readings: list[Reading]) -> Reading:
    """The first that tells something now."""
    return next((reading for reading in readings if reading() is not None), lambda: None)


def _of_lines(folder: str, file: str, name: str, unit: float) -> float | None:
    with suppress(OSError, ValueError):
        lines = Path(folder, file).read_text().splitlines() if folder else []
        return next((int(line.split()[1]) / unit for line in lines if line.startswith(f"{name} ")), None)
    return None


def _of_number(folder: str, file: str, unit: float) -> float | None:
    with suppress(OSError, ValueError):
        return int(Path(folder, file).read_text()) / unit if folder else None
    return None
