"""What staff write about students' work, and what they look at: comments, rubrics, appeals, similarity."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import JSON, CheckConstraint, ForeignKey, Index, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column, relationship

from autograder.contract import Review
from server.models.base import BIG, Base
from server.models.courses import Assignment
from server.models.grading import Submission
from server.models.people import User


class Showing(StrEnum):
    """When a student sees a comment."""

    with_grades = "with_grades"
    """Once the grades of its assignment are published."""
    at_once = "at_once"


class ComparisonState(StrEnum):
    """Where a comparison for similarity is."""

    queued = "queued"
    running = "running"
    done = "done"
    failed = "failed"


class PairMark(StrEnum):
    """What a person said of a pair of similar sources."""

    none = "none"
    looked_at = "looked_at"
    """Nothing to follow up."""
    noted = "noted"
    """To be talked about with the students."""


class Comment(Base):
    """What staff say about some lines of a submission, or all of it. Its text now; `CommentText` has every one."""

    __tablename__ = "comments"
    __table_args__ = (
        Index("ix_comments_assignment_id_user_id", "assignment_id", "user_id"),
        CheckConstraint("first_line > 0 AND last_line >= first_line", name="lines"),
    )

    id: Mapped[int] = mapped_column(BIG, primary_key=True)
    course_id: Mapped[int] = mapped_column(ForeignKey("courses.id"))
    assignment_id: Mapped[int] = mapped_column(ForeignKey("assignments.id"))
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    """Whose work it is about."""
    submission_id: Mapped[int | None] = mapped_column(ForeignKey("submissions.id", ondelete="CASCADE"), index=True)
    """`None`: it is about the write-up."""
    writeup_version: Mapped[int | None]
    """Of the write-up that was read."""
    section: Mapped[str] = mapped_column(String(200), default="")
    """Of the write-up, as its heading says it; `""`: all of it."""
    first_line: Mapped[int | None]
    """From 1; `None`: all of it."""
    last_line: Mapped[int | None]
    author_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    text: Mapped[str]
    """Markdown."""
    showing: Mapped[Showing]
    created_at: Mapped[datetime]
    edited_at: Mapped[datetime | None]
    withdrawn_at: Mapped[datetime | None]
    revision: Mapped[int] = mapped_column(default=1)
    """Grows with every change; whoever changes it says which one they saw."""

    def is_visible(self, *, published: bool) -> bool:
        """Whether its student, and their group, read it; `published` says whether they read its grade."""
        return self.withdrawn_at is None and (published or self.showing is Showing.at_once)

    author: Mapped[User] = relationship(lazy="raise", foreign_keys=[author_id])
    submission: Mapped[Submission | None] = relationship(lazy="raise")
    texts: Mapped[list[CommentText]] = relationship(lazy="raise", order_by="CommentText.number")


class CommentText(Base):
    """One text that a comment had. Rows are only added."""

    __tablename__ = "comment_texts"
    __table_args__ = (UniqueConstraint("comment_id", "number"),)

    id: Mapped[int] = mapped_column(BIG, primary_key=True)
    comment_id: Mapped[int] = mapped_column(ForeignKey("comments.id", ondelete="CASCADE"))
    number: Mapped[int]
    """The comment's revision that it came with."""
    text: Mapped[str]
    actor_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    at: Mapped[datetime]


