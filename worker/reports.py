"""Saying that this node is alive: every few seconds, when it starts, when it drains, and when it stops."""

from __future__ import annotations

import threading
import time

from autograder.contract import Kind, NodeReport
from worker.disk import Disk
from worker.lanes import Serves, machine_facts
from worker.life import NodeLife
from worker.outbox import Outbox
from worker.stopping import Stopping

EVERY_S = 3.0
TICK_S = 0.2
SLOTS = 1
"""One attempt at a time: the judge measures alone. A machine with several devices runs one worker for each."""


class Reporter:
    """Reports from a thread of its own: the main one is busy while it grades."""

    def __init__(self, outbox: Outbox, serves: Serves, *, stopping: Stopping, disk: Disk, life: NodeLife) -> None:
        self._outbox = outbox
        self._serves = serves
        self._stopping = stopping
        self._disk = disk
        self._life = life
        self._facts = machine_facts() | serves.facts
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reports", daemon=True)

    def start(self) -> None:
        """Report now, then every few seconds, and as soon as the node takes no more work."""
        self._thread.start()

    def stop(self) -> None:
        """Say that the node is gone."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopped.is_set():
            said = self._state()
            self._report(*said)
            next_at = time.monotonic() + EVERY_S
            while time.monotonic() < next_at and self._state() == said:
                self._stopping.look()
                if self._stopped.wait(TICK_S):
                    break
            self._stopping.look()
        self._report(draining=True, slots=0)

    def _state(self) -> tuple[bool, str]:
        """Whether it takes no more work, and what keeps it from taking any."""
        trouble = self._life.trouble()
        return self._stopping.draining or bool(trouble), trouble

    def _report(self, draining: bool, trouble: str = "", slots: int = SLOTS) -> None:
        trouble = self._disk.trouble() or trouble
        kept = self._life.health.remembered
        report = NodeReport(
            lanes=self._serves.lanes,
            slots=0 if trouble else slots,
            draining=draining,
            facts={**self._facts, "trouble": trouble} if trouble else self._facts,
            at=time.time(),
            works=self._serves.works,
            calibration=self._life.calibration(),
            suspect_since=kept.suspect_since,
            suspect_until=kept.suspect_until,
        )
        self._outbox.tell(Kind.node, report)
