"""Signing what came of an attempt and putting it where the recorder gets it."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from celery import Celery

from autograder.contract import Claim, Kind
from autograder.errors import ContractError
from broker.app import RECORD, queue_of_sayings, send
from broker.envelope import Message, seal
from broker.identity import NodeKey, Sender

logger = logging.getLogger(__name__)

PAUSE_S = 0.5
MAX_MENTIONS = 1000


class Outbox:
    """What this node says; safe to use from several threads."""

    def __init__(self, app: Celery, node: str, key: NodeKey) -> None:
        self._app = app
        self._queue = queue_of_sayings(app, node)
        self._sender = Sender(node, key)
        self._mentions: queue.Queue[tuple[Kind, Message]] = queue.Queue(MAX_MENTIONS)
        self._mentioner = threading.Thread(target=self._mention_all, name="events", daemon=True)
        self._mentioner.start()

    def tell(self, kind: Kind, message: Message) -> bool:
        """Say it once; false if the broker cannot be reached.

        Raises:
            ContractError: the message is larger than the recorder takes.
        """
        text = seal(self._sender, kind, message)
        try:
            send(self._app, RECORD, self._queue, text)
        except Exception as error:  # noqa: BLE001  (whatever a broken connection becomes; threads that call this go on)
            logger.warning("a %s was not sent: %r", kind, error)
            return False
        return True

    def deliver(self, kind: Kind, message: Message, *, patience_s: float, wait: Callable[[float], None]) -> bool:
        """Say it until it is said, or for `patience_s`: while the broker is away no lease expires.

        Args:
            wait: sleeps; what it raises ends the trying.
        """
        give_up_at = time.monotonic() + patience_s
        while not self.tell(kind, message):
            if time.monotonic() > give_up_at:
                logger.error("a %s could not be sent for %.0f s", kind, patience_s)
                return False
            wait(PAUSE_S)
        return True

    def mention(self, kind: Kind, message: Message) -> None:
        """Say it soon, from a thread, if the broker answers: what is only shown must not keep the grading waiting."""
        with suppress(queue.Full):
            self._mentions.put_nowait((kind, message))

    def wait_for_mentions(self, seconds: float) -> None:
        """Let what was mentioned go first, for at most so long."""
        give_up_at = time.monotonic() + seconds
        while self._mentions.unfinished_tasks and time.monotonic() < give_up_at:
            time.sleep(0.005)

    def _mention_all(self) -> None:
        while True:
            kind, message = self._mentions.get()
            said = False
            try:
                said = self.tell(kind, message)
            except ContractError as error:
                logger.warning("a %s was not sent: %s", kind, error)
            finally:
                self._mentions.task_done()
            if not said:
                self._forget_mentions()

    def _forget_mentions(self) -> None:
        """What could not be shown in time is not shown."""
        with suppress(queue.Empty):
            while True:
                self._mentions.get_nowait()
                self._mentions.task_done()

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
