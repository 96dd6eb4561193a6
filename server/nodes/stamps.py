"""Each of a node's signed messages is taken once, and none that is old: what was captured cannot be played again.

Every process of a node counts what it signs, under a number drawn at random, its session. Of the newest sessions of a
node it is kept which numbers were taken. Messages overtake each other (there are several recorders, and what a killed
one had comes again), so the newest `WINDOW` numbers may come in any order. What is of a session that is not kept any
more is older than `NodeStamps.floor_at`, and refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from autograder.contract import Stamp
from server.models import NodeStamps

MAX_AGE_S = 86_400.0
"""A recorder that was away for so long still takes what waited; a clock that is further off says nothing."""
WINDOW = 1024
KEPT_SESSIONS = 16
MAX_NUMBER = 2**62


class Freshness(StrEnum):
    """Whether a message may be taken."""

    fresh = "fresh"
    repeated = "repeated"
    """It was taken before, or is so far behind that nobody can tell."""
    stale = "stale"
    """Older than a day, from a clock that is a day ahead, or of a session from before those that are kept."""


@dataclass(frozen=True)
class _Heard:
    """One session: bit n of `seen` says that `highest - n` was taken."""

    session: int
    highest: int
    seen: int
    newest_at: float

    @classmethod
    def of(cls, row: list[Any]) -> _Heard:
        session, highest, seen, newest_at = row
        return cls(session, highest, int(seen, 16), newest_at)

    def row(self) -> list[Any]:
        return [self.session, self.highest, f"{self.seen:x}", self.newest_at]

    def with_one_more(self, stamp: Stamp) -> _Heard | None:
        """After this message, `None` if it was taken before."""
        newest = max(self.newest_at, stamp.at)
        ahead = stamp.number - self.highest
        if ahead > 0:
            seen = ((self.seen << ahead) | 1) & (2**WINDOW - 1) if ahead < WINDOW else 1
            return _Heard(self.session, stamp.number, seen, newest)
        # How far back it may be is asked first: a number of 62 bits would be a shift by as many.
        if -ahead >= WINDOW or self.seen & 1 << -ahead:
            return None
        return _Heard(self.session, self.highest, self.seen | 1 << -ahead, newest)


def take(session: Session, node_id: int, stamp: Stamp, *, now: datetime) -> Freshness:
    """Note that this message is taken, if it may be; its signature has to be verified before."""
    off = now.timestamp() - stamp.at
    if not math.isfinite(off) or abs(off) > MAX_AGE_S:
        return Freshness.stale
    if not (0 <= stamp.session < MAX_NUMBER and 0 < stamp.number < MAX_NUMBER):
        return Freshness.stale
    query = select(NodeStamps).where(NodeStamps.node_id == node_id).with_for_update()
    row = session.scalars(query.execution_options(populate_existing=True)).one()
    heard = [_Heard.of(item) for item in row.sessions]
    known = next((item for item in heard if item.session == stamp.session), None)
    if known is None and stamp.at <= row.floor_at:
        return Freshness.stale
    after = (known or _Heard(stamp.session, 0, 0, stamp.at)).with_one_more(stamp)
    if after is None:
        return Freshness.repeated
    kept = [after, *(item for item in heard if item is not known)]
    row.floor_at = max([row.floor_at, *(item.newest_at for item in kept[KEPT_SESSIONS:])])
    row.sessions = [item.row() for item in kept[:KEPT_SESSIONS]]
    return Freshness.fresh
