"""Forecasts for everybody who watches: each lane is looked at once in a while, however many look on.

A process keeps one `Snapshots`. It holds no session. A look reads with the session of whoever needs it: with one of its
own, many requests at once could each hold a connection and wait for another.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from time import monotonic

from sqlalchemy.orm import Session

from server import db
from server.grading.forecast import LaneForecast, Wait, forecast
from server.grading.history import HourOfWaits, waits_by_hour
from server.models import Lane, Submission

FRESH_S = 2.0
"""How old a shared look may be,"""
LOOK_SHARE = 0.02
"""or older, where the queue is so long that looking would take more than this of a core."""
HISTORY_S = 60.0
SHARE = 0.1
"""Looks out of turn, for somebody who came after the last one, take at most so much of a core,"""
BURST_S = 0.5
"""after a reserve of so many seconds."""


@dataclass
class _Shared:
    """The newest look at one lane, and when it began, by the monotonic clock."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    seen: LaneForecast | None = None
    looked_at: float = float("-inf")
    took_s: float = 0.0
    history: list[HourOfWaits] = field(default_factory=list)
    history_at: float = float("-inf")

    @property
    def is_fresh(self) -> bool:
        """Whether the look is not too old to show."""
        return monotonic() - self.looked_at < max(FRESH_S, self.took_s / LOOK_SHARE)


class Snapshots:
    """The newest look at each lane."""

    def __init__(self) -> None:
        self._lanes = {lane: _Shared() for lane in Lane}
        self._reserve_s = BURST_S
        self._reserve_at = monotonic()
        self.looks = 0
        """How many looks were taken, for tests and metrics."""

    def peek(self, lane: Lane) -> LaneForecast | None:
        """The newest look if it is fresh, or if somebody is about to take the next; costs nothing."""
        shared = self._lanes[lane]
        return shared.seen if shared.is_fresh or shared.lock.locked() else None

    def newest(self, session: Session, lane: Lane) -> LaneForecast:
        """The lane as it was at most `FRESH_S` ago; who comes while another looks gets the one before."""
        if (seen := self.peek(lane)) is not None:
            return seen
        shared = self._lanes[lane]
        with shared.lock:
            # Whoever waited for the lock finds that the look was taken.
            return shared.seen if shared.seen is not None and shared.is_fresh else self._look(session, lane, shared)

    def wait_of(self, session: Session, submission: Submission) -> Wait | None:
        """What this submission, which waits, can be told; `None` if it came a moment ago and is not seen yet."""
        asked_at = monotonic()
        wait = self.newest(session, submission.lane).waits.get(submission.id)
        if wait is not None:
            return wait
        shared = self._lanes[submission.lane]
        with shared.lock:
            # Another newcomer may have looked meanwhile; one look serves all who came before it.
            if shared.looked_at < asked_at and self._may_look():
                self._look(session, submission.lane, shared)
        seen = shared.seen
        return seen.waits.get(submission.id) if seen is not None else None

    def history(self, session: Session, lane: Lane) -> list[HourOfWaits]:
        """How long people waited in the last hours; counted again at most every `HISTORY_S`."""
        shared = self._lanes[lane]
        if monotonic() - shared.history_at >= HISTORY_S:
            # Two at once count twice, which hurts nobody.
            shared.history, shared.history_at = waits_by_hour(session, lane, db.now(session)), monotonic()
        return shared.history

    def _may_look(self) -> bool:
        now = monotonic()
        self._reserve_s = min(BURST_S, self._reserve_s + (now - self._reserve_at) * SHARE)
        self._reserve_at = now
        return self._reserve_s > 0

    def _look(self, session: Session, lane: Lane, shared: _Shared) -> LaneForecast:
        """Look at the lane; its lock has to be held."""
        began = monotonic()
        seen = forecast(session, lane, db.now(session))
        shared.seen, shared.looked_at = seen, began
        shared.took_s = monotonic() - began
        self._reserve_s -= shared.took_s
        self.looks += 1
        return seen
