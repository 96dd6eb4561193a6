"""What a node may do at the broker, and by which name.

On Redis each node has a user of its own: it may take from its own queue and append to what it said
itself, and that is all.
Its password follows from its private key (`broker.identity`); the server and Redis keep a hash of it.
"""

from __future__ import annotations

from urllib.parse import quote, urlsplit

from broker.app import grade_queue, said_queue, unacked_keys

_CONNECTION = ("auth", "hello", "client|setname", "ping", "multi", "exec", "discard", "unwatch")
"""What names no key. (`client|setinfo` came with Redis 7.2, older ones refuse the rule; redis-py does without it.)"""
_QUEUE = ("brpop", "rpop", "lpush", "rpush", "llen")
_UNACKED = ("hset", "hget", "hdel", "watch")
_INDEX = ("zadd", "zrem", "zrange")
_LOCK = ("set", "get", "del", "watch")


def broker_user(node: str) -> str:
    """The name of a node's user at the broker."""
    return f"node-{node}"


def complete_url(url: str, password: str) -> str:
    """The URL with the node's password where it names a user and no password; otherwise as it is."""
    parts = urlsplit(url)
    if parts.username is None or parts.password is not None:
        return url
    user, _, where = parts.netloc.rpartition("@")
    netloc = f"{user}:{quote(password)}@{where}"
    return parts._replace(netloc=netloc).geturl()


def rules(node: str, password_hash: str, *, database: int = 0, may_say: bool = True) -> tuple[str, ...]:
    """The arguments of `ACL SETUSER` that make the node's user what it is, whatever it was before.

    Each key is open to the commands of its own type, by a selector of its own, so that nothing becomes of it what its
    readers do not expect. What others read, the queue of what it says, it can only append to. There are no scripts.
    A node's name has letters, digits and hyphens: none of them means anything in a pattern.

    Args:
        database: the number of Redis's database, which is the only one that it may choose.
        may_say: append to the queue of what it says; not while there is too much in it (`server.nodes.collector`).
    """
    queue = grade_queue(node)
    unacked, index, lock = unacked_keys(queue)
    return (
        broker_user(node),
        "reset",
        "on",
        f"#{password_hash}",
        "-@all",
        *(f"+{command}" for command in _CONNECTION),
        *((f"+select|{database}",) if database else ()),
        _selector("RW", queue, _QUEUE),
        _selector("RW", unacked, _UNACKED),
        _selector("RW", index, _INDEX),
        _selector("RW", lock, _LOCK),
        *((_selector("W", said_queue(node), ("lpush",)),) if may_say else ()),
    )


def _selector(rights: str, key: str, commands: tuple[str, ...]) -> str:
    return f"(%{rights}~{key} {' '.join(f'+{command}' for command in commands)})"
