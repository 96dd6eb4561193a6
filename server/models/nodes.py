"""Machines that grade."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from autograder.contract import Work
from server.models.base import Base


class Node(Base):
    """A machine that grades. The table holds nothing that signs or lets anybody in."""

    __tablename__ = "nodes"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(60), unique=True)
    public_key: Mapped[str | None] = mapped_column(String(44))
    """Verifies what it signs; none where it was revoked, or has not joined since nodes have keys."""
    broker_hash: Mapped[str | None] = mapped_column(String(64))
    """SHA-256 of its password at the broker; it has both or neither."""
    granted_lanes: Mapped[list[Any]]
    """What staff let it grade; `lanes` is what of that it reported."""
    granted_courses: Mapped[list[Any] | None]
    """Ids of the courses whose work it gets; none means every course."""
    lanes: Mapped[list[Any]]
    slots: Mapped[int] = mapped_column(default=0)
    works: Mapped[list[Any]] = mapped_column(default=lambda: [work.value for work in Work])
    """What of a grading it does, `Work` values: a node may be kept for measuring."""
    draining: Mapped[bool] = mapped_column(default=False)
    """It says so itself: it ends, or its owner drains it."""
    drained_at: Mapped[datetime | None]
    """Staff took it out of the queue; what it works on may finish."""
    quarantine: Mapped[bool] = mapped_column(default=False)
    """Set aside for submissions under which another node went silent; it gets nothing else."""
    facts: Mapped[dict[str, Any]]
    clock_skew_s: Mapped[float | None]
    """Its clock less ours when its newest report was applied: travel time included, so a few tenths mean nothing."""
    calibration: Mapped[dict[str, Any] | None]
    """`codec.to_json(autograder.contract.Calibration)`: its noise floor by its golden kernel."""
    suspect_since_at: Mapped[datetime | None]
    """What it measured from then to `suspect_until_at` is measured again; the newest such time that it reported."""
    suspect_until_at: Mapped[datetime | None]
    suspect_handled: Mapped[bool] = mapped_column(default=True)
    """What it measured in that time has been put back in the queue."""
    last_seen_at: Mapped[datetime | None]
    created_at: Mapped[datetime]
    disabled_at: Mapped[datetime | None]


class NodeStamps(Base):
    """Which of a node's signed messages were taken, so that none is taken twice (`server.nodes.stamps`).

    A table of its own, as its row is locked for every message, and before any other.
    """

    __tablename__ = "node_stamps"

    node_id: Mapped[int] = mapped_column(ForeignKey("nodes.id", ondelete="CASCADE"), primary_key=True)
    sessions: Mapped[list[Any]]
    """The newest sessions: id, highest number, which of those before it were taken, and the newest time of day."""
    floor_at: Mapped[float] = mapped_column(default=0.0)
    """The newest time of day in a session that is not kept any more: what is older is taken of kept ones only."""


class NodeInvite(Base):
    """Lets one machine join as a node, once; the table holds the hash of what its owner was given."""

    __tablename__ = "node_invites"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(60))
    token_hash: Mapped[str] = mapped_column(String(64), unique=True)
    lanes: Mapped[list[Any]]
    courses: Mapped[list[Any] | None]
    """What the node will be granted."""
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]