class SavedComment(Base):
    """A comment that a course's staff use again and again."""

    __tablename__ = "saved_comments"
    __table_args__ = (UniqueConstraint("course_id", "digest"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    course_id: Mapped[int] = mapped_column(ForeignKey("courses.id", ondelete="CASCADE"))
    text: Mapped[str]
    digest: Mapped[str] = mapped_column(String(64))
    """SHA-256 of the text: the same one is kept once."""
    uses: Mapped[int] = mapped_column(default=0)
    created_at: Mapped[datetime]


class RubricItem(Base):
    """A line of an assignment's rubric: what it says and what it is worth."""

    __tablename__ = "rubric_items"
    __table_args__ = (Index("ix_rubric_items_assignment_id", "assignment_id", "position"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    assignment_id: Mapped[int] = mapped_column(ForeignKey("assignments.id", ondelete="CASCADE"))
    group: Mapped[str] = mapped_column(String(80), default="")
    text: Mapped[str] = mapped_column(String(500))
    points: Mapped[float]
    """Added where it applies; below 0 takes away."""
    position: Mapped[int]
    revision: Mapped[int] = mapped_column(default=1)
    retired_at: Mapped[datetime | None]
    """Applied no more; what it was applied to keeps it."""


class RubricSheet(Base):
    """What the rubric of an assignment comes to for one student. The gradebook adds `points` to the grade."""

    __tablename__ = "rubric_sheets"
    __table_args__ = (UniqueConstraint("assignment_id", "user_id"),)

    id: Mapped[int] = mapped_column(BIG, primary_key=True)
    assignment_id: Mapped[int] = mapped_column(ForeignKey("assignments.id", ondelete="CASCADE"))
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    points: Mapped[float] = mapped_column(default=0.0)
    submission_id: Mapped[int | None] = mapped_column(ForeignKey("submissions.id", ondelete="SET NULL"), index=True)
    """What was looked at."""
    graded_by_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    graded_at: Mapped[datetime]
    revision: Mapped[int] = mapped_column(default=1)

    graded_by: Mapped[User] = relationship(lazy="raise", foreign_keys=[graded_by_id])
    marks: Mapped[list[RubricMark]] = relationship(lazy="raise", cascade="all, delete-orphan")


class RubricMark(Base):
    """An item that applies to a student."""

    __tablename__ = "rubric_marks"
    __table_args__ = (UniqueConstraint("sheet_id", "item_id"),)

    id: Mapped[int] = mapped_column(BIG, primary_key=True)
    sheet_id: Mapped[int] = mapped_column(ForeignKey("rubric_sheets.id", ondelete="CASCADE"))
    item_id: Mapped[int] = mapped_column(ForeignKey("rubric_items.id"), index=True)


class FindingLook(Base):
    """A result with findings, for the list of those that staff have yet to look at."""

    __tablename__ = "finding_looks"
    __table_args__ = (Index("ix_finding_looks_open", "course_id", "looked_at", "id"),)

    id: Mapped[int] = mapped_column(BIG, primary_key=True)
    course_id: Mapped[int] = mapped_column(ForeignKey("courses.id"))
    submission_id: Mapped[int] = mapped_column(ForeignKey("submissions.id", ondelete="CASCADE"), index=True)
    result_id: Mapped[int] = mapped_column(ForeignKey("results.id", ondelete="CASCADE"), unique=True)
    kinds: Mapped[list[Any]]
    """`FindingKind` values."""
    created_at: Mapped[datetime]
    looked_at: Mapped[datetime | None]
    looked_by_id: Mapped[int | None] = mapped_column(ForeignKey("users.id"))
    reason: Mapped[str] = mapped_column(default="")

    submission: Mapped[Submission] = relationship(lazy="raise")


class Appeal(Base):
    """What a student says against a decision about their submission's speed: once, and staff decide again."""

    __tablename__ = "appeals"
    __table_args__ = (Index("ix_appeals_open", "course_id", "decided_at", "id"),)

    id: Mapped[int] = mapped_column(BIG, primary_key=True)
    course_id: Mapped[int] = mapped_column(ForeignKey("courses.id"))
    submission_id: Mapped[int] = mapped_column(ForeignKey("submissions.id", ondelete="CASCADE"), unique=True)
    text: Mapped[str]
    created_at: Mapped[datetime]
    decided_at: Mapped[datetime | None]
    decided_by_id: Mapped[int | None] = mapped_column(ForeignKey("users.id"))
    decision: Mapped[Review | None]
    reason: Mapped[str] = mapped_column(default="")
    """Of the decision; its student reads it."""

    submission: Mapped[Submission] = relationship(lazy="raise")


class Comparison(Base):
    """One comparison of an assignment's sources with each other and with others."""

    __tablename__ = "comparisons"
    __table_args__ = (Index("ix_comparisons_state", "state", "id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    course_id: Mapped[int] = mapped_column(ForeignKey("courses.id", ondelete="CASCADE"))
    assignment_id: Mapped[int] = mapped_column(ForeignKey("assignments.id", ondelete="CASCADE"), index=True)
    scope: Mapped[dict[str, Any]]
    """`codec.to_json(server.similarity.scope.Scope)`."""
    state: Mapped[ComparisonState]
    step: Mapped[str] = mapped_column(String(120), default="")
    """What it does, in words."""
    done: Mapped[int] = mapped_column(default=0)
    total: Mapped[int] = mapped_column(default=0)
    """Pairs."""
    sources: Mapped[int] = mapped_column(default=0)
    left_out: Mapped[list[Any]] = mapped_column(default=list)
    """Sources that could not be compared, and why, as sentences."""
    created_by_id: Mapped[int | None] = mapped_column(ForeignKey("users.id"))
    created_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    heartbeat_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    error: Mapped[str] = mapped_column(default="")

    assignment: Mapped[Assignment] = relationship(lazy="raise")


class ComparedText(Base):
    """A source that is no submission, as it was compared: a public solution, or one of the staff's."""

    __tablename__ = "compared_texts"

    id: Mapped[int] = mapped_column(BIG, primary_key=True)
    comparison_id: Mapped[int] = mapped_column(ForeignKey("comparisons.id", ondelete="CASCADE"), index=True)
    name: Mapped[str] = mapped_column(String(200))
    language: Mapped[str] = mapped_column(String(24))
    source: Mapped[str]


class SimilarPair(Base):
    """Two sources that share fragments. The left one is a submission of the course; the right one may be another."""

    __tablename__ = "similar_pairs"
    __table_args__ = (
        Index("ix_similar_pairs_comparison_id", "comparison_id", "share"),
        Index("ix_similar_pairs_sides", "left_id", "right_id"),
    )

    id: Mapped[int] = mapped_column(BIG, primary_key=True)
    comparison_id: Mapped[int] = mapped_column(ForeignKey("comparisons.id", ondelete="CASCADE"))
    left_id: Mapped[int] = mapped_column(ForeignKey("submissions.id", ondelete="CASCADE"))
    right_id: Mapped[int | None] = mapped_column(ForeignKey("submissions.id", ondelete="CASCADE"), index=True)
    text_id: Mapped[int | None] = mapped_column(ForeignKey("compared_texts.id", ondelete="CASCADE"), index=True)
    """What it is compared with, where that is no submission."""
    share: Mapped[float]
    """The larger of the two shares, 0 to 1."""
    left_share: Mapped[float]
    """Of the left source's own code, without what was handed out, so much is in the right one."""
    right_share: Mapped[float]
    common: Mapped[int]
    """Characters of normalised code that both have."""
    matches: Mapped[dict[str, Any]] = mapped_column(JSON, deferred=True)
    """`codec.to_json(server.similarity.engine.Matches)`: where."""
    mark: Mapped[PairMark] = mapped_column(default=PairMark.none)
    reason: Mapped[str] = mapped_column(default="")
    marked_by_id: Mapped[int | None] = mapped_column(ForeignKey("users.id"))
    marked_at: Mapped[datetime | None]
    revision: Mapped[int] = mapped_column(default=0)

    comparison: Mapped[Comparison] = relationship(lazy="raise")
    left: Mapped[Submission] = relationship(lazy="raise", foreign_keys=[left_id])
    right: Mapped[Submission | None] = relationship(lazy="raise", foreign_keys=[right_id])
    text: Mapped[ComparedText | None] = relationship(lazy="raise")
    marked_by: Mapped[User | None] = relationship(lazy="raise", foreign_keys=[marked_by_id])
