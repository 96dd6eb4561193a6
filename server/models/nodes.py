"""Machines that grade."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import String
from sqlalchemy.orm import Mapped, mapped_column

from autograder.contract import Work
from server.models.base import Base


class Node(Base):
    """A machine that grades. The table holds its token's SHA-256, the key that signs what it sends."""

    __tablename__ = "nodes"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(60), unique=True)
    key: Mapped[str] = mapped_column(String(64))
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


class NodeInvite(Base):
    """Lets one machine join as a node, once; the table holds the hash of what its owner was given."""

    __tablename__ = "node_invites"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(60))
    token_hash: Mapped[str] = mapped_column(String(64), unique=True)
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]
