"""The mail that waits: who sends it next, and what became of it.

Several may send. A mail is taken in a transaction of its own, sent outside of any, and what became of it is written in
another. Who took it has it for `LEASE`; if they end meanwhile, the next one sends it, with the same id. So a mail may
go twice and is never lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Select, delete, select
from sqlalchemy.orm import Session

from server import alerts
from server.models import AlertKind, Mail, MailState, NotificationKind

LEASE = timedelta(minutes=10)
"""Longer than any batch takes: `AT_ONCE` times the time-out of a connection."""
AT_ONCE = 20
FIRST_PAUSE = timedelta(minutes=1)
LONGEST_PAUSE = timedelta(hours=1)
MAX_ATTEMPTS = 12
"""With these pauses about seven hours: an evening without the mail server costs no mail."""
KEPT = timedelta(days=30)
SERVER = "mail:server"
GIVEN_UP = "mail:given_up"
ERROR_CHARS = 300


@dataclass(frozen=True)
class Outgoing:
    """A mail that is ours to send."""

    id: int
    attempt: int
    user_id: int | None
    to: str
    subject: str
    body: str
    url: str
    kind: NotificationKind | None
    message_id: str


def is_due(session: Session, now: datetime) -> bool:
    """Whether anything waits; most looks find nothing, and this one locks nothing."""
    return session.scalar(_due(now).with_only_columns(Mail.id).limit(1)) is not None


def take(session: Session, now: datetime) -> Sequence[Outgoing]:
    """The next mails, which nobody else takes for `LEASE`."""
    rows = session.scalars(_due(now).limit(AT_ONCE).with_for_update(skip_locked=True)).all()
    for row in rows:
        row.attempts += 1
        row.next_at = now + LEASE
    session.flush()
    return [
        Outgoing(row.id, row.attempts, row.user_id, row.to, row.subject, row.body, row.url, row.kind, row.message_id)
        for row in rows
    ]


def sent(session: Session, mail: Outgoing, now: datetime) -> None:
    """It has left. Its words go: a link to a new password must not lie about."""
    row = _ours(session, mail)
    if row is not None:
        row.state, row.sent_at, row.error = MailState.sent, now, ""
        _erase(row)


def failed(session: Session, mail: Outgoing, error: str, *, for_good: bool, now: datetime) -> None:
    """It has not left: again after a pause, or, after the last attempt or a final refusal, never."""
    row = _ours(session, mail)
    if row is None:
        return
    row.error = error[:ERROR_CHARS]
    if not for_good and mail.attempt < MAX_ATTEMPTS:
        row.next_at = now + pause_after(mail.attempt)
        return
    row.state = MailState.failed
    _erase(row)
    whom = f"user:{mail.user_id}" if mail.user_id is not None else "somebody"
    message = f"Mail {mail.id} to {whom} was not delivered after {mail.attempt} attempts: {row.error}"
    alerts.raise_alert(session, AlertKind.mail_failed, GIVEN_UP, message, now)


def pause_after(attempt: int) -> timedelta:
    """How long after a failed attempt, counted from 1, the next one is made."""
    doublings = min(attempt - 1, 10)
    return min(FIRST_PAUSE * (1 << doublings), LONGEST_PAUSE)


def forget_old(session: Session, *, now: datetime) -> None:
    """Remove what was sent or given up long ago."""
    session.execute(delete(Mail).where(Mail.state != MailState.waiting, Mail.created_at < now - KEPT))


def _due(now: datetime) -> Select[Mail]:
    return select(Mail).where(Mail.state == MailState.waiting, Mail.next_at <= now).order_by(Mail.next_at, Mail.id)


def _ours(session: Session, mail: Outgoing) -> Mail | None:
    """Its row; `None` if somebody else has taken it meanwhile, or it is gone with its account."""
    return session.scalar(
        select(Mail)
        .where(Mail.id == mail.id, Mail.attempts == mail.attempt, Mail.state == MailState.waiting)
        .with_for_update()
    )


def _erase(row: Mail) -> None:
    row.body = row.url = ""
