"""Saying that a process of ours is alive: a row in `services`, written every ten seconds, gone when it ends."""

from __future__ import annotations

import logging
import os
import platform
import socket
import threading
import time
from collections.abc import Mapping
from datetime import datetime, timedelta

from sqlalchemy import delete, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from server.db import Database, now
from server.models import Service

logger = logging.getLogger(__name__)

EVERY_S = 10.0
KEPT = timedelta(days=1)
"""A process that was killed cannot take its row away: after so long somebody else does."""
LEAVE_S = 10.0
MAX_KIND_CHARS = 24
MAX_INSTANCE_CHARS = 120


def instance() -> str:
    """This process: its host and its id."""
    return f"{socket.gethostname()}:{os.getpid()}"[:MAX_INSTANCE_CHARS]


def forget_silent(session: Session, *, now: datetime) -> None:
    """Remove the rows of processes that have said nothing for a day."""
    session.execute(delete(Service).where(Service.last_seen_at < now - KEPT))


class Presence:
    """The row of this process. `beat` belongs where the process does its work, so that one that hangs is silent."""

    def __init__(self, database: Database, kind: str) -> None:
        self._database = database
        self._kind = kind[:MAX_KIND_CHARS]
        self._instance = instance()
        self._started_at: datetime | None = None
        self._next_at = 0.0

    def beat(self, facts: Mapping[str, str] | None = None) -> None:
        """Say so if it is time; a database that does not answer is no error here."""
        if time.monotonic() < self._next_at:
            return
        self._next_at = time.monotonic() + EVERY_S
        try:
            with self._database.transaction() as session:
                self._write(session, {"python": platform.python_version(), **(facts or {})})
        except SQLAlchemyError:
            logger.warning("could not say that this %s is alive", self._kind, exc_info=True)

    def leave(self) -> None:
        """Take the row away: this process ends."""
        own = delete(Service).where(Service.kind == self._kind, Service.instance == self._instance)
        try:
            with self._database.transaction() as session:
                session.execute(own)
        except SQLAlchemyError:
            logger.warning("could not say that this %s ends", self._kind, exc_info=True)

    def _write(self, session: Session, facts: dict[str, str]) -> None:
        at = now(session)
        self._started_at = self._started_at or at
        row = session.scalar(select(Service).where(Service.kind == self._kind, Service.instance == self._instance))
        if row is None:
            # Nobody else has this instance: its row is this process's own.
            row = Service(kind=self._kind, instance=self._instance, started_at=self._started_at)
            session.add(row)
        row.started_at, row.last_seen_at, row.facts = self._started_at, at, facts


class Beating:
    """Beats from a thread, for a process whose work is in other hands (a web server, Celery's consumer)."""

    def __init__(self, presence: Presence) -> None:
        self._presence = presence
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="presence", daemon=True)

    def start(self) -> None:
        """Say so now, then every few seconds."""
        self._thread.start()

    def stop(self) -> None:
        """Take the row away."""
        self._stopped.set()
        if self._thread.ident is None:
            return
        self._thread.join(LEAVE_S)
        # A database that hangs must not keep a process from ending.
        if not self._thread.is_alive():
            self._presence.leave()

    def _run(self) -> None:
        while not self._stopped.is_set():
            self._presence.beat()
            self._stopped.wait(EVERY_S)
