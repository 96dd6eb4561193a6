"""Wait until a device works at its own pace: what somebody gave back is being cleared, or left work behind.

A GPU clears memory that was given back, by whomever, beside all other work: on an H200 about 0.5 TB/s, 3 ms after
1.5 GiB and 75 ms after 35 GiB, in which whatever is bound by memory takes 11 % longer (docs/measurement.md). The driver
tells nobody. So the judge times a piece of work of its own before every call that counts, until it is as fast as ever.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

WITHIN = 1.04
"""Of the shortest probe so far: between what a quiet device shows and what clearing does to it."""

PATIENCE_S = 0.5
"""A device's whole memory is cleared in less; what lasts longer is the pace that the device has now."""

FIRST_PROBES = 40
"""A device that was idle takes some milliseconds to its full clock."""


class Pace:
    """How fast one device is when nothing disturbs it.

    Args:
        probe: does a piece of work of a fixed size on the device and waits for it; how long it took on it.
        now: a clock in seconds.
    """

    def __init__(self, probe: Callable[[], float], now: Callable[[], float] = time.monotonic) -> None:
        self._probe = probe
        self._now = now
        self._best = math.inf

    def wait(self) -> bool:
        """Probe until the device is quiet; whether it was within the time.

        What stays slow is believed after that: a card that throttles, or a neighbour who does not end, must not cost
        every later call so much. Whether a reference was slowed is seen afterwards, by the reference alone.
        """
        if math.isinf(self._best):
            self._best = min(self._probe() for _ in range(FIRST_PROBES))
        began, shortest = self._now(), math.inf
        while (took := self._probe()) > WITHIN * self._best:
            shortest = min(shortest, took)
            if self._now() - began > PATIENCE_S:
                self._best = shortest
                return False
        self._best = min(self._best, took)
        return True
