"""Tell people something, once; what they have not read, and how they want to be told."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Select, delete, exists, func, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from server.errors import NotFoundError
from server.messages.kinds import KINDS
from server.models import Course, Enrolment, Mail, Notification, NotificationKind, NotificationSetting, User

TITLE_CHARS = 200
URL_CHARS = 500
KEY_CHARS = 120
MOST_COUNTED = 100
"""More unread ones are "99+": nobody counts them."""
KEPT = timedelta(days=400)
"""A notification is kept for so long: a course, and the year after it."""
_AT_ONCE = 500
"""So many rows in one statement: both databases limit the values of one."""
T = TypeVar("T")


def notify(
    session: Session,
    user_ids: Iterable[int],
    kind: NotificationKind,
    *,
    course_id: int | None,
    title: str,
    url: str,
    key: str,
) -> int:
    """Tell these people, in the caller's transaction; how many were told. Mail leaves after the commit.

    Who was told with this key already, in this transaction or another, is not told again. Closed accounts are left out,
    and whoever dropped the course.

    Args:
        course_id: what it is about; `None`: no course.
        title: one sentence without a full stop that says what happened: it is the mail's subject too. It is seen by its
            receiver alone, and must hold nothing that they may not see.
        url: the page where it can be seen, from its first slash on.
        key: names the event, `regrade:17`, `extension:3:2026-11-21T10:00`.

    Raises:
        ValueError: `url` is no page of ours, or `url` or `key` is too long.
    """
    if not url.startswith("/") or url.startswith("//") or len(url) > URL_CHARS or not 0 < len(key) <= KEY_CHARS:
        raise ValueError(f"nobody can be told of {url!r} as {key!r}")
    wishes = _wishes(session, sorted(set(user_ids)), kind, course_id)
    at, title = datetime.now(UTC), one_line(title, TITLE_CHARS)
    told: list[_Wish] = []
    same = {"course_id": course_id, "kind": kind, "title": title, "url": url, "key": key, "created_at": at}
    for some in _in_parts(wishes):
        rows = [{**same, "user_id": wish.user_id, "shown": wish.in_app} for wish in some]
        new = set(session.scalars(_once(session).values(rows).returning(Notification.user_id)))
        told += [wish for wish in some if wish.user_id in new]
    receivers = [wish for wish in told if wish.by_mail]
    if receivers:
        post = _Post(kind, _subject(session, course_id, title), f"{title}.", url, at)
        for some in _in_parts(receivers):
            session.execute(insert(Mail), [_mail(post, wish.user_id, wish.email) for wish in some])
    return len(told)


@dataclass(frozen=True)
class Reach:
    """How many people `notify` would tell, and how many of them by mail."""

    people: int
    mails: int


def expected(session: Session, whom: Select[int], kind: NotificationKind, *, course_id: int | None) -> Reach:
    """How many of these people, a query of their ids, `notify` would tell of something new; nobody is told."""
    wishes = _wishing(User.id.in_(whom), kind, course_id).subquery()
    return Reach(
        *session.execute(select(func.count(), func.count().filter(wishes.c.by_mail)).select_from(wishes)).one()
    )


def send_mail(session: Session, user: User, *, subject: str, body: str, url: str = "") -> None:
    """Have a mail about the account itself sent after the commit, such as the link to a new password.

    Args:
        body: plain text; the sender adds the link and who it is from.
        url: the page that it leads to, from its first slash on.
    """
    post = _Post(None, one_line(subject, TITLE_CHARS), body, url, datetime.now(UTC))
    session.execute(insert(Mail), [_mail(post, user.id, user.email)])


def unread(session: Session, user_id: int) -> int:
    """How many notifications a person has not read, at most `MOST_COUNTED`; one short query, for every page."""
    some = select(Notification.id).where(
        Notification.user_id == user_id, Notification.read_at.is_(None), Notification.shown
    )
    return session.scalar(select(func.count()).select_from(some.limit(MOST_COUNTED).subquery())) or 0


@dataclass(frozen=True)
class Told:
    """A notification, and the course it is about."""

    row: Notification
    course: Course | None


def told(session: Session, user_id: int, *, before: int | None = None, most: int = 50) -> Sequence[Told]:
    """What a person was told, the newest first; `before` is the id of the last one that they have seen."""
    query = (
        select(Notification, Course)
        .outerjoin(Course, Course.id == Notification.course_id)
        .where(Notification.user_id == user_id, Notification.shown)
        .order_by(Notification.id.desc())
        .limit(most)
    )
    if before is not None:
        query = query.where(Notification.id < before)
    return [Told(row, course) for row, course in session.execute(query)]


def read(session: Session, user_id: int, notification_id: int) -> Notification:
    """Mark one of a person's own notifications as read.

    Raises:
        NotFoundError: it is not theirs, or not there.
    """
    row = session.scalar(
        select(Notification).where(Notification.id == notification_id, Notification.user_id == user_id)
    )
    if row is None:
        raise NotFoundError("There is no such notification.")
    row.read_at = row.read_at or datetime.now(UTC)
    return row


def read_all(session: Session, user_id: int, *, up_to: int) -> None:
    """Mark as read what a person was told up to and with this id: what came since they looked stays."""
    session.execute(
        update(Notification)
        .where(Notification.user_id == user_id, Notification.id <= up_to, Notification.read_at.is_(None))
        .values(read_at=datetime.now(UTC))
        .execution_options(synchronize_session=False)
    )


@dataclass(frozen=True)
class Wanted:
    """How a person wants one kind."""

    in_app: bool
    by_mail: bool


def wanted(session: Session, user_id: int) -> Mapping[NotificationKind, Wanted]:
    """How a person wants each kind."""
    rows = session.scalars(select(NotificationSetting).where(NotificationSetting.user_id == user_id))
    said = {row.kind: Wanted(row.in_app, row.by_mail) for row in rows}
    return {kind: said.get(kind, Wanted(in_app=True, by_mail=about.by_mail)) for kind, about in KINDS.items()}


def want(session: Session, user_id: int, choices: Mapping[NotificationKind, Wanted]) -> None:
    """Write down how a person wants these kinds."""
    kinds = list(choices)
    session.execute(
        delete(NotificationSetting).where(NotificationSetting.user_id == user_id, NotificationSetting.kind.in_(kinds))
    )
    rows = [
        {"user_id": user_id, "kind": kind, "in_app": choice.in_app, "by_mail": choice.by_mail}
        for kind, choice in choices.items()
    ]
    if rows:
        session.execute(insert(NotificationSetting), rows)


def forget_old(session: Session, *, now: datetime) -> None:
    """Remove what was told so long ago that nobody looks for it."""
    session.execute(delete(Notification).where(Notification.created_at < now - KEPT))


def one_line(text: str, most: int) -> str:
    """`text` on one line and without control characters: it stands in a mail's head."""
    kept = "".join(character if character.isprintable() else " " for character in text)
    line = " ".join(kept.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


@dataclass(frozen=True)
class _Wish:
    user_id: int
    email: str
    in_app: bool
    by_mail: bool


def _wishes(session: Session, user_ids: Sequence[int], kind: NotificationKind, course_id: int | None) -> list[_Wish]:
    """How these people want this kind; who wants it neither way, or dropped the course, is told nothing."""
    found = []
    for some in _in_parts(user_ids):
        rows = session.execute(_wishing(User.id.in_(some), kind, course_id).order_by(User.id))
        found += [_Wish(*row) for row in rows]
    return found


def _wishing(whom: ColumnElement[bool], kind: NotificationKind, course_id: int | None) -> Select[int, str, bool, bool]:
    """The wishes of these people."""
    # Not "is in the course": an admin who is told of one need not be in it.
    dropped = exists().where(
        Enrolment.user_id == User.id, Enrolment.course_id == course_id, Enrolment.dropped_at.is_not(None)
    )
    in_app = func.coalesce(NotificationSetting.in_app, True)
    by_mail = func.coalesce(NotificationSetting.by_mail, KINDS[kind].by_mail)
    return (
        select(User.id, User.email, in_app.label("in_app"), by_mail.label("by_mail"))
        .outerjoin(NotificationSetting, (NotificationSetting.user_id == User.id) & (NotificationSetting.kind == kind))
        .where(whom, User.disabled_at.is_(None), in_app | by_mail, ~dropped)
    )


def _once(session: Session) -> Any:
    """An insert that leaves out whom this key told already, also where another transaction just did."""
    is_postgres = session.get_bind().dialect.name == "postgresql"
    made = postgresql.insert(Notification) if is_postgres else sqlite.insert(Notification)
    return made.on_conflict_do_nothing(index_elements=["user_id", "key"])


def _subject(session: Session, course_id: int | None, title: str) -> str:
    course = session.get(Course, course_id) if course_id is not None else None
    return one_line(f"[{course.title}] {title}" if course else title, TITLE_CHARS)


@dataclass(frozen=True)
class _Post:
    """What a mail says, whoever gets it."""

    kind: NotificationKind | None
    subject: str
    body: str
    url: str
    at: datetime


def _mail(post: _Post, user_id: int, to: str) -> dict[str, Any]:
    return {
        "user_id": user_id,
        "to": to,
        "kind": post.kind,
        "subject": post.subject,
        "body": post.body,
        "url": post.url,
        "message_id": secrets.token_hex(16),
        "next_at": post.at,
        "created_at": post.at,
    }


def _in_parts(items: Sequence[T]) -> Iterable[Sequence[T]]:
    return (items[start : start + _AT_ONCE] for start in range(0, len(items), _AT_ONCE))
