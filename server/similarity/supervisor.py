"""Starts a process where a comparison waits: what takes minutes must not keep the dispatcher from the queue."""

from __future__ import annotations

import os
import subprocess
import sys

from sqlalchemy import select

from server.db import Database
from server.models import Comparison, ComparisonState
from server.similarity.runner import end_silent

COMMAND = (sys.executable, "-m", "server.similarity.process")


class Keeper:
    """At most one process at a time of this dispatcher's."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._process: subprocess.Popen[bytes] | None = None

    def step(self) -> int:
        """Look whether something waits; how many processes were started."""
        if self._process is not None and self._process.poll() is None:
            return 0
        self._process = None
        if not self._is_due():
            return 0
        # copydetect chooses fragments by Python's hash of a string: by one seed, the same numbers every time.
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        self._process = subprocess.Popen(COMMAND, stdin=subprocess.DEVNULL, env=environment)
        return 1

    def _is_due(self) -> bool:
        busy = (ComparisonState.queued, ComparisonState.running)
        with self._database.reading() as session:
            states = set(session.scalars(select(Comparison.state).where(Comparison.state.in_(busy)).distinct()))
        if ComparisonState.running in states:
            with self._database.transaction() as session:
                end_silent(session)
        return ComparisonState.queued in states
