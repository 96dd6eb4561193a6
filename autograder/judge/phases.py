"""Tells when the phases of a grading begin, and remembers how long they took."""

from __future__ import annotations

import time
from collections.abc import Callable

from autograder.contract import Event, Phase, PhaseStarted, PhaseTime

Emit = Callable[[Event], None]


class Phases:
    """The phases of one grading, each ending where the next begins."""

    def __init__(self, emit: Emit) -> None:
        self.emit = emit
        self._begun: list[tuple[Phase, float, float]] = []

    def enter(self, phase: Phase) -> None:
        """Begin a phase, and say so; nothing, if it is the present one."""
        if self._begun and self._begun[-1][0] is phase:
            return
        now = time.time()
        self._begun.append((phase, now, time.monotonic()))
        self.emit(Event(phase=PhaseStarted(phase, now)))

    def times(self) -> tuple[PhaseTime, ...]:
        """Every phase with its duration in seconds; the last ends now."""
        ends = [start for _, _, start in self._begun[1:]] + [time.monotonic()]
        return tuple(
            PhaseTime(phase, at, end - start) for (phase, at, start), end in zip(self._begun, ends, strict=True)
        )
