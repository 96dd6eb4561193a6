"""Raising, ending and reading alerts.

An alert never costs the transaction that it is raised in: it is written behind a savepoint, waits for nobody's lock,
and an error in it is logged. Two transactions that raise the same alert in the same moment raise it once.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Collection, Sequence
from datetime import datetime

from sqlalchemy import func, select, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from server.models import Alert, AlertKind, User

logger = logging.getLogger(__name__)

MAX_SUBJECT_CHARS = 120
MAX_MESSAGE_CHARS = 2000


def raise_alert(session: Session, kind: AlertKind, subject: str, message: str, now: datetime) -> None:
    """Tell staff; while the same kind about the same subject is open, the count and the newest message change.

    Args:
        subject: what it is about, such as `submission:01J…`, `node:anvil`, `lane:cpu`.
        message: what happened and what it means, for staff.
    """
    subject, message = _text(subject, MAX_SUBJECT_CHARS), _text(message, MAX_MESSAGE_CHARS)
    _at_no_cost(session, lambda: _raise(session, kind, subject, message, now))


def resolve(session: Session, kind: AlertKind, subject: str, now: datetime, by: User | None = None) -> bool:
    """End it, by a person or because what it was about is over; whether there was anything to end."""
    subject = _text(subject, MAX_SUBJECT_CHARS)
    return bool(_at_no_cost(session, lambda: _resolve(session, kind, subject, now, by)))


def open_alerts(session: Session) -> Sequence[Alert]:
    """What is open now, the newest first."""
    return session.scalars(select(Alert).where(Alert.resolved_at.is_(None)).order_by(Alert.id.desc())).all()


def open_subjects(session: Session, kind: AlertKind) -> Collection[str]:
    """What alerts of one kind are open about."""
    return set(session.scalars(select(Alert.subject).where(Alert.kind == kind, Alert.resolved_at.is_(None))))


def _raise(session: Session, kind: AlertKind, subject: str, message: str, now: datetime) -> bool:
    if not _mine(session, kind, subject):
        return False
    same = (Alert.kind == kind, Alert.subject == subject, Alert.resolved_at.is_(None))
    known = update(Alert).where(*same).values(count=Alert.count + 1, last_at=now, message=message)
    if session.execute(known.execution_options(synchronize_session=False)).rowcount == 0:  # type: ignore[attr-defined]
        session.add(Alert(kind=kind, subject=subject, message=message, first_at=now, last_at=now))
        logger.warning("alert %s about %s: %s", kind, subject, message)
    return True


def _resolve(session: Session, kind: AlertKind, subject: str, now: datetime, by: User | None) -> bool:
    if not _mine(session, kind, subject):
        return False
    same = (Alert.kind == kind, Alert.subject == subject, Alert.resolved_at.is_(None))
    ended = update(Alert).where(*same).values(resolved_at=now, resolved_by_id=by.id if by else None)
    found = session.execute(ended.execution_options(synchronize_session=False)).rowcount  # type: ignore[attr-defined]
    if found:
        logger.info("alert %s about %s is over", kind, subject)
    return bool(found)


def _mine(session: Session, kind: AlertKind, subject: str) -> bool:
    """Whether this transaction may touch this alert; false while another one does, which then says the same.

    A lock that is waited for would give the queue's one lock a second one to be in a circle with.
    """
    if session.get_bind().dialect.name != "postgresql":
        return True  # The transaction itself is the lock.
    digest = hashlib.sha256(f"alert {kind} {subject}".encode()).digest()
    key = int.from_bytes(digest[:8], "big", signed=True)
    return bool(session.scalar(select(func.pg_try_advisory_xact_lock(key))))


def _at_no_cost(session: Session, write: Callable[[], bool]) -> bool:
    session.flush()  # What fails in here is the caller's own.
    try:
        with session.begin_nested():
            return write()
    except SQLAlchemyError:
        # Around a transaction: what raises an alert has something else to do.
        logger.exception("an alert was not written")
        return False


def _text(text: str, most: int) -> str:
    """Names in it may be a stranger's: PostgreSQL stores no NUL."""
    return text.replace("\0", "")[:most]
