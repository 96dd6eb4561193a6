"""People, how they log in, and who changed what."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column, relationship

from server.models.base import BIG, Base


class User(Base):
    """A person. `handle` is the pseudonym shown on leaderboards unless they choose their name."""

    __tablename__ = "users"

    id: Mapped[int] = mapped_column(primary_key=True)
    email: Mapped[str] = mapped_column(String(254), unique=True)
    """Lower case."""
    name: Mapped[str] = mapped_column(String(120))
    handle: Mapped[str] = mapped_column(String(40), unique=True)
    password_hash: Mapped[str | None]
    is_admin: Mapped[bool] = mapped_column(default=False)
    created_at: Mapped[datetime]
    disabled_at: Mapped[datetime | None]


class LoginSession(Base):
    """A browser that is logged in; the cookie holds the token, the table only its hash."""

    __tablename__ = "login_sessions"

    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    token_hash: Mapped[str] = mapped_column(String(64), unique=True)
    csrf_token: Mapped[str] = mapped_column(String(64))
    created_at: Mapped[datetime]
    last_seen_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    agent: Mapped[str] = mapped_column(String(200), default="")
    address: Mapped[str] = mapped_column(String(64), default="")

    user: Mapped[User] = relationship(lazy="raise")


class ApiToken(Base):
    """A token for the command line; shown once, stored as its hash."""

    __tablename__ = "api_tokens"

    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    name: Mapped[str] = mapped_column(String(80))
    token_hash: Mapped[str] = mapped_column(String(64), unique=True)
    start: Mapped[str] = mapped_column(String(12))
    """Its first characters, so that its owner can tell tokens apart."""
    created_at: Mapped[datetime]
    last_used_at: Mapped[datetime | None]
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]

    user: Mapped[User] = relationship(lazy="raise")


class LoginAttempt(Base):
    """A failed login, for the rate limit; rows older than an hour are swept."""

    __tablename__ = "login_attempts"

    id: Mapped[int] = mapped_column(primary_key=True)
    address: Mapped[str] = mapped_column(String(64), index=True)
    email: Mapped[str] = mapped_column(String(254), index=True)
    at: Mapped[datetime]


class AuditEntry(Base):
    """Who changed what, when and why. Rows are only added."""

    __tablename__ = "audit_entries"

    id: Mapped[int] = mapped_column(BIG, primary_key=True)
    at: Mapped[datetime] = mapped_column(index=True)
    actor_id: Mapped[int | None] = mapped_column(ForeignKey("users.id"), index=True)
    """`None`: the system, or a command on the server's own console."""
    action: Mapped[str] = mapped_column(String(60))
    """A verb and a noun, `user.created`."""
    subject: Mapped[str] = mapped_column(String(120), index=True)
    """What it was done to, `submission:01J…`."""
    detail: Mapped[dict[str, Any]]
    reason: Mapped[str] = mapped_column(default="")
