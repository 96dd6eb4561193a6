"""People, how they log in, and who changed what."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import ForeignKey, Index, String, UniqueConstraint
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

    acts_as_student = False
    """Not stored: they came with a token that leaves out what the staff may do (`server.http.scopes`)."""


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
    is_strong: Mapped[bool] = mapped_column(default=False)
    """By single sign-on, or with a second factor."""

    user: Mapped[User] = relationship(lazy="raise")


class TokenScope(StrEnum):
    """What a token opens; every token reads."""

    read = "read"
    submit = "submit"
    staff = "staff"


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
    expires_at: Mapped[datetime]
    revoked_at: Mapped[datetime | None]
    scopes: Mapped[str] = mapped_column(String(60))
    """Words of `TokenScope` with a space between them, in its order."""
    is_strong: Mapped[bool] = mapped_column(default=False)
    """Made with more than a password, as a login is."""

    user: Mapped[User] = relationship(lazy="raise")


class SecondFactor(Base):
    """What an authenticator app shares with us (TOTP); before `confirmed_at` it is being set up."""

    __tablename__ = "second_factors"

    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), primary_key=True)
    secret: Mapped[str] = mapped_column(String(255))
    """Encrypted (`server.accounts.sealing`)."""
    created_at: Mapped[datetime]
    confirmed_at: Mapped[datetime | None]
    last_step: Mapped[int] = mapped_column(default=0)
    """The half minute of the last code that was taken: a code is good once."""


class RecoveryCode(Base):
    """Stands in for a lost second factor, once: a row that was used is gone. The table holds only the hash."""

    __tablename__ = "recovery_codes"

    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    code_hash: Mapped[str] = mapped_column(String(64), unique=True)


class LoginChallenge(Base):
    """A browser whose password was right, and which is asked for the second factor; swept after minutes."""

    __tablename__ = "login_challenges"

    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    token_hash: Mapped[str] = mapped_column(String(64), unique=True)
    failures: Mapped[int] = mapped_column(default=0)
    expires_at: Mapped[datetime] = mapped_column(index=True)

    user: Mapped[User] = relationship(lazy="raise")


class KnownPlace(Base):
    """A network or a browser that an account has logged in from; swept when it was not used for long."""

    __tablename__ = "known_places"
    __table_args__ = (UniqueConstraint("user_id", "mark"),)

    id: Mapped[int] = mapped_column(BIG, primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    mark: Mapped[str] = mapped_column(String(64))
    """As `server.accounts.places` writes it."""
    seen_at: Mapped[datetime]


class LoginAttempt(Base):
    """A failed login, for the rate limit; rows older than an hour are swept."""

    __tablename__ = "login_attempts"

    id: Mapped[int] = mapped_column(primary_key=True)
    address: Mapped[str] = mapped_column(String(64), index=True)
    """The network, or the browser where the account knows it (`server.accounts.places`)."""
    email: Mapped[str] = mapped_column(String(254), index=True)
    at: Mapped[datetime]


class LinkPurpose(StrEnum):
    """What a link that lets somebody set a password is for."""

    reset = "reset"
    invitation = "invitation"


class PasswordLink(Base):
    """A link that lets whoever has it set this account's password, once; the table holds only its hash."""

    __tablename__ = "password_links"

    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    purpose: Mapped[LinkPurpose]
    token_hash: Mapped[str] = mapped_column(String(64), unique=True)
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]

    user: Mapped[User] = relationship(lazy="raise")


class LinkRequest(Base):
    """Somebody asked for a new password, or for an account by a join link, for the rate limits.

    Rows older than a day are swept.
    """

    __tablename__ = "link_requests"
    __table_args__ = (
        Index("ix_link_requests_email_at", "email", "at"),
        Index("ix_link_requests_address_at", "address", "at"),
    )

    id: Mapped[int] = mapped_column(BIG, primary_key=True)
    address: Mapped[str] = mapped_column(String(64))
    email: Mapped[str] = mapped_column(String(254))
    """Whose password it was about; `""`: an account was asked for."""
    at: Mapped[datetime] = mapped_column(index=True)


class OutsideIdentity(Base):
    """Who a person is to an identity provider: its issuer and its own, unchanging name for them."""

    __tablename__ = "outside_identities"
    __table_args__ = (UniqueConstraint("issuer", "subject"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    issuer: Mapped[str] = mapped_column(String(300))
    subject: Mapped[str] = mapped_column(String(255))
    email: Mapped[str] = mapped_column(String(254), default="")
    """What the provider said when it was linked, so that its owner can tell identities apart."""
    created_at: Mapped[datetime]
    last_used_at: Mapped[datetime | None]

    user: Mapped[User] = relationship(lazy="raise")


class OutsideLogin(Base):
    """Somebody was sent to an identity provider and has not come back; used once, swept after minutes."""

    __tablename__ = "outside_logins"

    id: Mapped[int] = mapped_column(primary_key=True)
    state_hash: Mapped[str] = mapped_column(String(64), unique=True)
    browser_hash: Mapped[str] = mapped_column(String(64))
    """Of a cookie: who comes back is the browser that left."""
    provider: Mapped[str] = mapped_column(String(40))
    nonce: Mapped[str] = mapped_column(String(64))
    verifier: Mapped[str] = mapped_column(String(128))
    """PKCE's."""
    target: Mapped[str] = mapped_column(String(500))
    """Where they wanted to go."""
    user_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    """Whose account the identity is to be linked with; `None` for a log-in."""
    address: Mapped[str] = mapped_column(String(64), index=True)
    """Where from, for the rate limit."""
    expires_at: Mapped[datetime] = mapped_column(index=True)


class AuditEntry(Base):
    """Who changed what, when and why. Rows are only added."""

    __tablename__ = "audit_entries"
    __table_args__ = (Index("ix_audit_entries_course_id_id", "course_id", "id"),)

    id: Mapped[int] = mapped_column(BIG, primary_key=True)
    at: Mapped[datetime] = mapped_column(index=True)
    actor_id: Mapped[int | None] = mapped_column(ForeignKey("users.id"), index=True)
    """`None`: the system, or a command on the server's own console."""
    action: Mapped[str] = mapped_column(String(60))
    """A verb and a noun, `user.created`."""
    subject: Mapped[str] = mapped_column(String(120), index=True)
    """What it was done to, `submission:01J…`."""
    course_id: Mapped[int | None]
    """Where it belongs to one, with the assignment and the person that it is about: what the audit log is filtered by.
    No foreign keys: an entry outlives what it is about."""
    assignment_id: Mapped[int | None] = mapped_column(index=True)
    about_id: Mapped[int | None] = mapped_column(index=True)
    detail: Mapped[dict[str, Any]]
    reason: Mapped[str] = mapped_column(default="")
