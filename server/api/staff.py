"""What staff go through, as JSON: the roster, what waits for a decision, extensions, and the audit log."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field

from server import audit
from server.api.responses import errors
from server.api.schemas import Read
from server.audit import Entry
from server.courses import courses
from server.courses.courses import Membership
from server.gradebook import extensions
from server.grading import review_queue
from server.grading.review_queue import Item, Part
from server.http.identity import Someone
from server.http.work import Work
from server.models import Enrolment, Extension, Lane, Review, Role, Verdict
from server.roster import listing
from server.roster.listing import Filter, Roster

router = APIRouter(tags=["staff"])
_PATH = "/courses/{course}"
MOST_EXTENSIONS = 1_000


class PersonRead(Read):
    """Somebody who is in the course, or was."""

    user: int
    name: str
    email: str
    handle: str
    role: Role
    section: str
    student_number: str
    dropped_at: datetime | None

    @classmethod
    def of(cls, row: Enrolment) -> PersonRead:
        """Their enrolment."""
        return cls(
            user=row.user_id, name=row.user.name, email=row.user.email, handle=row.user.handle, role=row.role,
            section=row.section, student_number=row.student_number, dropped_at=row.dropped_at,
        )  # fmt: skip


class RosterRead(Read):
    """A page of the roster, by name."""

    course: str
    found: Annotated[int, Field(description="How many there are on all pages.")]
    page: int
    pages: int
    people: list[PersonRead]

    @classmethod
    def of(cls, member: Membership, found: Roster, page: int) -> RosterRead:
        """The page that was found."""
        people = [PersonRead.of(row) for row in found.rows]
        return cls(course=member.course.slug, found=found.found, page=page, pages=found.pages, people=people)


class WaitingRead(Read):
    """A submission that somebody should look at."""

    submission: str
    student: str
    assignment: str
    lane: Lane
    verdict: Verdict | None
    review: Review
    ratio: float | None
    since: Annotated[datetime, Field(description="Since when it waits.")]
    findings: Annotated[list[str], Field(description="What was seen in how its output came to be.")]
    appeal: Annotated[str, Field(description="What its student says; empty where it is no appeal.")]

    @classmethod
    def of(cls, item: Item) -> WaitingRead:
        """As it stands in the queue."""
        row = item.submission
        return cls(
            submission=row.public_id, student=row.user.name, assignment=row.assignment.slug, lane=row.lane,
            verdict=row.verdict, review=row.review, ratio=row.result.ratio if row.result else None, since=item.since,
            findings=list(item.kinds), appeal=item.appeal,
        )  # fmt: skip


class PartRead(Read):
    """One kind of what waits: those that wait longest, and how many there are."""

    count: int
    items: list[WaitingRead]

    @classmethod
    def of(cls, part: Part) -> PartRead:
        """The part."""
        return cls(count=part.count, items=[WaitingRead.of(item) for item in part.items])


class ReviewRead(Read):
    """What waits for a person."""

    course: str
    appeals: PartRead
    held: PartRead
    findings: PartRead


class ExtensionRead(Read):
    """Another due date for one student."""

    id: int
    user: int
    name: str
    assignment: str
    due_at: datetime
    late_until: Annotated[datetime | None, Field(description="Empty: it never closes for them.")]
    reason: str
    by: str | None
    at: datetime
    withdrawn_at: Annotated[datetime | None, Field(description="It holds while this is empty.")]

    @classmethod
    def of(cls, row: Extension) -> ExtensionRead:
        """The extension."""
        return cls(
            id=row.id, user=row.user_id, name=row.user.name, assignment=row.assignment.slug, due_at=row.due_at,
            late_until=row.late_until, reason=row.reason, by=row.actor.name if row.actor else None, at=row.at,
            withdrawn_at=row.withdrawn_at,
        )  # fmt: skip


class EntryRead(Read):
    """Something that somebody did."""

    id: int
    at: datetime
    action: Annotated[str, Field(description="A noun and a verb.", examples=["grade.overridden"])]
    actor: Annotated[str | None, Field(description="Who did it; empty: the system, or a command on the server.")]
    actor_id: int | None
    about: Annotated[str | None, Field(description="The person whom it is about.")]
    about_id: int | None
    assignment: str | None
    subject: Annotated[str, Field(description="What it was done to.", examples=["assignment:3"])]
    detail: Annotated[dict[str, Any], Field(description="What was done, as the action has it.")]
    reason: str

    @classmethod
    def of(cls, entry: Entry) -> EntryRead:
        """The entry; people and assignment are called as they are now."""
        row = entry.row
        return cls(
            id=row.id, at=row.at, action=row.action, subject=row.subject, detail=row.detail, reason=row.reason,
            actor=entry.actor.name if entry.actor else None, actor_id=row.actor_id,
            about=entry.about.name if entry.about else None, about_id=row.about_id,
            assignment=entry.assignment.slug if entry.assignment else None,
        )  # fmt: skip


@router.get(f"{_PATH}/roster", responses=errors(401, 403, 404, 422), summary="Roster")
def read_roster(
    *,
    course: str,
    who: Someone,
    work: Work,
    search: Annotated[str, Query(max_length=120, description="Part of a name, e-mail address or number.")] = "",
    section: Annotated[str | None, Query(max_length=60, description="Only of this one; empty: of none.")] = None,
    role: Role | None = None,
    dropped: Annotated[bool, Query(description="Those who dropped the course instead.")] = False,
    page: Annotated[int, Query(ge=1, le=10_000)] = 1,
) -> RosterRead:
    """Who is in the course, a hundred at a time; for staff."""
    member = courses.membership(work, who.user, course)
    named = section.replace("\0", "") if section is not None else None
    found = listing.roster(work, member, Filter(search.replace("\0", ""), named, role, dropped, page))
    return RosterRead.of(member, found, min(page, found.pages))


@router.get(f"{_PATH}/review", responses=errors(401, 403, 404), summary="What waits for a decision")
def read_review(course: str, who: Someone, work: Work) -> ReviewRead:
    """Appeals, held results and findings, the oldest first; for staff."""
    member = courses.membership(work, who.user, course)
    found = review_queue.waiting(work, member)
    return ReviewRead(
        course=course, appeals=PartRead.of(found.appeals), held=PartRead.of(found.held),
        findings=PartRead.of(found.findings),
    )  # fmt: skip


@router.get(f"{_PATH}/extensions", responses=errors(401, 403, 404), summary="Extensions")
def read_extensions(course: str, who: Someone, work: Work) -> list[ExtensionRead]:
    """The newest thousand, also those that ended; for staff."""
    member = courses.staff_of(work, who.user, course)
    return [ExtensionRead.of(row) for row in extensions.of_course(work, member.course.id, most=MOST_EXTENSIONS)]


@router.get(f"{_PATH}/audit", responses=errors(401, 403, 404, 422), summary="Audit log")
def read_audit(
    *,
    course: str,
    who: Someone,
    work: Work,
    user: Annotated[int | None, Query(ge=1, le=2**31 - 1, description="Only what is about this person.")] = None,
    assignment: Annotated[str, Query(max_length=60, description="Only of this slug.")] = "",
    before: Annotated[int | None, Query(ge=1, le=2**62, description="Older than this entry.")] = None,
    limit: Annotated[int, Query(ge=1, le=audit.PAGE)] = audit.PAGE,
) -> list[EntryRead]:
    """Who changed what, when and why, newest first; for staff."""
    course_id = courses.staff_of(work, who.user, course).course.id
    rung_id = work.scalar(courses.id_of_assignment(course_id, assignment)) if assignment else None
    if assignment and rung_id is None:
        return []
    found = audit.log_of(work, course_id, about_id=user, assignment_id=rung_id, before=before, limit=limit)
    return [EntryRead.of(entry) for entry in found]
