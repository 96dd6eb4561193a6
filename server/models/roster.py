"""How people come into a course: links that invite them and tables of many; and who looks at it as somebody else."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column, relationship

from server.models.base import Base
from server.models.courses import Course
from server.models.enums import Role
from server.models.people import LoginSession, User


class CourseInvite(Base):
    """A link with which people put themselves into a course; shown once, stored as its hash."""

    __tablename__ = "course_invites"

    id: Mapped[int] = mapped_column(primary_key=True)
    course_id: Mapped[int] = mapped_column(ForeignKey("courses.id", ondelete="CASCADE"), index=True)
    token_hash: Mapped[str] = mapped_column(String(64), unique=True)
    start: Mapped[str] = mapped_column(String(12))
    """Its first characters, so that staff can tell links apart."""
    role: Mapped[Role]
    section: Mapped[str] = mapped_column(String(60), default="")
    most_uses: Mapped[int | None]
    """`None`: any number."""
    uses: Mapped[int] = mapped_column(default=0)
    created_by_id: Mapped[int | None] = mapped_column(ForeignKey("users.id"))
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    revoked_at: Mapped[datetime | None]

    course: Mapped[Course] = relationship(lazy="raise")


class RosterImport(Base):
    """A table of people as it was read, until somebody looked at what it would do and agreed, or a day is over."""

    __tablename__ = "roster_imports"

    id: Mapped[int] = mapped_column(primary_key=True)
    public_id: Mapped[str] = mapped_column(String(26), unique=True)
    course_id: Mapped[int] = mapped_column(ForeignKey("courses.id", ondelete="CASCADE"), index=True)
    uploaded_by_id: Mapped[int | None] = mapped_column(ForeignKey("users.id"))
    filename: Mapped[str] = mapped_column(String(120))
    people: Mapped[list[Any]]
    """Its lines; emptied once they were applied."""
    troubles: Mapped[list[Any]]
    """Lines that could not be read, and why."""
    passed_over: Mapped[list[Any]]
    """Columns that nobody asked for."""
    created_at: Mapped[datetime]
    applied_at: Mapped[datetime | None]
    outcome: Mapped[dict[str, Any] | None]
    """How many were invited, enrolled, changed."""


class Preview(Base):
    """Somebody of the staff looks at a course as one of its students would, at a time they chose; reads only."""

    __tablename__ = "previews"

    id: Mapped[int] = mapped_column(primary_key=True)
    token_hash: Mapped[str] = mapped_column(String(64), unique=True)
    login_id: Mapped[int] = mapped_column(ForeignKey("login_sessions.id", ondelete="CASCADE"), index=True)
    """The login that it was begun with; no other can use it."""
    course_id: Mapped[int] = mapped_column(ForeignKey("courses.id", ondelete="CASCADE"), index=True)
    student_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    shown_at: Mapped[datetime | None]
    """The time that its pages show; `None`: as it is."""
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]

    login: Mapped[LoginSession] = relationship(lazy="raise")
    course: Mapped[Course] = relationship(lazy="raise")
    student: Mapped[User] = relationship(lazy="raise")
