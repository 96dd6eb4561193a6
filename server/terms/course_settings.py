"""What an instructor decides about a course itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from server import audit
from server.courses.courses import Membership, checked_title, checked_zone
from server.errors import ConflictError, InvalidInputError
from server.gradebook import policy
from server.models import Course, SourceSharing

MOST_DAYS = 36_500
_FIELDS = (
    "title", "timezone", "locks_rungs", "accepts_unserved_lanes", "public_leaderboards", "public_handouts",
    "source_sharing", "keeps_erased_work", "retained_days",
)  # fmt: skip


@dataclass(frozen=True)
class LateRules:
    """What lateness costs; `server.gradebook.policy` says what each is."""

    late_days: int
    late_days_per_assignment: int | None
    late_penalty: float
    slack_s: int


@dataclass(frozen=True)
class Settings:
    """The columns of `Course` with these names."""

    title: str
    timezone: str
    locks_rungs: bool
    accepts_unserved_lanes: bool
    public_leaderboards: bool
    public_handouts: bool
    source_sharing: SourceSharing
    keeps_erased_work: bool
    retained_days: int | None
    late: LateRules


def change(session: Session, member: Membership, wanted: Settings, *, revision: int) -> None:
    """Change a course's settings. Dates stay the instants they are, also in another time zone.

    Raises:
        ForbiddenError: the member is no instructor.
        InvalidInputError: one of them cannot be taken; `field` says which.
        ConflictError: somebody else changed them meanwhile.
    """
    member.require_instructor()
    course = lock(session, member)
    if course.revision != revision:
        raise ConflictError("Somebody else changed the settings meanwhile. Reload the page to see them.")
    checked_title(wanted.title)
    checked_zone(wanted.timezone)
    if wanted.retained_days is not None and not 1 <= wanted.retained_days <= MOST_DAYS:
        raise InvalidInputError(f"Enter 1 to {MOST_DAYS:,} days, or leave it empty.", field="retained_days")
    changed: dict[str, list[Any]] = {}
    for name in _FIELDS:
        old, new = getattr(course, name), getattr(wanted, name)
        new = checked_title(new) if name == "title" else new
        if old != new:
            setattr(course, name, new)
            changed[name] = [old, new]
    late = wanted.late
    policy.set_policy(
        session,
        course,
        late_days=late.late_days,
        late_days_per_assignment=late.late_days_per_assignment,
        late_penalty=late.late_penalty,
        slack_s=late.slack_s,
        actor=member.user,
    )
    course.revision += 1
    if changed:
        audit.record(
            session,
            action="course.changed",
            subject=f"course:{course.slug}",
            actor=member.user,
            detail={"changed": changed},
        )


def lock(session: Session, member: Membership) -> Course:
    """The course as it is now; whoever else wants to change it waits."""
    query = select(Course).where(Course.id == member.course.id).with_for_update()
    return session.scalars(query.execution_options(populate_existing=True)).one()
