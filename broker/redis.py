"""The broker of several machines: kombu's Redis transport, mended where it dies of what others do, and without Lua.

As shipped:

- an acknowledgement that does not get through leaves its message counted as being worked on; Celery logs that and goes
  on. With one message at a time that was the last one: the process lives, and never takes another. Here the message is
  forgotten whatever happens. Redis still has it, and gives it to somebody once `visibility_timeout` is over: a repeated
  one changes nothing (`server.grading.record`, `worker.attempts`).
- the lock under which overdue messages are put back is let go by a script. Here it is let go by a transaction, so that
  no node needs the right to run scripts.
- queues are noted as bound to an exchange, in a set that all nodes would write. We send to the anonymous exchange,
  which is a queue's name: here nothing is noted.
- what is no message, or a key of another type than it should have, ends the consumer, and the next one, and the next.
  Here the former is dropped and the latter set aside (`mend`), and the log says so.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from queue import Empty
from typing import Any

import redis as redis_client
from kombu.transport import redis, virtual
from kombu.utils.encoding import bytes_to_str
from kombu.utils.json import loads

logger = logging.getLogger(__name__)

ASIDE = "aside."
"""Begins the name of a key that was of the wrong type."""
ASIDE_S = 7 * 86_400
"""So long it is kept for a look."""
WRONG_TYPE = "WRONGTYPE"


def mend(client: redis_client.Redis, types: Mapping[str, str]) -> list[str]:
    """Set keys aside that have another type than they should; the names under which they are kept now.

    Args:
        types: by key, what Redis calls its type: `list`, `hash`, `zset`, `string`.
    """
    kept = []
    for key, wanted in types.items():
        found = bytes_to_str(client.type(key))
        if found in {"none", wanted}:
            continue
        aside = f"{ASIDE}{key}.{time.time_ns()}"
        with suppress(redis_client.ResponseError):  # Somebody else was faster.
            client.rename(key, aside)
            client.expire(aside, ASIDE_S)
            logger.error("the broker's key %s is a %s, not a %s; it is %s now", key, found, wanted, aside)
            kept.append(aside)
    return kept


class QoS(redis.QoS):
    """What this consumer took and has not acknowledged."""

    def ack(self, delivery_tag: str) -> None:
        """Tell Redis that it is done with; raises what the connection raises."""
        try:
            super().ack(delivery_tag)  # type: ignore[no-untyped-call]  # kombu has no types
        except Exception:
            self._forget(delivery_tag)
            raise

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        """Tell Redis to drop it, or to give it to somebody again; raises what the connection raises."""
        try:
            super().reject(delivery_tag, requeue)  # type: ignore[no-untyped-call]
        except Exception:
            self._forget(delivery_tag)
            raise

    def restore_visible(self, start: int = 0, num: int | None = 10, interval: int = 10) -> None:
        """Put back what was taken `visibility_timeout` ago and not acknowledged, if nobody else is at it."""
        self._vrestore_count += 1
        if (self._vrestore_count - 1) % (interval or 1):
            return
        with self.channel.conn_or_acquire() as client, self._lock(client) as held:
            overdue = time.time() - self.visibility_timeout
            tags = client.zrange(
                self.unacked_index_key, overdue, 0, desc=True, byscore=True, offset=num and start, num=num
            )
            for tag in tags if held else ():
                self._restore(client, bytes_to_str(tag))

    def _restore(self, client: redis_client.Redis, tag: str) -> None:
        try:
            self.restore_by_tag(tag, client)  # type: ignore[no-untyped-call]
        except (ValueError, TypeError) as error:
            # Nothing that was ever a message: put back, it would end every consumer after this one.
            logger.error("dropped what was kept as unacknowledged under %.60s: %r", tag, error)  # noqa: TRY400
            self._remove_from_indices(tag).execute()  # type: ignore[no-untyped-call]

    @contextmanager
    def _lock(self, client: redis_client.Redis) -> Iterator[bool]:
        """Whether this consumer has the lock; it lets go of it, unless its time is over and another one has it."""
        key, mine = self.unacked_mutex_key, secrets.token_hex(16)
        held = bool(client.set(key, mine, nx=True, ex=self.unacked_mutex_expire))
        try:
            yield held
        finally:
            if held:
                client.transaction(lambda pipe: self._let_go(pipe, mine), key)

    def _let_go(self, pipe: Any, mine: str) -> None:
        found = pipe.get(self.unacked_mutex_key)
        pipe.multi()
        if found is not None and bytes_to_str(found) == mine:
            pipe.delete(self.unacked_mutex_key)

    def _forget(self, delivery_tag: str) -> None:
        virtual.QoS.ack(self, delivery_tag)


class Channel(redis.Channel):
    """As kombu's, apart from what stands above."""

    QoS = QoS

    def types(self) -> dict[str, str]:
        """The types that the keys of what this channel consumes should have."""
        queues = dict.fromkeys(self.active_queues, "list")
        own = {self.unacked_key: "hash", self.unacked_index_key: "zset", self.unacked_mutex_key: "string"}
        return {**queues, **own}

    def _queue_bind(self, exchange: str, routing_key: str, pattern: str, queue: str) -> None:
        """Nothing is looked up by exchange."""

    def _brpop_read(self, **options: Any) -> bool:
        # As in kombu, but for what is no message or comes of a key of the wrong type.
        try:
            found = self._popped(options)
            if not found:
                raise Empty
            where, item = found
            queue = bytes_to_str(where).rsplit(self.sep, 1)[0]
            self._queue_cycle.rotate(queue)
            return self._deliver_or_drop(queue, item)
        except redis_client.ResponseError as error:
            self._mend(error)
            raise Empty from None
        finally:
            self._in_poll = None  # type: ignore[assignment]  # as kombu does
            self._flush_brpop_reauth()  # type: ignore[no-untyped-call]

    def _popped(self, options: dict[str, Any]) -> Any:
        try:
            return self.client.parse_response(self.client.connection, "BRPOP", **options)
        except self.connection_errors:
            self.client.connection.disconnect()
            raise

    def _deliver_or_drop(self, queue: str, item: bytes) -> bool:
        raw = message_in(item)
        if raw is None:
            logger.error("dropped %d bytes from queue %s: they are no message", len(item), queue)
            raise Empty
        self.connection._deliver(raw, queue)  # noqa: SLF001  (what kombu's own method does)
        return True

    def _mend(self, error: redis_client.ResponseError) -> None:
        if not str(error).startswith(WRONG_TYPE):
            raise error
        with self.conn_or_acquire() as client:
            mend(client, self.types())


class _Bodies:
    """What kombu needs of a channel to read a message's body."""

    codecs = virtual.Channel.codecs
    decode_body = virtual.Channel.decode_body


def message_in(item: bytes) -> dict[str, Any] | None:
    """What kombu put there, `None` where it was somebody else."""
    try:
        raw = loads(bytes_to_str(item))
        virtual.Message(raw, channel=_Bodies())
        properties, headers = raw["properties"], raw["headers"]
        named = {"exchange", "routing_key"} <= set(properties["delivery_info"])
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    return raw if named and isinstance(properties["delivery_tag"], str) and isinstance(headers, dict) else None


class Transport(redis.Transport):
    """Named by dotted path in `broker.app`."""

    Channel = Channel
