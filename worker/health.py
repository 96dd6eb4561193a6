"""Whether the node may be trusted, and since when not: what its canary, its GPU and its self-test have shown.

    fit ── the canary fails ──▶ cooling ── fails again ──▶ unfit, and what it measured since it last sang is suspect
     ▲                            │
     └──────── it sings ──────────┘        disturbed: somebody else uses the GPU; fit again when that is over

`unfit` ends when a person has looked and started the worker anew: its self-test comes first. What was suspect is kept
on disk and said in every report until the next such time, so that neither a restart nor a lost report loses it.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

logger = logging.getLogger(__name__)

HIDDEN_S = 3600.0
"""So far back is suspect where a clock that was set back hides when it last sang; the canary is due more often."""


@dataclass(frozen=True)
class Remembered:
    """What outlives the worker; seconds since the epoch."""

    good_at: float | None = None
    suspect_since: float | None = None
    suspect_until: float | None = None


class Health:
    """The node's state; safe to use from several threads.

    Args:
        path: where it is remembered.
        cool_down_s: between the canary's failure and its second chance.
        now: the time, as seconds since the epoch; it may be set.
        ticks: seconds that nobody sets, by which the node measures how long something is ago.
    """

    def __init__(
        self, path: Path, cool_down_s: float, now: Callable[[], float], ticks: Callable[[], float] = time.monotonic
    ) -> None:
        self._path = path
        self._cool_down_s = cool_down_s
        self._now = now
        self._ticks = ticks
        self._sang_at: float | None = None
        self._lock = threading.Lock()
        self._kept = _read(path)
        self._unfit = ""
        self._cooling = ""
        self._ready_at = 0.0
        self._disturbed = ""

    @property
    def remembered(self) -> Remembered:
        """When it last sang, and what is suspect."""
        return self._kept

    @property
    def unfit(self) -> bool:
        """It takes nothing before somebody has looked at it."""
        return bool(self._unfit)

    @property
    def cooled(self) -> bool:
        """It failed once, and may try again now."""
        return bool(self._cooling) and not self._unfit and self._ticks() >= self._ready_at

    @property
    def disturbed(self) -> bool:
        """Somebody else uses its GPU."""
        return bool(self._disturbed)

    def trouble(self) -> str:
        """Why it takes nothing; `""` if it does."""
        return self._unfit or self._disturbed or self._cooling

    def sang(self) -> None:
        """The golden kernel was what it has to be."""
        with self._lock:
            self._cooling = ""
            self._sang_at = self._ticks()
            self._remember(good_at=self._now())

    def failed(self, why: str) -> None:
        """The golden kernel was not: it cools down, and the second time in a row it is out of service."""
        with self._lock:
            if self._cooling:
                self._give_up(f"its golden kernel failed twice: {why}")
            else:
                logger.warning("the golden kernel failed: %s", why)
                self._cooling = f"its golden kernel failed, and it cools down: {why}"
                self._ready_at = self._ticks() + self._cool_down_s

    def quarantine(self, why: str) -> None:
        """It is out of service, and what it measured since it last sang is suspect."""
        with self._lock:
            self._give_up(why)

    def refuse(self, why: str) -> None:
        """It is out of service before it took anything."""
        with self._lock:
            logger.error("this node takes no work: %s", why)
            self._unfit = self._unfit or why

    def disturb(self, why: str) -> None:
        """Somebody else uses its GPU; `""` once nobody does."""
        with self._lock:
            if why and not self._disturbed:
                logger.error("this node takes no work for now: %s", why)
            self._disturbed = why

    def _give_up(self, why: str) -> None:
        logger.error("this node takes no more work: %s", why)
        now = self._now()
        if not self._unfit and self._kept.good_at is not None:
            self._remember(suspect_since=self._good_until(self._kept.good_at, now), suspect_until=now)
        self._unfit = self._unfit or why

    def _good_until(self, good_at: float, now: float) -> float:
        """When it last sang, on the clock as it is now: it may have been set since."""
        if self._sang_at is not None:
            return now - (self._ticks() - self._sang_at)
        return good_at if good_at <= now else now - HIDDEN_S

    def _remember(self, **changes: float) -> None:
        self._kept = Remembered(**{**asdict(self._kept), **changes})
        with suppress(OSError):  # A full disk costs the memory of it, not the node.
            new = self._path.with_suffix(".new")
            new.write_text(json.dumps(asdict(self._kept)), encoding="utf-8")
            new.replace(self._path)


def _read(path: Path) -> Remembered:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return Remembered(**{name: found[name] for name in ("good_at", "suspect_since", "suspect_until")})
    except (OSError, ValueError, KeyError, TypeError):
        return Remembered()
