"""How far the recorder has heard what nodes say: the time that leases expire against.

A node whose recorder is away is not silent, it is not heard. So the dispatcher sends itself a message through the
results queue every two seconds, a *tick*: when the recorder has heard it, it has heard everything that was said before.
The lease clock stands at the newest tick that was heard, and after a gap between ticks (the recorder, the broker or the
dispatcher was away, or the clock jumped) it stands still until ticks have come for one whole lease: as long as a living
node needs to be heard again. docs/decisions/ has a page.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise

from sqlalchemy import delete, func, or_, select, update
from sqlalchemy.orm import Session

from server.models import Tick

TICK_EVERY = timedelta(seconds=2)
MAX_GAP = timedelta(seconds=10)
"""Ticks further apart than this are no unbroken row; a tick that is not heard for so long is an alert."""
KEPT = timedelta(minutes=15)
AHEAD = timedelta(seconds=2)
"""A tick further in the future than this was made before the clock was set back."""

_NONCE = re.compile(r"[0-9a-f]{32}")


def make_tick(session: Session, *, now: datetime) -> str | None:
    """A new tick, to be sent once it is committed; `None` where another dispatcher has just made one."""
    newest = session.scalar(select(func.max(Tick.made_at)).where(Tick.made_at <= now))
    if newest is not None and now - newest < TICK_EVERY:
        return None
    nonce = secrets.token_hex(16)
    session.add(Tick(nonce=nonce, made_at=now))
    return nonce


def hear(session: Session, nonce: object, *, now: datetime) -> bool:
    """Note that a tick came through; false for one that is not ours, or that came before."""
    if not isinstance(nonce, str) or not _NONCE.fullmatch(nonce):
        return False
    heard = update(Tick).where(Tick.nonce == nonce, Tick.heard_at.is_(None)).values(heard_at=now)
    return bool(session.execute(heard.returning(Tick.nonce)).all())


def lease_clock(session: Session, *, now: datetime, lease_s: float) -> datetime | None:
    """The time at which leases are looked at; `None` while none may expire."""
    lease = timedelta(seconds=lease_s)
    row = _heard(session, now=now, span=lease + MAX_GAP)
    for later, earlier in pairwise(row):
        if later - earlier > MAX_GAP:
            return None
        if row[0] - earlier >= lease:
            return row[0]
    return None


def heard_before(session: Session, *, now: datetime, span_s: float) -> datetime | None:
    """Since when nothing but gaps is left out, so long was heard; `None` where ticks tell of less.

    What is older than this is older by any clock: one that was set forward makes a gap, which counts for nothing.
    """
    heard, left = (Tick.heard_at.is_not(None), Tick.made_at <= now), timedelta(seconds=span_s)
    for later, earlier in pairwise(session.scalars(select(Tick.made_at).where(*heard).order_by(Tick.made_at.desc()))):
        left -= later - earlier if later - earlier <= MAX_GAP else timedelta()
        if left <= timedelta():
            return earlier
    return None


def _heard(session: Session, *, now: datetime, span: timedelta) -> Sequence[datetime]:
    """When the ticks that were heard were made, the newest first."""
    heard = (Tick.heard_at.is_not(None), Tick.made_at <= now)
    newest = session.scalar(select(func.max(Tick.made_at)).where(*heard))
    if newest is None:
        return []
    query = select(Tick.made_at).where(*heard, Tick.made_at >= newest - span).order_by(Tick.made_at.desc())
    return session.scalars(query).all()


def behind_s(session: Session, *, now: datetime) -> float:
    """For how long a tick has been under way that nothing newer has overtaken, in seconds."""
    newest = select(func.max(Tick.made_at)).where(Tick.heard_at.is_not(None), Tick.made_at <= now).scalar_subquery()
    waiting = (Tick.heard_at.is_(None), Tick.made_at <= now)
    # Before anything was heard there is no newest one, and every tick waits.
    oldest = session.scalar(
        select(func.min(Tick.made_at)).where(*waiting, or_(newest.is_(None), Tick.made_at > newest))
    )
    return (now - oldest).total_seconds() if oldest is not None else 0.0


def forget_ticks(session: Session, *, now: datetime, longest_s: float) -> None:
    """Remove old ticks, and those from a future that the clock was set back from.

    Args:
        longest_s: the longest time that anything is held against.
    """
    old = now - max(KEPT, timedelta(seconds=2 * longest_s))
    session.execute(delete(Tick).where(or_(Tick.made_at < old, Tick.made_at > now + AHEAD)))
