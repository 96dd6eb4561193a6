"""What leaderboards keep beside submissions: who is best, baselines of ours, nights of confirmation."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from sqlalchemy import ForeignKey, Index, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from autograder.contract import Lane, Language
from server.models.base import BIG, Base
from server.models.grading import Result, Submission


class Best(Base):
    """A person's best valid result in one language on one board, as it is graded by these files.

    It follows from submissions and their results, and is brought up to date in the transaction of whatever changes
    them (`server.grading.leaderboard_entries`). Whether it stands on the board also depends on the person; that is
    asked when one looks.
    """

    __tablename__ = "leaderboard_bests"

    assignment_id: Mapped[int] = mapped_column(ForeignKey("assignments.id", ondelete="CASCADE"), primary_key=True)
    lane: Mapped[Lane] = mapped_column(primary_key=True)
    grading_hash: Mapped[str] = mapped_column(String(80), primary_key=True)
    """What graded it; ratios of two of them are never on one board."""
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), primary_key=True, index=True)
    language: Mapped[Language] = mapped_column(primary_key=True)
    leads: Mapped[bool]
    """It is the best of the person's languages: without a choice of language it stands on the board."""
    submission_id: Mapped[int] = mapped_column(BIG, ForeignKey("submissions.id", ondelete="CASCADE"), index=True)
    uploaded_at: Mapped[datetime]
    ratio: Mapped[float]
    ratio_low: Mapped[float]
    ratio_high: Mapped[float]
    time_us: Mapped[float]


class SharedSource(Base):
    """A note and a source that were opened on a leaderboard, by whoever wrote them or by staff; or closed again.

    It is shown while it is open, stands on its board, and nobody can hand in to the assignment any more.
    """

    __tablename__ = "shared_sources"

    submission_id: Mapped[int] = mapped_column(
        BIG, ForeignKey("submissions.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    """Who wrote it."""
    public_id: Mapped[str] = mapped_column(String(26), unique=True)
    """In the address of the entry's page: a submission's own number is nobody else's."""
    note: Mapped[str]
    """The author's, as plain text; `""`: none."""
    is_open: Mapped[bool]
    by_staff: Mapped[bool]
    """Staff opened or closed it last; what they closed only they open."""
    changed_at: Mapped[datetime]


class MilestoneKind(StrEnum):
    """Where a milestone's source comes from."""

    published = "published"
    """`milestones/` of the assignment: a step on the road that students may read."""
    staff = "staff"
    """The staff kernel, which is the reference."""
    library = "library"
    """A library does the exercise: what people use instead of writing it."""


class Milestone(Base):
    """A baseline on a leaderboard: a submission of ours, graded as everybody's is. Rows are only added."""

    __tablename__ = "milestones"
    __table_args__ = (
        UniqueConstraint("version_id", "lane", "language", "name"),
        Index("ix_milestones_assignment_id_lane", "assignment_id", "lane"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    assignment_id: Mapped[int] = mapped_column(ForeignKey("assignments.id", ondelete="CASCADE"))
    version_id: Mapped[int] = mapped_column(ForeignKey("assignment_versions.id", ondelete="CASCADE"))
    """With which it was handed in; it stands as long as what grades is the same."""
    lane: Mapped[Lane]
    language: Mapped[Language]
    kind: Mapped[MilestoneKind]
    name: Mapped[str] = mapped_column(String(60))
    """Of its file, `2_one_kernel_three_passes`."""
    submission_id: Mapped[int] = mapped_column(BIG, ForeignKey("submissions.id", ondelete="CASCADE"), unique=True)
    created_at: Mapped[datetime]


class ConfirmNight(Base):
    """One night's round over the leaderboards: what stands on top is graded once more, once."""

    __tablename__ = "confirm_nights"

    night_at: Mapped[datetime] = mapped_column(primary_key=True)
    """When the night began."""
    queued: Mapped[int] = mapped_column(default=0)
    """So many went into the queue."""
    finished_at: Mapped[datetime | None]
    """When nothing was left to queue; `None` while the round goes on."""


# A ranking looks at everything that was handed in on a board, and needs little of each row: both indexes hold all that
# it needs. The rows themselves are wide, and SQLite reads past a source or a payload to get at what stands behind it.
Index(
    "ix_submissions_ranked",
    Submission.assignment_id,
    Submission.lane,
    Submission.mode,
    Submission.user_id,
    Submission.review,
    Submission.uploaded_at,
    Submission.version_id,
    Submission.language,
    Submission.result_id,
    Submission.course_id,
)
Index(
    "ix_results_ranked",
    Result.submission_id,
    Result.id,
    Result.verdict,
    Result.settled,
    Result.ratio,
    Result.ratio_low,
    Result.ratio_high,
    Result.time_us,
)
