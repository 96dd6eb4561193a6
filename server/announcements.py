"""Write announcements, publish them now or at a time, and say who has not seen them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import quote

from sqlalchemy import Select, func, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session, joinedload

from server import audit
from server.courses.courses import Membership
from server.db import now
from server.errors import ConflictError, InvalidInputError, NotFoundError
from server.messages import messages
from server.models import (
    Announcement,
    AnnouncementEdit,
    AnnouncementRead,
    Course,
    Enrolment,
    NotificationKind,
)

TITLE_CHARS = 200
TEXT_CHARS = 20_000
PAGE = 20
FARTHEST = timedelta(days=366)
"""A time further ahead is a slip of the keyboard."""


@dataclass(frozen=True)
class Draft:
    """What staff typed.

    Attributes:
        text: Markdown.
        publish_at: `None`: now.
        tell: whether members get a notification, and mail where they want it.
    """

    title: str
    text: str
    publish_at: datetime | None = None
    pinned: bool = False
    tell: bool = True


@dataclass(frozen=True)
class Shown:
    """An announcement as a member sees it."""

    row: Announcement
    is_new: bool
    """They had not seen it."""
    is_out: bool
    """Students see it."""


def listed(session: Session, member: Membership, *, page: int = 0) -> tuple[Sequence[Shown], bool]:
    """A page of what the member sees, pinned ones and then the newest first, and whether there is another page.

    Students see what is published; staff also what waits for its time.
    """
    at = now(session)
    seen = (AnnouncementRead.announcement_id == Announcement.id) & (AnnouncementRead.user_id == member.user.id)
    rows = session.execute(
        _visible(member, at)
        .add_columns(AnnouncementRead.read_at)
        .outerjoin(AnnouncementRead, seen)
        .options(joinedload(Announcement.author))
        .order_by(Announcement.pinned.desc(), Announcement.publish_at.desc(), Announcement.id.desc())
        .offset(page * PAGE)
        .limit(PAGE + 1)
    ).all()
    found = [Shown(row, read_at is None, row.publish_at <= at) for row, read_at in rows]
    return found[:PAGE], len(found) > PAGE


def newest(session: Session, member: Membership) -> Announcement | None:
    """The one that students saw last; `None` where there is none yet."""
    at = now(session)
    query = _visible(member, at).where(Announcement.publish_at <= at)
    return session.scalars(query.order_by(Announcement.publish_at.desc(), Announcement.id.desc()).limit(1)).first()


def one(session: Session, member: Membership, announcement_id: int) -> Shown:
    """One that the member sees.

    Raises:
        NotFoundError: there is none, or not yet.
    """
    at = now(session)
    query = _visible(member, at).where(Announcement.id == announcement_id).options(joinedload(Announcement.author))
    row = session.scalar(query)
    if row is None:
        raise NotFoundError("There is no such announcement.")
    is_read = session.get(AnnouncementRead, (row.id, member.user.id)) is not None
    return Shown(row, not is_read, row.publish_at <= at)


def unseen(session: Session, member: Membership) -> int:
    """How many a member has not seen."""
    seen = select(AnnouncementRead.announcement_id).where(AnnouncementRead.user_id == member.user.id)
    shown = _visible(member, now(session)).where(Announcement.publish_at <= now(session)).subquery()
    return session.scalar(select(func.count()).select_from(shown).where(shown.c.id.not_in(seen))) or 0


def mark_seen(session: Session, user_id: int, announcement_ids: Sequence[int]) -> None:
    """Write down that somebody has seen these; again changes nothing."""
    if not announcement_ids:
        return
    is_postgres = session.get_bind().dialect.name == "postgresql"
    made = postgresql.insert(AnnouncementRead) if is_postgres else sqlite.insert(AnnouncementRead)
    at = now(session)
    rows = [{"announcement_id": item, "user_id": user_id, "read_at": at} for item in sorted(announcement_ids)]
    session.execute(made.on_conflict_do_nothing().values(rows))


def edits_of(session: Session, member: Membership, announcement: Announcement) -> Sequence[AnnouncementEdit]:
    """What it said before, the newest first: what was told cannot be untold in silence.

    Staff see all of it; students only what it said once it was published.
    """
    query = select(AnnouncementEdit).where(AnnouncementEdit.announcement_id == announcement.id)
    if not member.is_staff:
        # The change that publishes it has the same time: what that one replaced was never public.
        query = query.where(AnnouncementEdit.at > announcement.publish_at)
    return session.scalars(
        query.options(joinedload(AnnouncementEdit.editor)).order_by(AnnouncementEdit.revision.desc()).limit(100)
    ).all()


def write(session: Session, member: Membership, draft: Draft) -> Announcement:
    """Announce something; what is not due yet is told when it is (`tell_due`).

    Raises:
        ForbiddenError: a student asked.
        InvalidInputError: title, text or time cannot be taken.
    """
    member.require_staff()
    at = now(session)
    row = Announcement(
        course_id=member.course.id,
        author_id=member.user.id,
        title=_checked_title(draft.title),
        text=_checked_text(draft.text),
        pinned=draft.pinned,
        tell=draft.tell,
        publish_at=_checked_time(draft.publish_at, at) or at,
        created_at=at,
    )
    session.add(row)
    session.flush()
    _record(session, member, "announcement.written", row)
    if row.publish_at <= at:
        _tell(session, row, member.course, at)
    return row


def edit(session: Session, member: Membership, announcement_id: int, draft: Draft, *, revision: int) -> Announcement:
    """Change one; what it said stays readable (`edits_of`). Who was told of it is not told again.

    Args:
        revision: that the form was made from.

    Raises:
        ForbiddenError, InvalidInputError: as `write`.
        ConflictError: somebody changed it meanwhile.
        NotFoundError: there is none.
    """
    row, at = _to_change(session, member, announcement_id, revision), now(session)
    title, text = _checked_title(draft.title), _checked_text(draft.text)
    if (title, text) != (row.title, row.text):
        before = AnnouncementEdit(
            announcement_id=row.id,
            revision=row.revision,
            title=row.title,
            text=row.text,
            editor_id=member.user.id,
            at=at,
        )
        session.add(before)
        row.edited_at = at if row.publish_at <= at else None
    row.title, row.text, row.pinned = title, text, draft.pinned
    if row.publish_at > at:
        row.publish_at, row.tell = _checked_time(draft.publish_at, at) or at, draft.tell
    row.revision += 1
    _record(session, member, "announcement.edited", row)
    if row.publish_at <= at and row.told_at is None:
        _tell(session, row, member.course, at)
    return row


def withdraw(session: Session, member: Membership, announcement_id: int, *, revision: int) -> None:
    """Take one back; the row, its edits and the trail stay.

    Raises:
        ForbiddenError, ConflictError, NotFoundError: as `edit`.
    """
    row = _to_change(session, member, announcement_id, revision)
    row.withdrawn_at = now(session)
    row.revision += 1
    _record(session, member, "announcement.withdrawn", row)


def tell_due(session: Session, *, most: int = 20) -> int:
    """Tell the members of what has become public; the dispatcher calls it. How many announcements."""
    at = now(session)
    due = (
        select(Announcement, Course)
        .join(Course, Course.id == Announcement.course_id)
        .where(Announcement.told_at.is_(None), Announcement.publish_at <= at, Announcement.withdrawn_at.is_(None))
        .order_by(Announcement.id)
        .limit(most)
        .with_for_update(skip_locked=True, of=Announcement)
    )
    rows = session.execute(due).all()
    for row, course in rows:
        _tell(session, row, course, at)
    return len(rows)


def _tell(session: Session, row: Announcement, course: Course, at: datetime) -> None:
    row.told_at = at
    if not row.tell:
        return
    members = select(Enrolment.user_id).where(Enrolment.course_id == course.id, Enrolment.dropped_at.is_(None))
    messages.notify(
        session,
        session.scalars(members.where(Enrolment.user_id != row.author_id)),
        NotificationKind.announcement,
        course_id=course.id,
        title=row.title,
        url=f"/courses/{quote(course.slug)}/announcements/{row.id}",
        key=f"announcement:{row.id}",
    )


def _visible(member: Membership, at: datetime) -> Select[Announcement]:
    query = select(Announcement).where(Announcement.course_id == member.course.id, Announcement.withdrawn_at.is_(None))
    return query if member.is_staff else query.where(Announcement.publish_at <= at)


def _to_change(session: Session, member: Membership, announcement_id: int, revision: int) -> Announcement:
    member.require_staff()
    row = session.scalar(
        select(Announcement)
        .where(
            Announcement.id == announcement_id,
            Announcement.course_id == member.course.id,
            Announcement.withdrawn_at.is_(None),
        )
        .with_for_update()
    )
    if row is None:
        raise NotFoundError("There is no such announcement.")
    if row.revision != revision:
        raise ConflictError(
            "Somebody else changed this announcement while you were writing. Read their version, then edit yours."
        )
    return row


def _checked_title(title: str) -> str:
    title = " ".join(title.split())
    if not title or len(title) > TITLE_CHARS or not title.isprintable():
        raise InvalidInputError(f"A title has 1 to {TITLE_CHARS} printable characters.", field="title")
    return title


def _checked_text(text: str) -> str:
    text = text.replace("\r\n", "\n").strip()
    if not text or len(text) > TEXT_CHARS or "\0" in text:
        raise InvalidInputError(f"An announcement has 1 to {TEXT_CHARS:,} characters.", field="text")
    return text


def _checked_time(publish_at: datetime | None, at: datetime) -> datetime | None:
    if publish_at is not None and not at - FARTHEST < publish_at < at + FARTHEST:
        raise InvalidInputError("That time is more than a year away.", field="publish_at")
    return publish_at if publish_at is None else max(publish_at, at)


def _record(session: Session, member: Membership, action: str, row: Announcement) -> None:
    detail = {
        "course": member.course.slug,
        "title": row.title,
        "publish_at": row.publish_at.isoformat(),
        "pinned": row.pinned,
        "revision": row.revision,
    }
    audit.record(session, action=action, subject=f"announcement:{row.id}", actor=member.user, detail=detail)
