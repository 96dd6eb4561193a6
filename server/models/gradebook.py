"""What staff and students decide about grades, and the grades themselves.

Decisions are rows that are only added: one that no longer holds is ended, with its time and by whom, and stays to be
read. A grade is what follows from them and from what was handed in: a row per student and assignment, worked out anew
in the transaction of whatever changes it (`server.gradebook`).
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, Index, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column, relationship

from server.models.base import BIG, Base
from server.models.courses import Assignment
from server.models.people import User


def _one_holds(table: str, ended: str) -> Index:
    """At most one row for an assignment and a person has not ended."""
    where = text(f"{ended} IS NULL")
    return Index(
        f"uq_{table}_holds", "assignment_id", "user_id", unique=True, sqlite_where=where, postgresql_where=where
    )


def _decides() -> dict[str, Any]:
    """For a relationship to one of several people."""
    return {"lazy": "raise", "viewonly": True}


class Extension(Base):
    """Another due date for one student in one assignment. It never brings a date forward."""

    __tablename__ = "extensions"
    __table_args__ = (
        _one_holds("extensions", "withdrawn_at"),
        Index("ix_extensions_course_id_user_id", "course_id", "user_id"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    course_id: Mapped[int] = mapped_column(ForeignKey("courses.id", ondelete="CASCADE"))
    assignment_id: Mapped[int] = mapped_column(ForeignKey("assignments.id", ondelete="CASCADE"), index=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    due_at: Mapped[datetime]
    late_until: Mapped[datetime | None]
    """`None`: for them it never closes."""
    reason: Mapped[str]
    actor_id: Mapped[int | None] = mapped_column(ForeignKey("users.id"))
    at: Mapped[datetime]
    withdrawn_at: Mapped[datetime | None]
    """A new one for the same assignment takes its place, or staff took it back."""
    withdrawn_by_id: Mapped[int | None] = mapped_column(ForeignKey("users.id"))

    assignment: Mapped[Assignment] = relationship(lazy="raise")
    user: Mapped[User] = relationship(lazy="raise", foreign_keys=[user_id])
    actor: Mapped[User | None] = relationship(foreign_keys=[actor_id], **_decides())


class LateDayGrant(Base):
    """Late days that staff gave a student, or took, for the whole term."""

    __tablename__ = "late_day_grants"
    __table_args__ = (
        Index("ix_late_day_grants_course_id_user_id", "course_id", "user_id"),
        CheckConstraint("days <> 0", name="days"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    course_id: Mapped[int] = mapped_column(ForeignKey("courses.id", ondelete="CASCADE"))
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    days: Mapped[int]
    """Below 0 they were taken."""
    reason: Mapped[str]
    actor_id: Mapped[int | None] = mapped_column(ForeignKey("users.id"))
    at: Mapped[datetime]

    user: Mapped[User] = relationship(lazy="raise", foreign_keys=[user_id])
    actor: Mapped[User | None] = relationship(foreign_keys=[actor_id], **_decides())


class GradeOverride(Base):
    """Points that staff set, instead of what the grade would come to."""

    __tablename__ = "grade_overrides"
    __table_args__ = (
        _one_holds("grade_overrides", "undone_at"),
        Index("ix_grade_overrides_course_id_user_id", "course_id", "user_id"),
        CheckConstraint("points >= 0", name="points"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    course_id: Mapped[int] = mapped_column(ForeignKey("courses.id", ondelete="CASCADE"))
    assignment_id: Mapped[int] = mapped_column(ForeignKey("assignments.id", ondelete="CASCADE"), index=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    points: Mapped[float]
    reason: Mapped[str]
    actor_id: Mapped[int | None] = mapped_column(ForeignKey("users.id"))
    at: Mapped[datetime]
    undone_at: Mapped[datetime | None]
    """A new one took its place, or staff took it back."""
    undone_by_id: Mapped[int | None] = mapped_column(ForeignKey("users.id"))

    user: Mapped[User] = relationship(lazy="raise", foreign_keys=[user_id])
    actor: Mapped[User | None] = relationship(foreign_keys=[actor_id], **_decides())


class ActiveChoice(Base):
    """A student said which of the submissions counts for them, instead of the best."""

    __tablename__ = "active_choices"
    __table_args__ = (
        _one_holds("active_choices", "withdrawn_at"),
        Index("ix_active_choices_course_id_user_id", "course_id", "user_id"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    course_id: Mapped[int] = mapped_column(ForeignKey("courses.id", ondelete="CASCADE"))
    assignment_id: Mapped[int] = mapped_column(ForeignKey("assignments.id", ondelete="CASCADE"), index=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    submission_id: Mapped[int] = mapped_column(ForeignKey("submissions.id", ondelete="CASCADE"), index=True)
    at: Mapped[datetime]
    withdrawn_at: Mapped[datetime | None]
    """They chose another one, or the best again."""


class Grade(Base):
    """What one assignment comes to for one student, as of now."""

    __tablename__ = "grades"
    __table_args__ = (
        UniqueConstraint("user_id", "assignment_id"),
        Index("ix_grades_course_id_assignment_id", "course_id", "assignment_id"),
    )

    id: Mapped[int] = mapped_column(BIG, primary_key=True)
    course_id: Mapped[int] = mapped_column(ForeignKey("courses.id", ondelete="CASCADE"))
    assignment_id: Mapped[int] = mapped_column(ForeignKey("assignments.id", ondelete="CASCADE"), index=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    submission_id: Mapped[int | None] = mapped_column(ForeignKey("submissions.id", ondelete="SET NULL"), index=True)
    """The one that counts."""
    chosen: Mapped[bool] = mapped_column(default=False)
    """The student chose it; otherwise it is the best."""
    submission_points: Mapped[float] = mapped_column(default=0.0)
    """Of the submission that counts, before lateness."""
    quiz_points: Mapped[float] = mapped_column(default=0.0)
    """Of the quiz, before lateness."""
    rubric_points: Mapped[float] = mapped_column(default=0.0)
    """By the rubric of its write-up; lateness costs none of them."""
    days_late: Mapped[int] = mapped_column(default=0)
    """Of the submission that counts."""
    late_days: Mapped[int] = mapped_column(default=0)
    """That it uses."""
    late_penalty: Mapped[float] = mapped_column(default=0.0)
    """Points that lateness cost, of submission and quiz together."""
    override_points: Mapped[float | None]
    """What staff set."""
    points: Mapped[float]
    """What it comes to."""
    possible: Mapped[float]
    """What the assignment can give."""
    revision: Mapped[int] = mapped_column(default=1)
    """Raised with every change: who decides on a grade says which one they saw."""
    updated_at: Mapped[datetime]
