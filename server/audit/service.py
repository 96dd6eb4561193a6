"""Write the trail and read it. Rows are only added."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from server.models import AuditEntry, User


def record(
    session: Session,
    *,
    action: str,
    subject: str,
    actor: User | None = None,
    detail: Mapping[str, Any] | None = None,
    reason: str = "",
) -> AuditEntry:
    """Add an entry in the caller's transaction, so that a change and its trail stand or fall together.

    Args:
        action: a noun and a verb, `user.created`.
        subject: what it was done to, `user:7`.
        actor: `None` for the system or a command on the server's own console.
        detail: plain JSON.
    """
    entry = AuditEntry(
        at=datetime.now(UTC),
        actor_id=actor.id if actor else None,
        action=action,
        subject=subject,
        detail=dict(detail or {}),
        reason=reason,
    )
    session.add(entry)
    return entry


def entries(session: Session, *, subject: str | None = None, limit: int = 50) -> list[AuditEntry]:
    """The newest entries first, of one subject where it is given."""
    query = select(AuditEntry).order_by(AuditEntry.id.desc()).limit(limit)
    if subject is not None:
        query = query.where(AuditEntry.subject == subject)
    return list(session.scalars(query))
