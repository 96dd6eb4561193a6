"""An assignment's questions, and what was answered."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, CheckConstraint, ForeignKey, Index, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from server.models.base import BIG, Base


class Quiz(Base):
    """An assignment's questions and the key to them at one time. Answers keep the one that they were given to."""

    __tablename__ = "quizzes"
    __table_args__ = (UniqueConstraint("assignment_id", "number"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    assignment_id: Mapped[int] = mapped_column(ForeignKey("assignments.id", ondelete="CASCADE"))
    number: Mapped[int]
    digest: Mapped[str] = mapped_column(String(80))
    """Content hash of questions and key."""
    questions: Mapped[list[Any]]
    """`autograder.quiz.Question` as JSON, in their order."""
    keys: Mapped[list[Any]] = mapped_column(JSON, deferred=True)
    """`autograder.quiz.Key` as JSON, in the same order. Staff only; read by `server.quizzes` alone."""
    created_at: Mapped[datetime]


class QuizAnswer(Base):
    """One answer of one person to one question. Rows are only added; `right` alone may change, and to true only."""

    __tablename__ = "quiz_answers"
    __table_args__ = (
        UniqueConstraint("assignment_id", "user_id", "question", "number"),
        Index("ix_quiz_answers_course_id_user_id", "course_id", "user_id"),
        CheckConstraint("number > 0", name="number"),
    )

    id: Mapped[int] = mapped_column(BIG, primary_key=True)
    course_id: Mapped[int] = mapped_column(ForeignKey("courses.id"))
    assignment_id: Mapped[int] = mapped_column(ForeignKey("assignments.id"))
    quiz_id: Mapped[int] = mapped_column(ForeignKey("quizzes.id"), index=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    question: Mapped[str] = mapped_column(String(40))
    """Its name."""
    number: Mapped[int]
    """Counts per person and question, from 1: the try."""
    response: Mapped[dict[str, Any]]
    """`autograder.quiz.Response` as JSON."""
    right: Mapped[bool]
    remarked_at: Mapped[datetime | None]
    """When it became right, because staff corrected the key."""
    trace: Mapped[str] = mapped_column(String(32))
    uploaded_at: Mapped[datetime]
    """Decides lateness, as a submission's."""
