"""Comments that a course's staff use again and again: kept once, the most used first."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from server.courses.courses import Membership
from server.errors import NotFoundError
from server.models import SavedComment

SHOWN = 50


def most_used(session: Session, member: Membership) -> Sequence[SavedComment]:
    """The most used ones of the course."""
    member.require_staff()
    query = (
        select(SavedComment)
        .where(SavedComment.course_id == member.course.id)
        .order_by(SavedComment.uses.desc(), SavedComment.id.desc())
        .limit(SHOWN)
    )
    return session.scalars(query).all()


def used(session: Session, member: Membership, text: str, *, save: bool, now: datetime) -> None:
    """Count one more use of a kept text; `save` keeps one that is new."""
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    if _count(session, member, digest) or not save:
        return
    row = SavedComment(course_id=member.course.id, text=text, digest=digest, uses=1, created_at=now)
    try:
        with session.begin_nested():
            session.add(row)
    except IntegrityError:
        # Somebody else kept the same at the same time.
        _count(session, member, digest)


def forget(session: Session, member: Membership, saved_id: int) -> None:
    """Offer it no more; comments that were made of it stay.

    Raises:
        NotFoundError: there is none in this course.
    """
    member.require_staff()
    row = session.scalar(
        select(SavedComment).where(SavedComment.id == saved_id, SavedComment.course_id == member.course.id)
    )
    if row is None:
        raise NotFoundError("There is no such comment.")
    session.delete(row)


def _count(session: Session, member: Membership, digest: str) -> bool:
    row_id = session.scalar(
        update(SavedComment)
        .where(SavedComment.course_id == member.course.id, SavedComment.digest == digest)
        .values(uses=SavedComment.uses + 1)
        .returning(SavedComment.id)
    )
    return row_id is not None
