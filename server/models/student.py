"""A student's own work besides submissions: drafts, groups, write-ups, and the copy of it all that they asked for."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from sqlalchemy import CheckConstraint, ForeignKey, Index, LargeBinary, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column, relationship

from autograder.contract import Language
from server.models.base import BIG, Base
from server.models.people import User


class WriteUpFormat(StrEnum):
    """What a write-up may be."""

    pdf = "pdf"
    markdown = "md"
    text = "txt"


class Draft(Base):
    """What somebody wrote and has not handed in, per assignment and language; only they see it."""

    __tablename__ = "drafts"
    __table_args__ = (UniqueConstraint("user_id", "assignment_id", "language"),)

    id: Mapped[int] = mapped_column(BIG, primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    assignment_id: Mapped[int] = mapped_column(ForeignKey("assignments.id", ondelete="CASCADE"), index=True)
    language: Mapped[Language]
    text: Mapped[str]
    revision: Mapped[int]
    """Counts how often it was saved, from 1; who saves names the one that they began from."""
    saved_at: Mapped[datetime]


class Group(Base):
    """Students who do one assignment together: a submission of one counts for all of them."""

    __tablename__ = "student_groups"

    id: Mapped[int] = mapped_column(primary_key=True)
    course_id: Mapped[int] = mapped_column(ForeignKey("courses.id", ondelete="CASCADE"), index=True)
    assignment_id: Mapped[int] = mapped_column(ForeignKey("assignments.id", ondelete="CASCADE"), index=True)
    code: Mapped[str] = mapped_column(String(16), unique=True)
    """Whoever of the course has it may join."""
    created_at: Mapped[datetime]


class GroupMember(Base):
    """A student in a group; for one assignment they are in one at most."""

    __tablename__ = "group_members"
    __table_args__ = (UniqueConstraint("assignment_id", "user_id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    group_id: Mapped[int] = mapped_column(ForeignKey("student_groups.id", ondelete="CASCADE"), index=True)
    assignment_id: Mapped[int] = mapped_column(ForeignKey("assignments.id", ondelete="CASCADE"))
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    joined_at: Mapped[datetime]

    user: Mapped[User] = relationship(lazy="raise")


class GroupInvite(Base):
    """A place in a group that somebody is offered; it goes when they answer."""

    __tablename__ = "group_invites"
    __table_args__ = (UniqueConstraint("group_id", "user_id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    group_id: Mapped[int] = mapped_column(ForeignKey("student_groups.id", ondelete="CASCADE"))
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    invited_by_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    created_at: Mapped[datetime]

    user: Mapped[User] = relationship(lazy="raise", foreign_keys=[user_id])


class WriteUp(Base):
    """A text about one's kernel, as it was uploaded. Rows are only added: the newest counts, the others stay."""

    __tablename__ = "write_ups"
    __table_args__ = (
        UniqueConstraint("assignment_id", "user_id", "number"),
        Index("ix_write_ups_course_id_user_id", "course_id", "user_id"),
        CheckConstraint("number > 0", name="number"),
    )

    id: Mapped[int] = mapped_column(BIG, primary_key=True)
    public_id: Mapped[str] = mapped_column(String(26), unique=True)
    number: Mapped[int]
    """Counts per student and assignment, from 1."""
    course_id: Mapped[int] = mapped_column(ForeignKey("courses.id"))
    assignment_id: Mapped[int] = mapped_column(ForeignKey("assignments.id"))
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    format: Mapped[WriteUpFormat]
    filename: Mapped[str] = mapped_column(String(120))
    data: Mapped[bytes] = mapped_column(LargeBinary, deferred=True)
    size: Mapped[int]
    sha256: Mapped[str] = mapped_column(String(64))
    trace: Mapped[str] = mapped_column(String(32))
    uploaded_at: Mapped[datetime]
    """Decides lateness, as a submission's."""

    user: Mapped[User] = relationship(lazy="raise")


class DataExport(Base):
    """When somebody last asked for a copy of their data: one is made at a time."""

    __tablename__ = "data_exports"

    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), primary_key=True)
    started_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]
    """`None` while it is made, and where its reader went away."""
