"""A node for tests: its row, and the key that only the node would have."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy.orm import Session

from autograder.contract import Lane
from broker.identity import NodeKey
from server.models import Node
from server.nodes import nodes
from server.nodes.nodes import Grant

EVERYTHING = Grant(frozenset(Lane))


def make_node(session: Session, *, name: str, now: datetime, grant: Grant = EVERYTHING) -> tuple[Node, NodeKey]:
    """Register it."""
    key = NodeKey.generate()
    return nodes.create_node(session, name=name, identity=key.identity, grant=grant, now=now), key
