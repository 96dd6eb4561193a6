"""After an attempt: see that its result arrived, and give the server the files that it left.

The broker may lose what it took (it was flushed, it died, a recorder died with the message in its hands). So a result
is said again, and the attempt kept alive, until the server says by HTTP that it waits for it no more.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field

from autograder.contract import AttemptFailure, AttemptResult, Claim, Kind
from worker.artefacts import Files
from worker.outbox import Outbox
from worker.server import Server

logger = logging.getLogger(__name__)

LOOK_EVERY_S = 5.0
MAX_PAUSE_S = 300.0
"""A result is said again after twice as long each time, up to this: a recorder that is behind must not drown."""
GIVE_UP_S = 3600.0
"""A result that could not be confirmed for so long is let go: its lease ended long ago."""
MAX_WAITING = 32
LAST_WORD_S = 5.0
"""How long a worker that ends stays for files that are still to be given."""


@dataclass
class Ended:
    """An attempt whose result is on its way.

    Attributes:
        lease_s: four signs of life go out in this time, as while it was graded.
    """

    kind: Kind
    message: AttemptResult | AttemptFailure
    lease_s: float
    files: Files = ()
    ended_at: float = field(default_factory=time.monotonic)
    look_at: float = 0.0
    again_at: float = 0.0
    pause_s: float = LOOK_EVERY_S

    @property
    def every_s(self) -> float:
        """How often it is looked whether it arrived."""
        return min(LOOK_EVERY_S, self.lease_s / 4)


class Aftermath:
    """Works in a thread of its own: the node goes on with the next attempt."""

    def __init__(self, outbox: Outbox, server: Server) -> None:
        self._outbox = outbox
        self._server = server
        self._new: queue.Queue[Ended] = queue.Queue()
        self._waiting: list[Ended] = []
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="aftermath", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def add(self, ended: Ended) -> None:
        """See to an attempt that has just ended."""
        self._new.put(ended)

    def stop(self) -> None:
        """End, once files that are still to be given are given."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join(LAST_WORD_S)

    def _run(self) -> None:
        while not self._stopped.is_set() or not self._new.empty():
            with suppress(queue.Empty):
                self._take(self._new.get(timeout=0.2))
            self._waiting = [ended for ended in self._waiting if self._is_wanted(ended)]

    def _take(self, ended: Ended) -> None:
        for name, data in ended.files:
            self._server.keep(ended.message.attempt, ended.message.fence, name, data)
        ended.look_at, ended.again_at = ended.ended_at + ended.every_s, ended.ended_at + ended.every_s
        self._waiting = [*self._waiting, ended][-MAX_WAITING:]

    def _is_wanted(self, ended: Ended) -> bool:
        """Look whether it arrived, if it is time; false once it is done with."""
        if time.monotonic() < ended.look_at:
            return True
        ended.look_at = time.monotonic() + ended.every_s
        lives = self._server.lives(ended.message.attempt, ended.message.fence)
        if lives is False or time.monotonic() - ended.ended_at > GIVE_UP_S:
            return False
        self._say_again(ended, known_to_live=lives is True)
        return True

    def _say_again(self, ended: Ended, *, known_to_live: bool) -> None:
        attempt, fence = ended.message.attempt, ended.message.fence
        # A sign of life in any case: a web tier that does not answer must not cost the attempt its lease.
        self._outbox.tell(Kind.heartbeat, Claim(attempt, fence, time.time()))
        if known_to_live and time.monotonic() >= ended.again_at:
            logger.warning("the %s of attempt %s has not been recorded; it is said again", ended.kind, attempt)
            self._outbox.tell(ended.kind, ended.message)
            ended.again_at = time.monotonic() + ended.pause_s
            ended.pause_s = min(2 * ended.pause_s, MAX_PAUSE_S)
