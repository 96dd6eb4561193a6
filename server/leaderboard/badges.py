"""What a badge says of a public board: its record, or the place of whoever has a pseudonym. Never a name."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.orm import Session

from autograder.contract import Lane
from server.errors import NotFoundError
from server.leaderboard.looking import Looker, Shown, Wish, public_course, shown
from server.leaderboard.service import Entry


@dataclass(frozen=True)
class Badge:
    """A badge.

    Attributes:
        title: of the assignment.
        entry: `None` where nobody stands on the board yet.
        of: how many stand on it.
        is_record: it is about the board's first, not about a person.
    """

    title: str
    lane: Lane
    entry: Entry | None
    of: int
    is_record: bool


def badge(
    session: Session, course: str, slug: str, now: datetime, *, lane: Lane | None = None, handle: str | None = None
) -> Badge:
    """The badge of a board's record, or of one person's place on it, as the public sees the board.

    Raises:
        NotFoundError: the course's boards are not public, there is no such board, or nobody with this pseudonym on it.
    """
    found = shown(session, Looker(public_course(session, course), None), slug, Wish(lane=lane), now)
    if not found.board.ranks:
        raise NotFoundError("There is no such leaderboard.")
    return Badge(
        title=found.detail.title,
        lane=found.board.lane,
        entry=_entry(found, handle),
        of=len(found.board.entries),
        is_record=handle is None,
    )


def _entry(found: Shown, handle: str | None) -> Entry | None:
    entries = found.board.entries
    if handle is None:
        return next(iter(entries), None)
    entry = next((entry for entry in entries if entry.handle == handle), None)
    if entry is None:
        raise NotFoundError("Nobody of this name stands on this leaderboard.")
    return entry
