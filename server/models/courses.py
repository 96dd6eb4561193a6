"""Courses, who is in them, and their assignments as the files say and as staff decide."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, ForeignKey, LargeBinary, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column, relationship

from server.models.base import Base
from server.models.enums import Role, SourceSharing
from server.models.people import User
from server.models.quizzes import Quiz


class Course(Base):
    """A course in one term."""

    __tablename__ = "courses"

    id: Mapped[int] = mapped_column(primary_key=True)
    slug: Mapped[str] = mapped_column(String(60), unique=True)
    title: Mapped[str] = mapped_column(String(200))
    timezone: Mapped[str] = mapped_column(String(60), default="UTC")
    """IANA name; due dates are shown in it beside the viewer's own."""
    late_days: Mapped[int] = mapped_column(default=5)
    """What every student has for the term."""
    late_days_per_assignment: Mapped[int | None] = mapped_column(default=2)
    """So many of them can be used in one; `None`: all."""
    late_penalty: Mapped[float] = mapped_column(default=0.2)
    """The share of the points, 0 to 1, that a day late costs for which no late day is left."""
    slack_s: Mapped[int] = mapped_column(default=0)
    """An upload so soon after the due date, or after the end, is still in time."""
    locks_rungs: Mapped[bool] = mapped_column(default=True)
    """A rung takes submissions only from who has passed its prerequisites; otherwise that is advice."""
    accepts_unserved_lanes: Mapped[bool] = mapped_column(default=False)
    """What is handed in to a lane that nothing serves waits until something does; otherwise it is refused."""
    public_leaderboards: Mapped[bool] = mapped_column(default=False)
    """Its leaderboards can be looked at without an account."""
    public_handouts: Mapped[bool] = mapped_column(default=False)
    """Its open assignments' handouts can be read without an account; only where its leaderboards are public too."""
    source_sharing: Mapped[SourceSharing] = mapped_column(default=SourceSharing.members)
    """Who can read sources that were opened on its leaderboards."""
    keeps_erased_work: Mapped[bool] = mapped_column(default=True)
    """Who has their account deleted leaves their work behind, under a pseudonym; otherwise only its points."""
    retained_days: Mapped[int | None]
    """So long after it was archived, who was in it is forgotten; `None`: for ever."""
    revision: Mapped[int] = mapped_column(default=0)
    """Raised with every change of what stands here."""
    archived_at: Mapped[datetime | None]
    """Since then it can be read only."""
    purged_at: Mapped[datetime | None]
    """Its retention ended: its people's personal data is gone."""
    created_at: Mapped[datetime]


class Enrolment(Base):
    """A person in a course."""

    __tablename__ = "enrolments"
    __table_args__ = (UniqueConstraint("course_id", "user_id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    course_id: Mapped[int] = mapped_column(ForeignKey("courses.id", ondelete="CASCADE"))
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    role: Mapped[Role]
    section: Mapped[str] = mapped_column(String(60), default="")
    student_number: Mapped[str] = mapped_column(String(60), default="")
    """What the university's own systems know them by."""
    show_name: Mapped[bool] = mapped_column(default=False)
    """The student chose to stand on leaderboards by name."""
    created_at: Mapped[datetime]
    dropped_at: Mapped[datetime | None]

    course: Mapped[Course] = relationship(lazy="raise")
    user: Mapped[User] = relationship(lazy="raise")


class Bundle(Base):
    """An assignment's files as one tar, named by its content hash; nodes fetch it by that name."""

    __tablename__ = "bundles"

    hash: Mapped[str] = mapped_column(String(80), primary_key=True)
    data: Mapped[bytes] = mapped_column(LargeBinary, deferred=True)
    size: Mapped[int]
    created_at: Mapped[datetime]


class Assignment(Base):
    """A rung in a course. What the files say stands in its versions; what staff decide stands here."""

    __tablename__ = "assignments"
    __table_args__ = (UniqueConstraint("course_id", "slug"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    course_id: Mapped[int] = mapped_column(ForeignKey("courses.id", ondelete="CASCADE"))
    slug: Mapped[str] = mapped_column(String(60))
    rung: Mapped[int]
    title: Mapped[str] = mapped_column(String(200))
    open_at: Mapped[datetime | None]
    due_at: Mapped[datetime | None]
    late_until: Mapped[datetime | None]
    published: Mapped[bool] = mapped_column(default=True)
    grades_published_at: Mapped[datetime | None]
    """From then on students read their grades as final, with what staff set; `None`: not yet, or no more."""
    weight: Mapped[float] = mapped_column(default=1.0)
    """What its points weigh in the course's sum."""
    submissions_per_day: Mapped[int | None]
    """Of one student, from midnight to midnight on the course's clock; `None`: any number."""
    runs_per_hour: Mapped[int | None]
    """Of one student, in any hour; `None`: any number."""
    lanes: Mapped[list[Any] | None] = mapped_column(JSON(none_as_null=True))
    """The lanes it is offered on, of those that its files have; `None`: all of them."""
    group_size: Mapped[int] = mapped_column(default=1)
    """How many students may hand it in together."""
    solutions_released_at: Mapped[datetime | None]
    """From then on students may read the staff's solutions."""
    leaderboard_freeze_at: Mapped[datetime | None]
    """From then until it is due its leaderboard shows students what it was."""
    revision: Mapped[int] = mapped_column(default=0)
    """Raised with every change of what staff decide."""
    version_id: Mapped[int | None] = mapped_column(
        ForeignKey("assignment_versions.id", use_alter=True, name="fk_assignments_version_id_assignment_versions")
    )
    quiz_id: Mapped[int | None] = mapped_column(
        ForeignKey("quizzes.id", use_alter=True, name="fk_assignments_quiz_id_quizzes")
    )
    """Its questions as they are now; `None` where it never had any."""
    created_at: Mapped[datetime]

    course: Mapped[Course] = relationship(lazy="raise")
    version: Mapped[AssignmentVersion | None] = relationship(lazy="raise", foreign_keys=[version_id], post_update=True)
    quiz: Mapped[Quiz | None] = relationship(lazy="raise", foreign_keys=[quiz_id], post_update=True)


class AssignmentVersion(Base):
    """What an assignment's files said at one time. Submissions keep the version they were handed in against."""

    __tablename__ = "assignment_versions"
    __table_args__ = (UniqueConstraint("assignment_id", "number"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    assignment_id: Mapped[int] = mapped_column(ForeignKey("assignments.id", ondelete="CASCADE"))
    number: Mapped[int]
    bundle_hash: Mapped[str] = mapped_column(ForeignKey("bundles.hash"))
    grading_hash: Mapped[str] = mapped_column(String(80))
    """Of what decides verdicts and ratios: results of versions that share it are ranked together."""
    manifest: Mapped[dict[str, Any]]
    """`codec.to_json(autograder.assignment.Assignment)`."""
    handout: Mapped[str]
    """Markdown."""
    starters: Mapped[dict[str, Any]]
    """Language → source; `reading.py` → the one that is there to read."""
    milestones: Mapped[list[Any]]
    created_at: Mapped[datetime]
