"""Saying that this node is alive: every few seconds, when it starts, when it drains, and when it stops."""

from __future__ import annotations

import os
import platform
import threading
import time
from importlib import metadata

from autograder.contract import CONTRACT_VERSION, Kind, Lane, NodeReport
from worker.results import Outbox

EVERY_S = 3.0
TICK_S = 0.2
SLOTS = 1
"""One attempt at a time: the judge measures alone. A machine with several devices runs one worker for each."""


class Reporter:
    """Reports from a thread of its own: the main one is busy while it grades."""

    def __init__(self, outbox: Outbox, lanes: tuple[Lane, ...]) -> None:
        self._outbox = outbox
        self._lanes = lanes
        self._facts = facts()
        self._draining = False
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reports", daemon=True)

    def start(self) -> None:
        """Report now, then every few seconds."""
        self._thread.start()

    def drain(self) -> None:
        """Say soon that no more attempts are taken. A signal handler may call this: it takes no lock."""
        self._draining = True

    def stop(self) -> None:
        """Say that the node is gone."""
        self._draining = True
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopped.is_set():
            said_draining = self._draining
            self._report(SLOTS)
            next_at = time.monotonic() + EVERY_S
            while time.monotonic() < next_at and self._draining == said_draining and not self._stopped.wait(TICK_S):
                pass
        self._report(0)

    def _report(self, slots: int) -> None:
        self._outbox.tell(Kind.node, NodeReport(self._lanes, slots, self._draining, self._facts, time.time()))


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
