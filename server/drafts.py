"""Keep what somebody writes, per assignment and language, so that it is there on another machine and after a crash.

Every draft counts its revisions. Who saves says which one they began from: where another window saved meanwhile nothing
is overwritten, and the window that is behind is told.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from autograder.contract import MAX_SOURCE_BYTES, Language
from server.courses.courses import AssignmentDetail, Membership
from server.errors import ConflictError, InvalidInputError, TooLargeError
from server.models import Draft, User

_BEHIND = "Another window saved a newer draft. Nothing was overwritten."


def drafts_of(session: Session, user: User, detail: AssignmentDetail) -> Mapping[Language, Draft]:
    """A person's drafts for an assignment."""
    query = select(Draft).where(Draft.user_id == user.id, Draft.assignment_id == detail.row.id)
    return {draft.language: draft for draft in session.scalars(query)}


def save(
    session: Session,
    member: Membership,
    detail: AssignmentDetail,
    *,
    language: Language,
    text: str,
    revision: int,
    now: datetime,
) -> Draft:
    """Keep `text`; the same text again changes nothing.

    Args:
        revision: of the draft that the writer began from; 0 where there was none.

    Raises:
        ConflictError: a newer one was saved meanwhile.
        InvalidInputError, TooLargeError: the assignment is not taken in this language, or the text cannot be kept.
    """
    _check(detail, language, text)
    stored = drafts_of(session, member.user, detail).get(language)
    if stored is not None and stored.text == text:
        return stored
    if stored is None:
        return _first(session, member, detail, Draft(language=language, text=text, revision=revision + 1, saved_at=now))
    return _next(session, stored, text, revision, now)


def _first(session: Session, member: Membership, detail: AssignmentDetail, draft: Draft) -> Draft:
    draft.user_id, draft.assignment_id = member.user.id, detail.row.id
    try:
        with session.begin_nested():
            session.add(draft)
    except IntegrityError:
        raise ConflictError(_BEHIND) from None
    return draft


def _next(session: Session, stored: Draft, text: str, revision: int, now: datetime) -> Draft:
    """One statement compares and sets, so that of two windows that save at once one is told."""
    changed = session.execute(
        update(Draft)
        .where(Draft.id == stored.id, Draft.revision == revision)
        .values(text=text, revision=revision + 1, saved_at=now)
        .returning(Draft.id)
        .execution_options(synchronize_session=False)
    )
    if changed.one_or_none() is None:
        raise ConflictError(_BEHIND)
    session.refresh(stored)
    return stored


def _check(detail: AssignmentDetail, language: Language, text: str) -> None:
    if language not in detail.spec.languages:
        raise InvalidInputError(f"{detail.title} does not accept {language}.", field="language")
    if "\0" in text:
        raise InvalidInputError("The text has a zero character, which a source cannot have.", field="text")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise InvalidInputError("The text has an unpaired surrogate, which is not a character.", field="text") from None
    if size > MAX_SOURCE_BYTES:
        raise TooLargeError(f"The draft has {size:,} bytes; at most {MAX_SOURCE_BYTES:,} are kept.")
