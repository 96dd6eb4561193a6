"""What people are told: announcements, notifications, and the mail that waits to be sent."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from sqlalchemy import ForeignKey, Index, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column, relationship

from server.models.base import BIG, Base
from server.models.people import User


class NotificationKind(StrEnum):
    """What a notification is about; `server.messages.kinds` says what each is called and whether it comes by mail."""

    announcement = "announcement"
    grades_published = "grades_published"
    grade_changed = "grade_changed"
    regrade_applied = "regrade_applied"
    regrade_request_opened = "regrade_request_opened"
    """For staff."""
    regrade_request_answered = "regrade_request_answered"
    comment = "comment"
    held_decided = "held_decided"
    extension_granted = "extension_granted"
    submission_late = "submission_late"
    group_changed = "group_changed"
    group_result = "group_result"


class MailState(StrEnum):
    """Where a mail is."""

    waiting = "waiting"
    sent = "sent"
    failed = "failed"
    """Given up; staff have an alert."""


class Notification(Base):
    """One thing that one person is told, once: `key` names it."""

    __tablename__ = "notifications"
    __table_args__ = (
        UniqueConstraint("user_id", "key"),
        Index("ix_notifications_user_id_id", "user_id", "id"),
        Index("ix_notifications_user_id_read_at", "user_id", "read_at"),
    )

    id: Mapped[int] = mapped_column(BIG, primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    course_id: Mapped[int | None] = mapped_column(ForeignKey("courses.id", ondelete="CASCADE"), index=True)
    kind: Mapped[NotificationKind]
    title: Mapped[str] = mapped_column(String(200))
    url: Mapped[str] = mapped_column(String(500))
    """A page of ours, `/submissions/01J…`."""
    key: Mapped[str] = mapped_column(String(120))
    shown: Mapped[bool] = mapped_column(default=True)
    """False where the person wants none of this kind in the app: the row then only keeps a mail from going twice."""
    created_at: Mapped[datetime]
    read_at: Mapped[datetime | None]


class NotificationSetting(Base):
    """How a person wants one kind; without a row the kind's own default holds."""

    __tablename__ = "notification_settings"

    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), primary_key=True)
    kind: Mapped[NotificationKind] = mapped_column(primary_key=True)
    in_app: Mapped[bool]
    by_mail: Mapped[bool]


class Mail(Base):
    """A mail that is to be sent, or was. Its text and link are erased when it is over: a link may be a key."""

    __tablename__ = "mail_outbox"
    __table_args__ = (Index("ix_mail_outbox_state_next_at", "state", "next_at"),)

    id: Mapped[int] = mapped_column(BIG, primary_key=True)
    user_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    to: Mapped[str] = mapped_column(String(254))
    subject: Mapped[str] = mapped_column(String(200))
    body: Mapped[str]
    url: Mapped[str] = mapped_column(String(500))
    """The page it leads to; the sender puts the public address before it. `""`: none."""
    kind: Mapped[NotificationKind | None]
    """`None`: about the account itself, such as a new password; no setting keeps it back."""
    message_id: Mapped[str] = mapped_column(String(200), unique=True)
    state: Mapped[MailState] = mapped_column(default=MailState.waiting)
    attempts: Mapped[int] = mapped_column(default=0)
    next_at: Mapped[datetime]
    """Not before; while somebody sends it, until when it is theirs."""
    created_at: Mapped[datetime]
    sent_at: Mapped[datetime | None]
    error: Mapped[str] = mapped_column(String(300), default="")
    """Why the last attempt failed, for staff."""


class Announcement(Base):
    """What staff tell a course."""

    __tablename__ = "announcements"
    __table_args__ = (
        Index("ix_announcements_course_id_publish_at", "course_id", "publish_at"),
        Index("ix_announcements_told_at_publish_at", "told_at", "publish_at"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    course_id: Mapped[int] = mapped_column(ForeignKey("courses.id", ondelete="CASCADE"))
    author_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    title: Mapped[str] = mapped_column(String(200))
    text: Mapped[str]
    """Markdown."""
    pinned: Mapped[bool] = mapped_column(default=False)
    tell: Mapped[bool] = mapped_column(default=True)
    """Members get a notification when it is published."""
    publish_at: Mapped[datetime]
    told_at: Mapped[datetime | None]
    """When the notifications were made; set at once where nobody is to be told."""
    revision: Mapped[int] = mapped_column(default=1)
    created_at: Mapped[datetime]
    edited_at: Mapped[datetime | None]
    """Since it was published, its words were changed."""
    withdrawn_at: Mapped[datetime | None]

    author: Mapped[User] = relationship(lazy="raise")


class AnnouncementEdit(Base):
    """What an announcement said before it was changed; rows are only added."""

    __tablename__ = "announcement_edits"
    __table_args__ = (UniqueConstraint("announcement_id", "revision"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    announcement_id: Mapped[int] = mapped_column(ForeignKey("announcements.id", ondelete="CASCADE"))
    revision: Mapped[int]
    """The revision that had these words."""
    title: Mapped[str] = mapped_column(String(200))
    text: Mapped[str]
    editor_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    """Who changed them."""
    at: Mapped[datetime]

    editor: Mapped[User] = relationship(lazy="raise")


class AnnouncementRead(Base):
    """A person has seen an announcement."""

    __tablename__ = "announcement_reads"

    announcement_id: Mapped[int] = mapped_column(ForeignKey("announcements.id", ondelete="CASCADE"), primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), primary_key=True, index=True)
    read_at: Mapped[datetime]
