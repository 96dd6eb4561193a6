"""What is said in a request's thread, and who is told of it."""

from __future__ import annotations

from datetime import datetime
from typing import TypedDict

from sqlalchemy.orm import Session

from server.courses import courses
from server.courses.courses import Membership
from server.errors import InvalidInputError
from server.messages.messages import notify
from server.models import (
    Assignment,
    Course,
    NotificationKind,
    RegradeMessage,
    RegradeRequest,
    RequestState,
    Submission,
    User,
)

MAX_TEXT_CHARS = 4000


class _About(TypedDict):
    course_id: int
    url: str
    key: str


def checked(text: str) -> str:
    """What somebody says, stripped.

    Raises:
        InvalidInputError: it is empty, or too long.
    """
    said = text.replace("\0", "").strip()
    if not said:
        raise InvalidInputError("Write a message: a person will read it.", field="text")
    if len(said) > MAX_TEXT_CHARS:
        raise InvalidInputError(f"At most {MAX_TEXT_CHARS} characters; this has {len(said)}.", field="text")
    return said


def add_message(
    session: Session,
    request: RegradeRequest,
    member: Membership,
    text: str,
    now: datetime,
    *,
    outcome: RequestState | None = None,
) -> RegradeMessage:
    """Add to the thread; its row is locked."""
    request.revision = (request.revision or 0) + 1
    message = RegradeMessage(
        request_id=request.id, author_id=member.user.id, by_staff=request.user_id != member.user.id, outcome=outcome,
        text=text, at=now,
    )  # fmt: skip
    session.add(message)
    session.flush()
    return message


def tell_staff(session: Session, request: RegradeRequest, submission: Submission, what: str, key: str) -> None:
    """Every member of the staff who takes such notifications."""
    author = session.get_one(User, request.user_id)
    title = session.get_one(Assignment, request.assignment_id).title
    said = f"{author.name} {what}: {title}, submission {submission.number}"
    others = [one for one in courses.staff_ids(session, request.course_id) if one != request.user_id]
    notify(session, others, NotificationKind.regrade_request_opened, title=said, **_about(session, request, key))


def tell_other(session: Session, request: RegradeRequest, member: Membership, what: str, key: str) -> None:
    """The student, of what staff said; staff, of what the student said."""
    submission = session.get_one(Submission, request.submission_id)
    if request.user_id == member.user.id:
        tell_staff(session, request, submission, "wrote about a regrade request", key)
        return
    title = session.get_one(Assignment, request.assignment_id).title
    said = f"{what}: {title}, submission {submission.number}"
    kind = NotificationKind.regrade_request_answered
    notify(session, [request.user_id], kind, title=said, **_about(session, request, key))


def _about(session: Session, request: RegradeRequest, key: str) -> _About:
    slug = session.get_one(Course, request.course_id).slug
    url = f"/courses/{slug}/regrade-requests/{request.id}"
    return {"course_id": request.course_id, "url": url, "key": f"request:{request.id}:{key}"}
