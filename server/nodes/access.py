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
from server.models import Node

logger = logging.getLogger(__name__)

TIMEOUT_S = 5.0


def grant(broker_url: str, nodes: Iterable[tuple[str, str]]) -> bool:
    """Let these nodes in, given as name and key, and nobody who came in with another; false if it cannot be reached.

    `ladder admin sync-broker` makes up for one that could not be.
    """
    if not _has_users(broker_url):
        return True
    try:
        with _connect(broker_url) as broker:
            for name, key in nodes:
                # Who is connected stays so, whatever becomes of the password; with its user a connection ends.
                broker.acl_deluser(broker_user(name))
                broker.execute_command("ACL", "SETUSER", *rules(name, key))
            _save(broker)
    except redis.RedisError:
        logger.exception("the broker could not be told who its nodes are; `ladder admin sync-broker` tells it again")
        return False
    return True


def sync(session: Session, broker_url: str) -> list[str]:
    """Make the broker's users those of the nodes in service, no more and no fewer; their names.

    Raises:
        redis.RedisError: the broker cannot be reached, or the server may not manage its users.
    """
    if not _has_users(broker_url):
        return []
    wanted = {node.name: node.key for node in session.scalars(select(Node).where(Node.disabled_at.is_(None)))}
    prefix = broker_user("")
    with _connect(broker_url) as broker:
        there = {str(user).removeprefix(prefix) for user in broker.acl_users() if str(user).startswith(prefix)}
        for name in sorted(there - set(wanted)):
            broker.acl_deluser(broker_user(name))
        for name, key in wanted.items():
            broker.execute_command("ACL", "SETUSER", *rules(name, key))
        _save(broker)
    return sorted(wanted)


def url_for(url: str, name: str) -> str:
    """The broker's URL with this node's user in it."""
    parts = urlsplit(url)
    return parts._replace(netloc=f"{broker_user(name)}@{parts.netloc}").geturl()


def _has_users(broker_url: str) -> bool:
    return urlsplit(broker_url).scheme in {"redis", "rediss"}


def _connect(broker_url: str) -> redis.Redis:
    return redis.Redis.from_url(
        broker_url, decode_responses=True, socket_timeout=TIMEOUT_S, socket_connect_timeout=TIMEOUT_S
    )


def _save(broker: redis.Redis) -> None:
    # One that was started without a file for its users keeps them until it ends.
    with suppress(redis.ResponseError):
        broker.acl_save()
