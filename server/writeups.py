"""Take write-ups in, find them again, and list their versions."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session, joinedload

from autograder.assignment import Writeup
from server import ids
from server.accounts import accounts
from server.courses import courses
from server.courses.courses import AssignmentDetail, Membership
from server.errors import ConflictError, InvalidInputError, NotFoundError, TooLargeError
from server.groups import groups
from server.models import Assignment, Course, User, WriteUp, WriteUpFormat
from server.submissions.sources import clean_name

MOST_VERSIONS = 30
"""Of one person for one assignment: each is kept."""
SHOWN_BYTES = 256 * 1024
"""A text up to this size is shown as a page; a longer one is a file."""


def upload(
    session: Session,
    member: Membership,
    detail: AssignmentDetail,
    *,
    filename: str,
    data: bytes,
    now: datetime,
    trace: str,
) -> WriteUp:
    """Store a version; the same bytes again are the version that is there.

    Args:
        now: the time of the upload; it decides lateness.

    Raises:
        NotFoundError: this rung asks for none.
        InvalidInputError, TooLargeError: the file cannot be taken, or the assignment is closed.
        ConflictError: there are `MOST_VERSIONS` already.
    """
    asked = _asked(detail)
    kind = _checked(asked, filename, data)
    user = accounts.lock_user(session, member.user)
    stored = versions(session, detail.row.id, [user.id])
    digest = hashlib.sha256(data).hexdigest()
    if stored and stored[0].sha256 == digest:
        return stored[0]
    _check_open(member, detail, now)
    if len(stored) >= MOST_VERSIONS:
        raise ConflictError(f"There are {MOST_VERSIONS} versions already, which is the limit.")
    row = WriteUp(
        public_id=ids.public_id(),
        number=_last_number(session, detail, user) + 1,
        course_id=member.course.id,
        assignment_id=detail.row.id,
        user=user,
        format=kind,
        filename=clean_name(filename) or f"writeup.{kind}",
        data=data,
        size=len(data),
        sha256=digest,
        trace=trace,
        uploaded_at=now,
    )
    session.add(row)
    session.flush()
    return row


def versions(session: Session, assignment_id: int, user_ids: Sequence[int]) -> list[WriteUp]:
    """What these people uploaded for an assignment, newest first, with `user` loaded."""
    query = (
        select(WriteUp)
        .where(WriteUp.assignment_id == assignment_id, WriteUp.user_id.in_(user_ids))
        .options(joinedload(WriteUp.user))
        .order_by(WriteUp.id.desc())
    )
    return list(session.scalars(query))


def newest_of_everybody(session: Session, assignment_id: int) -> list[WriteUp]:
    """The newest version of everybody who uploaded one, by name."""
    newest = select(func.max(WriteUp.id)).where(WriteUp.assignment_id == assignment_id).group_by(WriteUp.user_id)
    query = select(WriteUp).join(WriteUp.user).where(WriteUp.id.in_(newest)).order_by(User.name, User.id)
    return list(session.scalars(query.options(joinedload(WriteUp.user))))


def find(session: Session, user: User, public_id: str) -> tuple[WriteUp, Membership]:
    """A write-up that `user` may read, and what they are in its course: its writer, their group, or staff.

    Raises:
        NotFoundError: there is none, or they may not know of it.
    """
    row = session.scalar(select(WriteUp).where(WriteUp.public_id == public_id).options(joinedload(WriteUp.user)))
    if row is None:
        raise NotFoundError("There is no such write-up.")
    try:
        member = courses.membership(session, user, session.get_one(Course, row.course_id).slug)
    except NotFoundError:
        raise NotFoundError("There is no such write-up.") from None
    if not member.is_staff and user.id not in groups.together(session, row.assignment_id, row.user_id):
        raise NotFoundError("There is no such write-up.")
    return row, member


def assignment_of(session: Session, row: WriteUp) -> Assignment:
    """The assignment that it was written for."""
    return session.get_one(Assignment, row.assignment_id)


def content_of(session: Session, row: WriteUp) -> bytes:
    """The bytes as uploaded."""
    return session.scalars(select(WriteUp.data).where(WriteUp.id == row.id)).one()


def _asked(detail: AssignmentDetail) -> Writeup:
    if detail.spec.writeup is None:
        raise NotFoundError("This assignment has no write-up.")
    return detail.spec.writeup


def _last_number(session: Session, detail: AssignmentDetail, user: User) -> int:
    query = select(func.max(WriteUp.number)).where(WriteUp.assignment_id == detail.row.id, WriteUp.user_id == user.id)
    return session.scalar(query) or 0


def _check_open(member: Membership, detail: AssignmentDetail, now: datetime) -> None:
    closed = detail.late_until
    if member.is_staff or closed is None or not detail.is_closed(now):
        return
    raise InvalidInputError(f"{detail.title} closed on {closed:%d %B %Y at %H:%M} UTC.", field="file")


def _checked(asked: Writeup, filename: str, data: bytes) -> WriteUpFormat:
    """The format of a file, which its name says and its content has to bear out."""
    if not data:
        raise InvalidInputError("The file is empty." if filename else "Choose a file.", field="file")
    if len(data) > asked.max_mib * 2**20:
        size = f"The file has {len(data) / 2**20:.1f} MiB"
        raise TooLargeError(f"{size}; a write-up may have at most {asked.max_mib} MiB.")
    extension = filename.rpartition(".")[2].lower()
    if extension not in asked.formats:
        offered = ", ".join(f".{name}" for name in asked.formats)
        raise InvalidInputError(f"A write-up has to be a file with the extension {offered}.", field="file")
    problem = _not_pdf(data) if extension == WriteUpFormat.pdf else _not_text(data)
    if problem:
        raise InvalidInputError(problem, field="file")
    return WriteUpFormat(extension)


def _not_pdf(data: bytes) -> str:
    # Readers take a PDF whose mark stands somewhere in its first KiB.
    return "" if b"%PDF-" in data[:1024] else "The file is named PDF, but its content is not a PDF."


def _not_text(data: bytes) -> str:
    if b"\0" in data:
        return "The file looks like a binary file: it has zero bytes."
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        return f"Line {data.count(bytes([10]), 0, error.start) + 1} is not UTF-8. Save the file as UTF-8."
    return ""
