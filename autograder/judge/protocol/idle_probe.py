"""Wait until a device works at its own pace: what somebody gave back is being cleared, or left work behind.

A GPU clears memory that was given back, by whomever, beside all other work: on an H200 about 0.5 TB/s, 3 ms after
1.5 GiB and 75 ms after 35 GiB, in which whatever is bound by memory takes 11 % longer (docs/measurement.md). The driver
tells nobody. So the judge times a piece of work of its own before every call that counts, until it is as fast as ever.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable

logger = logging.getLogger(__name__)

WITHIN = 1.04
"""Of the shortest pace so far that two quiet probes in a row have shown: between what a quiet device shows and what
clearing does to it. What one probe shows and the next does not is luck, and of thousands the luckiest would be what all
later ones are waited for to reach.
"""

PATIENCE_S = 0.5
"""A device's whole memory is cleared in less; what lasts longer is the pace that the device has now."""

IN_ALL_S = 20.0
"""For one submission. Work that is queued after every call is waited for as often as there are calls: without an end to
it the node's attempt would run out of time, which is the node's fault and not the submission's."""

LONG_S = 0.1
"""A wait that is told of in the log."""

FIRST_PROBES = 40
"""A device that was idle takes some milliseconds to its full clock."""


class IdleProbe:
    """How fast one device is when nothing disturbs it.

    Args:
        probe: does a piece of work of a fixed size on the device and waits for it; how long it took on it.
        now: a clock in seconds.
    """

    def __init__(self, probe: Callable[[], float], now: Callable[[], float] = time.monotonic) -> None:
        self._probe = probe
        self._now = now
        self._best = math.inf
        self._last = math.inf
        self._left_s = IN_ALL_S

    def begin(self) -> None:
        """Have the whole patience again: another submission comes."""
        self._left_s = IN_ALL_S

    def wait(self) -> bool:
        """Probe until the device is quiet; whether it was within the time.

        What stays slow is believed after that: a card that throttles, or a neighbour who does not end, must not cost
        every later call so much. Whether a reference was slowed is seen afterwards, by the reference alone; so nothing
        is lost but time to measure in where the patience is used up.
        """
        if math.isinf(self._best):
            for _ in range(FIRST_PROBES):
                self._learn(self._probe())
        wanted, began = WITHIN * self._best, self._now()
        took, pace = math.inf, math.inf
        patience_s = min(PATIENCE_S, self._left_s)
        try:
            while True:
                before, took = took, self._probe()
                if took <= wanted:
                    break
                pace = min(pace, max(before, took))
                if self._now() - began > patience_s:
                    # Of a patience that is used up one probe is left, which says nothing of the pace.
                    self._best = pace if patience_s == PATIENCE_S and pace < math.inf else self._best
                    return False
        finally:
            waited_s = self._now() - began
            self._left_s = max(0.0, self._left_s - waited_s)
            if waited_s > LONG_S:
                logger.info("waited %.2f s for a quiet device: %.1f µs, %.1f wanted", waited_s, took, wanted)
        self._learn(took)
        return True

    def _learn(self, took: float) -> None:
        """What two quiet probes in a row have shown is the device's own pace."""
        self._best = min(self._best, max(took, self._last))
        self._last = took
