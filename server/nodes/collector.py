"""Takes what nodes say on to the recorder: each node appends to a list of its own, which nobody else writes.

    said.<node>  ──┐
    said.<other> ──┼─> results ──> recorder
    ticks        ──┘

So one node that says too much keeps nobody else waiting: every round takes at most `SHARE` of each. What does not fit
stays where it is, and nothing is lost: with more than `MOST_WAITING` messages or bytes in its list a node may append
nothing until most of that is taken, and tries again meanwhile, as with a broker that is full. Only where one fills the
broker before it can be kept from it, or while nobody collects, what it said last is dropped; the attempts that this was
about are lost, and graded again. Ticks come last: one goes on when everything that was said before it has gone, except
by a node with more than its share, whose own doing that is (`server.grading.lease_clock`).

What is not a message is set aside with the name of the node that put it there, and so is a key of the wrong type. Staff
are told of all three. Several may run.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass

import redis
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from broker.app import RESULTS, TICKS, said_queue, unacked_keys
from broker.redis import ASIDE, ASIDE_S, mend, message_in
from server import alerts
from server.config import Config
from server.db import Database, now
from server.models import AlertKind, Node
from server.nodes import access

logger = logging.getLogger(__name__)

PAUSE_S = 0.05
AWAY_S = 1.0
NAMES_EVERY_S = 2.0
MEND_EVERY_S = 1.0
SHARE = 100
"""At most so many messages of one node are taken in one round."""
PEEK = 4
"""So many are looked at together: each may have megabytes."""
MOST_RECORDING = 500
"""With so many before the recorder nothing more is taken on."""
MOST_WAITING = 2_000
MOST_BYTES = 32 * 2**20
ENOUGH = 0.25
"""A node may append again when this part of either is left."""
KEPT_ASIDE = 50
LARGEST_ASIDE = 64 * 1024
_GARBAGE, _FLOOD = "something that is not a message", "more than can be taken on"


@dataclass(frozen=True)
class Told:
    """What staff are to be told of a node, or of a key."""

    subject: str
    message: str


class Collector:
    """One round after the other, from a thread of its own."""

    def __init__(self, database: Database, config: Config) -> None:
        self._database = database
        self._url = config.broker_url
        self._hashes: Mapping[str, str] = {}
        self._silenced: set[str] = set()
        self._due = dict.fromkeys(("names", "mend"), 0.0)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="collector", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End after this round."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        with access.connect(self._url, decode=False) as broker:
            while not self._stopped.is_set():
                pause_s = PAUSE_S
                try:
                    self.step(broker)
                except (redis.RedisError, SQLAlchemyError) as error:
                    logger.warning("what nodes say was not taken on: %r", error)
                    pause_s = AWAY_S
                self._stopped.wait(pause_s)

    def step(self, broker: redis.Redis) -> int:
        """One round; how many messages were taken on."""
        told: list[Told] = []
        if self._is_due("names", NAMES_EVERY_S):
            self._learn_names(broker)
        if self._is_due("mend", MEND_EVERY_S):
            told += [Told("broker", f"A key had the wrong type; it is now {aside}.") for aside in self.mend(broker)]
        ticks = broker.llen(TICKS)
        waiting = {name: count for name in self._hashes if (count := broker.llen(said_queue(name)))}
        told += self._bound(broker, waiting)
        taken = dict.fromkeys(waiting, 0)
        try:
            for name, count in waiting.items():
                taken[name] = self._take(broker, name, min(count, SHARE), told)
        except redis.OutOfMemoryError:
            told += self._make_room(broker, waiting)
        if all(taken[name] >= min(count, SHARE) for name, count in waiting.items()):
            for _ in range(ticks):
                broker.lmove(TICKS, RESULTS, "RIGHT", "LEFT")
        self._tell(told)
        return sum(taken.values())

    def mend(self, broker: redis.Redis) -> list[str]:
        """Set aside what has the wrong type; where it is now."""
        unacked, index, lock = unacked_keys(RESULTS)
        said = dict.fromkeys((RESULTS, TICKS, *map(said_queue, self._hashes)), "list")
        return mend(broker, {**said, unacked: "hash", index: "zset", lock: "string"})

    def _learn_names(self, broker: redis.Redis) -> None:
        with self._database.reading() as session:
            rows = session.execute(select(Node.name, Node.broker_hash).where(Node.broker_hash.is_not(None))).all()
        known = self._hashes
        self._hashes = {row.name: row.broker_hash for row in rows}
        for name in self._hashes.keys() - known.keys():
            # Whoever collected before may have kept it from appending, and have ended since.
            if access.is_silenced(broker, name):
                self._silenced.add(name)

    def _bound(self, broker: redis.Redis, waiting: Mapping[str, int]) -> list[Told]:
        """Keep nodes with too much in their list from appending, and let those append again that have little left."""
        told = []
        for name, count in waiting.items():
            if name not in self._silenced and self._fills(broker, name, count) >= 1:
                self._let_say(broker, name, may_say=False)
                told.append(Told(f"node:{name}", f"Node {name} says {_FLOOD}: {count} messages wait. It waits, too."))
        for name in sorted(self._silenced):
            if name not in self._hashes or self._fills(broker, name, waiting.get(name, 0)) <= ENOUGH:
                self._let_say(broker, name, may_say=True)
        return told

    def _make_room(self, broker: redis.Redis, waiting: Mapping[str, int]) -> list[Told]:
        """The broker is full, so that nothing can be taken on: drop what a node said last beyond what it may."""
        told = []
        for name, count in waiting.items():
            kept = int(count / max(1.0, self._fills(broker, name, count)))
            if kept < count:
                broker.ltrim(said_queue(name), -kept, -1)
                told.append(Told(f"node:{name}", f"Node {name} filled the broker: its newest messages were dropped."))
        return told

    def _fills(self, broker: redis.Redis, name: str, count: int) -> float:
        """Which part of what it may have waiting."""
        size = broker.memory_usage(said_queue(name), samples=PEEK) if count else 0
        return max(count / MOST_WAITING, (size or 0) / MOST_BYTES)

    def _let_say(self, broker: redis.Redis, name: str, *, may_say: bool) -> None:
        if (password_hash := self._hashes.get(name)) is not None:
            access.let_say(broker, self._url, name, password_hash, may_say=may_say)
        if may_say:
            self._silenced.discard(name)
        else:
            self._silenced.add(name)

    def _take(self, broker: redis.Redis, name: str, many: int, told: list[Told]) -> int:
        """Take so many of what a node said on, oldest first, as far as the recorder keeps up."""
        queue, taken = said_queue(name), 0
        while taken < many and (room := MOST_RECORDING - broker.llen(RESULTS)) > 0:
            begin = -min(PEEK, many - taken, room)
            items: list[bytes] = broker.lrange(queue, begin, -1)  # type: ignore[assignment]  # not decoded
            for item in reversed(items):
                # Between looking and moving another collector may have been here; the recorder drops garbage as well.
                if message_in(item) is not None:
                    broker.lmove(queue, RESULTS, "RIGHT", "LEFT")
                else:
                    _set_aside(broker, queue, item)
                    told.append(Told(f"node:{name}", f"Node {name} put {_GARBAGE} on its queue: {item[:200]!r}."))
                taken += 1
            if not items:
                return many
        return taken

    def _tell(self, told: list[Told]) -> None:
        if not told:
            return
        with self._database.transaction() as session:
            for one in {(item.subject, item.message): item for item in told}.values():
                alerts.raise_alert(session, AlertKind.broker_misused, one.subject, one.message, now(session))

    def _is_due(self, name: str, every_s: float) -> bool:
        if time.monotonic() < self._due[name]:
            return False
        self._due[name] = time.monotonic() + every_s
        return True


def _set_aside(broker: redis.Redis, queue: str, item: bytes) -> None:
    if len(item) > LARGEST_ASIDE:
        broker.rpop(queue)
        return
    aside = f"{ASIDE}{queue}"
    broker.lmove(queue, aside, "RIGHT", "LEFT")
    broker.ltrim(aside, 0, KEPT_ASIDE - 1)
    broker.expire(aside, ASIDE_S)
