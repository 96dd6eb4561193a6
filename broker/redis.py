"""The broker of several machines: kombu's Redis transport, whose consumers stay awake when an acknowledgement fails.

As shipped, an acknowledgement that does not get through leaves its message counted as being worked on; Celery logs that
and goes on. With one message at a time that was the last one: the process lives, and never takes another. Here the
message is forgotten whatever happens. Redis still has it, and gives it to somebody once `visibility_timeout` is over: a
repeated one changes nothing (`server.grading.record`, `worker.attempts`).
"""

from __future__ import annotations

from kombu.transport import redis, virtual


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

    def _forget(self, delivery_tag: str) -> None:
        virtual.QoS.ack(self, delivery_tag)


class Channel(redis.Channel):
    """As kombu's."""

    QoS = QoS


class Transport(redis.Transport):
    """Named by dotted path in `broker.app`."""

    Channel = Channel
