"""Letting a machine join as a node: staff make a code, with which the server takes, once, the key that it made."""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime, timedelta

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from broker.identity import Identity
from server.errors import UnauthenticatedError
from server.models import Node, NodeInvite
from server.nodes import nodes
from server.nodes.nodes import Grant

VALID = timedelta(hours=24)


def invite(session: Session, *, name: str, grant: Grant, now: datetime) -> str:
    """A code that lets one machine join as `name`; codes made for this name before are worth nothing any more.

    Args:
        grant: what the node may grade from when it joins.

    Raises:
        InvalidInputError: the name cannot be part of a queue's name.
    """
    nodes.check_name(name)
    session.execute(delete(NodeInvite).where(NodeInvite.name == name, NodeInvite.used_at.is_(None)))
    code = f"kj_{secrets.token_urlsafe(24)}"
    session.add(
        NodeInvite(
            name=name, token_hash=_hash(code), lanes=grant.lane_names, courses=grant.course_ids,
            created_at=now, expires_at=now + VALID,
        )
    )  # fmt: skip
    return code


def join(session: Session, *, name: str, code: str, identity: Identity, now: datetime) -> Node:
    """The node that the code was made for; one of this name that there is gets this key in place of its own.

    Raises:
        UnauthenticatedError: no such code for this name, or it was used, or it is too old; which is nobody's business.
        InvalidInputError: the identity can be nobody's.
    """
    query = select(NodeInvite).where(NodeInvite.token_hash == _hash(code)).with_for_update()
    found = session.scalar(query)
    usable = found is not None and found.used_at is None and now < found.expires_at
    if found is None or not usable or found.name != name:
        raise UnauthenticatedError("This code is not valid: it has been used, is older than a day, or never existed.")
    found.used_at = now
    grant = Grant.of(found.lanes, found.courses)
    node = session.scalar(select(Node).where(Node.name == name))
    if node is None:
        return nodes.create_node(session, name=name, identity=identity, grant=grant, now=now)
    nodes.set_identity(node, identity)
    nodes.set_grant(node, grant)
    return node


def _hash(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()
