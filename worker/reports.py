"""Saying that this node is alive: every few seconds, when it starts, when it drains, and when it stops."""

from __future__ import annotations

import os
import platform
import threading
import time
from importlib import metadata

from autograder.contract import CONTRACT_VERSION, Kind, Lane, NodeReport, Work
from worker.disk import Disk
from worker.results import Outbox
from worker.stopping import Stopping

EVERY_S = 3.0
TICK_S = 0.2
SLOTS = 1
"""One attempt at a time: the judge measures alone. A machine with several devices runs one worker for each."""


class Reporter:
    """Reports from a thread of its own: the main one is busy while it grades."""

    def __init__(
        self, outbox: Outbox, lanes: tuple[Lane, ...], works: tuple[Work, ...], *, stopping: Stopping, disk: Disk
    ) -> None:
        self._outbox = outbox
        self._lanes = lanes
        self._works = works
        self._stopping = stopping
        self._disk = disk
        self._facts = facts()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reports", daemon=True)

    def start(self) -> None:
        """Report now, then every few seconds, and as soon as the node is asked to stop."""
        self._thread.start()

    def stop(self) -> None:
        """Say that the node is gone."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopped.is_set():
            said_draining = self._stopping.draining
            self._report(said_draining)
            next_at = time.monotonic() + EVERY_S
            while time.monotonic() < next_at and self._stopping.draining == said_draining:
                self._stopping.look()
                if self._stopped.wait(TICK_S):
                    break
            self._stopping.look()
        self._report(draining=True, slots=0)

    def _report(self, draining: bool, slots: int = SLOTS) -> None:
        trouble = self._disk.trouble()
        known = {**self._facts, "trouble": trouble} if trouble else self._facts
        slots = 0 if trouble else slots
        self._outbox.tell(Kind.node, NodeReport(self._lanes, slots, draining, known, time.time(), self._works))


def facts() -> dict[str, str]:
    """Names and versions, for the node page."""
    found = {
        "host": platform.node(),
        "system": platform.platform(),
        "machine": platform.machine(),
        "cores": str(len(os.sched_getaffinity(0))),
        "python": platform.python_version(),
        "contract": str(CONTRACT_VERSION),
    }
    for name in ("torch", "triton"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found
