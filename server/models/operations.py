"""What keeps the course running and says whether it does."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from server.models.base import BIG, Base
from server.models.enums import AlertKind


class Tick(Base):
    """A message of ours that travelled through the results queue: how far the recorder has heard what nodes said."""

    __tablename__ = "ticks"

    nonce: Mapped[str] = mapped_column(String(32), primary_key=True)
    made_at: Mapped[datetime] = mapped_column(index=True)
    heard_at: Mapped[datetime | None]


class Service(Base):
    """A process of ours that says it is alive; silent ones are removed after a day."""

    __tablename__ = "services"
    __table_args__ = (UniqueConstraint("kind", "instance"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    kind: Mapped[str] = mapped_column(String(24))
    """`web`, `dispatcher` or `recorder`."""
    instance: Mapped[str] = mapped_column(String(120))
    """Host and process id."""
    started_at: Mapped[datetime]
    last_seen_at: Mapped[datetime]
    facts: Mapped[dict[str, Any]]


class Alert(Base):
    """Something staff have to know; the same again, while it is open, raises the count."""

    __tablename__ = "alerts"
    __table_args__ = (Index("ix_alerts_open", "resolved_at", "kind", "subject"),)

    id: Mapped[int] = mapped_column(BIG, primary_key=True)
    kind: Mapped[AlertKind]
    subject: Mapped[str] = mapped_column(String(120))
    """`submission:01J…`, `node:anvil`, `lane:cpu`."""
    message: Mapped[str]
    count: Mapped[int] = mapped_column(default=1)
    first_at: Mapped[datetime]
    last_at: Mapped[datetime]
    resolved_at: Mapped[datetime | None]
    resolved_by_id: Mapped[int | None] = mapped_column(ForeignKey("users.id"))
    """`None` while it is open, and where what it was about ended by itself."""


class Rehearsal(Base):
    """A chaos run and what it found; the page that says that all submissions are accounted for shows the newest."""

    __tablename__ = "rehearsals"

    id: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[datetime]
    passed: Mapped[bool]
    machine: Mapped[str] = mapped_column(String(200))
    report: Mapped[dict[str, Any]]


class ReconciliationRun(Base):
    """The newest check of a course's accounts; the dispatcher makes one every minute and pages show it."""

    __tablename__ = "accounts_checks"

    course_id: Mapped[int] = mapped_column(ForeignKey("courses.id", ondelete="CASCADE"), primary_key=True)
    checked_at: Mapped[datetime]
    received: Mapped[int]
    final: Mapped[int]
    in_flight: Mapped[int]
    problems: Mapped[list[Any]]
    """`server.reconciliation.checks.Problem`, as plain JSON."""
    took_s: Mapped[float]
