"""Letting a machine join as a node: staff make a code, the machine's owner exchanges it once for the node's token."""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime, timedelta

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from server.errors import UnauthenticatedError
from server.models import Node, NodeInvite
from server.nodes import service as nodes

VALID = timedelta(hours=24)


def invite(session: Session, *, name: str, now: datetime) -> str:
    """A code that lets one machine join as `name`; codes made for this name before are worth nothing any more.

    Raises:
        InvalidInputError: the name cannot be part of a queue's name.
    """
    nodes.check_name(name)
    session.execute(delete(NodeInvite).where(NodeInvite.name == name, NodeInvite.used_at.is_(None)))
    code = f"kj_{secrets.token_urlsafe(24)}"
    session.add(NodeInvite(name=name, token_hash=_hash(code), created_at=now, expires_at=now + VALID))
    return code


def join(session: Session, *, name: str, code: str, now: datetime) -> tuple[Node, str]:
    """The node that the code was made for, and its token; a node of this name gets a new token with it.

    Raises:
        UnauthenticatedError: no such code for this name, or it was used, or it is too old; which is nobody's business.
    """
    query = select(NodeInvite).where(NodeInvite.token_hash == _hash(code)).with_for_update()
    found = session.scalar(query)
    usable = found is not None and found.used_at is None and now < found.expires_at
    if found is None or not usable or found.name != name:
        raise UnauthenticatedError("This code lets nobody join: it was used, is older than a day, or never was one.")
    found.used_at = now
    if session.scalar(select(Node.id).where(Node.name == name)) is None:
        return nodes.create_node(session, name=name, now=now)
    return nodes.rotate_token(session, name=name)


def _hash(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()
