"""Letting nodes in at Redis, each as a user of its own (`broker.access`); a broker of files knows no users."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import suppress
from urllib.parse import urlsplit

import redis
from sqlalchemy import select
from sqlalchemy.orm import Session

from broker.access import broker_user, rules
from broker.app import is_redis, said_queue
from server.models import Node

logger = logging.getLogger(__name__)

TIMEOUT_S = 5.0


def grant(broker_url: str, nodes: Iterable[tuple[str, str | None]]) -> bool:
    """Let these nodes in, given as name and hash of the password, and nobody who came in with another.

    False if the broker cannot be reached.

    `ladder admin sync-broker-acl` makes up for one that could not be.
    """
    if not is_redis(broker_url):
        return True
    try:
        with connect(broker_url) as broker:
            for name, password_hash in nodes:
                # Who is connected stays so, whatever becomes of the password; with its user a connection ends.
                broker.acl_deluser(broker_user(name))
                if password_hash is not None:
                    _set(broker, broker_url, name, password_hash)
            _save(broker)
    except redis.RedisError:
        logger.exception("the broker does not know who its nodes are; `ladder admin sync-broker-acl` tells it")
        return False
    return True


def sync(session: Session, broker_url: str) -> list[str]:
    """Make the broker's users those of the nodes in service, no more and no fewer; their names.

    Raises:
        redis.RedisError: the broker cannot be reached, or the server may not manage its users.
    """
    if not is_redis(broker_url):
        return []
    in_service = (Node.disabled_at.is_(None), Node.broker_hash.is_not(None))
    wanted = {node.name: str(node.broker_hash) for node in session.scalars(select(Node).where(*in_service))}
    prefix = broker_user("")
    with connect(broker_url) as broker:
        there = {str(user).removeprefix(prefix) for user in broker.acl_users() if str(user).startswith(prefix)}
        for name in sorted(there - set(wanted)):
            broker.acl_deluser(broker_user(name))
        for name, password_hash in wanted.items():
            _set(broker, broker_url, name, password_hash)
        _save(broker)
    return sorted(wanted)


def let_say(broker: redis.Redis, broker_url: str, name: str, password_hash: str, *, may_say: bool) -> None:
    """Let a node append to what it says, or not for now; it stays connected, and is told so when it tries."""
    _set(broker, broker_url, name, password_hash, may_say=may_say)


def _set(broker: redis.Redis, broker_url: str, name: str, password_hash: str, *, may_say: bool = True) -> None:
    made = rules(name, password_hash, database=database_of(broker_url), may_say=may_say)
    broker.execute_command("ACL", "SETUSER", *made)  # type: ignore[no-untyped-call]


def database_of(broker_url: str) -> int:
    """The number of Redis's database that a URL names."""
    number = urlsplit(broker_url).path.strip("/")
    return int(number) if number.isdigit() else 0


def url_for(url: str, name: str) -> str:
    """The broker's URL with this node's user in it."""
    parts = urlsplit(url)
    return parts._replace(netloc=f"{broker_user(name)}@{parts.netloc}").geturl()


def is_silenced(broker: redis.Redis, name: str) -> bool:
    """Whether it may not append to what it says, for now."""
    rights = broker.execute_command("ACL", "GETUSER", broker_user(name))  # type: ignore[no-untyped-call]
    return rights is not None and said_queue(name) not in str(rights)


def connect(broker_url: str, *, decode: bool = True) -> redis.Redis:
    """A client that waits for nothing long."""
    return redis.Redis.from_url(
        broker_url, decode_responses=decode, socket_timeout=TIMEOUT_S, socket_connect_timeout=TIMEOUT_S
    )


def _save(broker: redis.Redis) -> None:
    # One that was started without a file for its users keeps them until it ends.
    with suppress(redis.ResponseError):
        broker.acl_save()
