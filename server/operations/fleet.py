"""What staff do about nodes that changes who is trusted with what: let them in, say what they grade, revoke them."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from sqlalchemy import select
from sqlalchemy.orm import Session

from broker.identity import Identity
from server import audit
from server.config import Config
from server.db import after_commit
from server.grading import interface as grading
from server.models import Node, User
from server.nodes import access, invites, nodes
from server.nodes.nodes import Grant


def register(
    session: Session, config: Config, *, name: str, identity: Identity, grant: Grant, actor: User | None, now: datetime
) -> Node:
    """Let a node in whose key is known already; one of this name that there is gets this key and this grant.

    Raises:
        InvalidInputError: the name or the identity is none.
    """
    node = session.scalar(select(Node).where(Node.name == name))
    if node is None:
        node = nodes.create_node(session, name=name, identity=identity, grant=grant, now=now)
        audit.record(session, action="node.created", subject=f"node:{name}", actor=actor, detail=_detail(grant))
    else:
        if node.public_key != identity.public_key:
            nodes.set_identity(node, identity)
            grading.fence_off(session, node.id, "the node's key was replaced", now=now, config=config)
            audit.record(session, action="node.rekeyed", subject=f"node:{name}", actor=actor)
        if nodes.grant_of(node) != grant:
            _give(session, node, grant, actor)
    after_commit(session, partial(access.grant, config.broker_url, [(node.name, node.broker_hash)]))
    return node


def invite(session: Session, *, name: str, grant: Grant, actor: User | None, now: datetime) -> str:
    """A code with which one machine can join as this node within a day.

    Raises:
        InvalidInputError: the name can be no node's.
    """
    code = invites.invite(session, name=name, grant=grant, now=now)
    audit.record(session, action="node.invited", subject=f"node:{name}", actor=actor, detail=_detail(grant))
    return code


def join_command(config: Config, name: str, code: str) -> str:
    """What to type on that machine."""
    return f"ladder node join {config.public_url} --name {name} --code {code}"


def give(session: Session, *, name: str, grant: Grant, actor: User | None) -> Node:
    """Let a node grade this and no more from now on; what it works on may finish.

    Raises:
        NotFoundError: there is no such node.
    """
    node = nodes.find_node(session, name=name)
    _give(session, node, grant, actor)
    return node


def revoke(
    session: Session, config: Config, *, name: str, actor: User | None, now: datetime, since: datetime | None = None
) -> Node:
    """Take a node's key from it, at once: for one that was stolen, or is not trusted any more.

    What it works on is graded again at no cost, by others.

    Args:
        since: what it measured from then on is measured again.

    Raises:
        NotFoundError: there is no such node.
    """
    node = nodes.revoke(session, name=name, now=now)
    grading.fence_off(session, node.id, "the node's key was revoked", now=now, config=config)
    if since is not None:
        node.suspect_since_at, node.suspect_until_at, node.suspect_handled = since, now, False
    after_commit(session, partial(access.grant, config.broker_url, [(node.name, None)]))
    detail = {"since": since.isoformat()} if since is not None else {}
    audit.record(session, action="node.revoked", subject=f"node:{name}", actor=actor, detail=detail)
    return node


def _give(session: Session, node: Node, grant: Grant, actor: User | None) -> None:
    nodes.set_grant(node, grant)
    audit.record(session, action="node.granted", subject=f"node:{node.name}", actor=actor, detail=_detail(grant))


def _detail(grant: Grant) -> dict[str, object]:
    # Not "course": an entry that names one is the course's.
    return {"lanes": grant.lane_names, "courses": grant.course_ids or "all"}
