"""What a node may do at the broker, and by which name.

On Redis each node has a user of its own: it may take from its own queue and put on the results queue, and that is all.
Its password follows from its token by way of the signing key, so that no further secret has to travel. The server can
derive it and Redis keeps only a hash of it; neither the token nor the signing key can be had from that.
"""

from __future__ import annotations

import hashlib
import hmac
from urllib.parse import quote, urlsplit

from broker.app import RESULTS, grade_queue, unacked_keys

_PRIORITIES = "\x06\x16"
"""What stands between a queue's name and a priority in the name of kombu's list for that priority."""

_BINDINGS = ("_kombu.binding.celery", "_kombu.binding_permanent.celery")
"""Where kombu notes which queues were declared, under the name of Celery's default exchange. Nobody is led by them: we
send to the anonymous exchange, which is a queue's name.
"""

_COMMANDS = (
    # A connection. (`client|setinfo` came with Redis 7.2, older ones refuse the rule; redis-py does without it.)
    "auth", "hello", "client|setname", "ping", "select", "info",
    # Declaring its queue.
    "sadd",
    # Taking from a list, putting on one, asking for its length.
    "brpop", "rpop", "lpush", "rpush", "llen",
    # What was taken and is not yet acknowledged, and the lock under which old ones are put back.
    "hset", "hget", "hdel", "zadd", "zrem", "zrange", "zrevrangebyscore", "set", "get", "del",
    "evalsha", "script|load", "multi", "exec", "watch", "unwatch", "discard",
)  # fmt: skip


def broker_user(node: str) -> str:
    """The name of a node's user at the broker."""
    return f"node-{node}"


def broker_password(key: str) -> str:
    """The password that goes with it, from the node's signing key."""
    return hmac.new(bytes.fromhex(key), b"broker", hashlib.sha256).hexdigest()


def complete_url(url: str, key: str) -> str:
    """The URL with the node's password where it names a user and no password; otherwise as it is."""
    parts = urlsplit(url)
    if parts.username is None or parts.password is not None:
        return url
    user, _, where = parts.netloc.rpartition("@")
    netloc = f"{user}:{quote(broker_password(key))}@{where}"
    return parts._replace(netloc=netloc).geturl()


def rules(node: str, key: str) -> tuple[str, ...]:
    """The arguments of `ACL SETUSER` that make the node's user what it is, whatever it was before.

    A node's name has letters, digits and hyphens: none of them means anything in a pattern.
    """
    queue = grade_queue(node)
    own = (queue, f"{queue}{_PRIORITIES}*", *unacked_keys(queue))
    return (
        broker_user(node),
        "reset",
        "on",
        f"#{hashlib.sha256(broker_password(key).encode()).hexdigest()}",
        *(f"%RW~{name}" for name in own),
        # It puts results there and can read nobody's.
        f"%W~{RESULTS}",
        *(f"%W~{name}" for name in _BINDINGS),
        "-@all",
        *(f"+{command}" for command in _COMMANDS),
    )
