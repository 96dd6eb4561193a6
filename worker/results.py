"""Signing what came of an attempt and putting it on the results queue."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from celery import Celery
from kombu.exceptions import OperationalError

from autograder.contract import Claim, Kind
from broker.app import RECORD, RESULTS, send
from broker.envelope import Message, key_of, seal

logger = logging.getLogger(__name__)

PAUSE_S = 0.5


class Outbox:
    """What this node says; safe to use from several threads."""

    def __init__(self, app: Celery, node: str, token: str) -> None:
        self._app = app
        self._node = node
        self._key = key_of(token)
        self._heard_at = time.monotonic()

    def tell(self, kind: Kind, message: Message) -> bool:
        """Say it once; false if the broker cannot be reached.

        Raises:
            ContractError: the message is larger than the recorder takes.
        """
        text = seal(self._node, self._key, kind, message)
        try:
            send(self._app, RECORD, RESULTS, text)
        except (OperationalError, OSError) as error:
            logger.warning("a %s was not sent: %r", kind, error)
            return False
        self._heard_at = time.monotonic()
        return True

    def deliver(self, kind: Kind, message: Message, *, lease_s: float) -> bool:
        """Say it until it is said, or until nothing was for so long that the lease is gone and nobody wants to know."""
        while not self.tell(kind, message):
            if time.monotonic() - self._heard_at > lease_s:
                logger.error("a %s was not sent while its lease lasted", kind)
                return False
            time.sleep(PAUSE_S)
        return True

    @contextmanager
    def heartbeat(self, attempt: str, fence: int, *, lease_s: float) -> Iterator[None]:
        """Say four times per lease that this attempt is being worked on, from a thread of its own."""
        stop = threading.Event()

        def beat() -> None:
            while not stop.wait(lease_s / 4):
                self.tell(Kind.heartbeat, Claim(attempt, fence, time.time()))

        thread = threading.Thread(target=beat, name="heartbeat", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
