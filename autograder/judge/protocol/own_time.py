"""How much of a wait is the runner's own doing: a neighbour on the machine costs nobody a verdict.

A runner that computes has used processor time. One that sleeps has let time pass in which it waited for no processor.
So its own time is the larger of the two:

    own = max(min(processor, wall), wall - waited)

`processor` is what all its processes used, `waited` how long one of them was ready to run and had no processor. Whoever
makes its own processes wait for each other uses a processor meanwhile: that gets it twice its limit at most. Where the
kernel does not tell of waiting, only processor time counts.

A wait is over when its limit is used up in own time, or, as a backstop, when `BACKSTOP` times that has passed. Nobody
is judged by the backstop alone: what it ended is asked once more, when the machine is quiet.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from autograder.sandbox import Spent
from autograder.sandbox.meter import waited_s

BACKSTOP = 10.0
"""How many times its limit a wait may last, whoever takes the time."""

QUIET = 0.25
"""On a quiet machine somebody waits for a processor during no more than this part of the time."""
_QUIET_LOOK_S = 1.0

Clock = Callable[[], float]


class Spending(Protocol):
    """What a wait looks at of a runner."""

    def spent(self) -> Spent:
        """What its processes have spent so far."""


@dataclass(frozen=True)
class Own:
    """What a wait took.

    Attributes:
        processor_s: of processors, in all.
        own_s: the runner's own time; never more than `wall_s`.
    """

    wall_s: float
    processor_s: float
    own_s: float


class Wait:
    """One wait for a runner. It is made while the runner is stopped, and begins at `start` or when it is made.

    Args:
        limit_s: in own time; and `BACKSTOP` times that by the wall's clock.
        left_s, backstop_s: of a budget: no longer than that, in own time and by the wall's clock.
    """

    def __init__(
        self,
        runner: Spending,
        limit_s: float,
        *,
        left_s: float = math.inf,
        backstop_s: float = math.inf,
        clock: Clock = time.monotonic,
    ) -> None:
        self._runner = runner
        self._clock = clock
        self._before = runner.spent()
        self._limit_s = limit_s
        self.limit_s = min(limit_s, left_s)
        self.backstop_s = min(BACKSTOP * limit_s, backstop_s)
        self.start = clock()
        self._end: float | None = None

    def begin(self) -> float:
        """It begins now, by the clock."""
        self.start = self._clock()
        return self.start

    def end(self) -> float:
        """It ends now; how long it was by the clock. Nothing is read: somebody may be timed."""
        self._end = self._clock()
        return self.wall_s

    @property
    def wall_s(self) -> float:
        """How long it has been, or was."""
        return (self._clock() if self._end is None else self._end) - self.start

    def is_cut(self, *, starved: bool) -> bool:
        """Whether the budget was shorter than the limit; or, of one that the backstop ended, than its backstop."""
        return self.backstop_s < BACKSTOP * self._limit_s if starved else self.limit_s < self._limit_s

    @property
    def left_s(self) -> float:
        """How long nothing has to be looked at."""
        return max(0.0, min(self.limit_s, self.backstop_s) - self.wall_s)

    def own(self) -> Own:
        """What it took so far. Files are read for it."""
        wall_s, now = self.wall_s, self._runner.spent()
        processor_s = max(0.0, now.processor_s - self._before.processor_s)
        own_s = min(processor_s, wall_s)
        if now.waited_s is not None and self._before.waited_s is not None:
            own_s = max(own_s, wall_s - (now.waited_s - self._before.waited_s))
        return Own(wall_s, processor_s, own_s)

    def is_over(self) -> bool:
        """Whether it is out of time. Nothing is read before so much has passed: own time is never longer."""
        return self.left_s <= 0 and (self.wall_s >= self.backstop_s or self.own().own_s >= self.limit_s)


def wait_until_machine_idle(
    max_s: float, clock: Clock = time.monotonic, sleep: Callable[[float], None] = time.sleep
) -> bool:
    """Wait until hardly anybody on this machine waits for a processor, or so long; whether it may be quiet.

    Where the kernel does not tell, nobody waits, and it may.
    """
    until = clock() + max_s
    while (before := waited_s()) is not None:
        if clock() >= until:
            return False
        start = clock()
        sleep(_QUIET_LOOK_S)
        if (waited_s() or before) - before <= QUIET * (clock() - start):
            break
    return True
