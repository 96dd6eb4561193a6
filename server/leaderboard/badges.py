"""What a badge says of a public board: its record, or the place of whoever has a pseudonym. Never a name."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy.orm import Session

from autograder.contract import Lane
from server.errors import NotFoundError
from server.leaderboard.board import Board, Entry
from server.leaderboard.board import board as board_of
from server.leaderboard.viewer import Looker, Shown, Wish, public_course, shown


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


def badge(session: Session, course: str, slug: str, now: datetime, wish: Wish, *, handle: str | None = None) -> Badge:
    """The badge of a board's record, or of one person's place on it, as the public sees the board.

    Raises:
        NotFoundError: the course's boards are not public, there is no such board, or nobody with this pseudonym on it.
    """
    found = shown(session, Looker(public_course(session, course), None), slug, wish, now)
    if not found.board.ranks:
        raise NotFoundError("There is no such leaderboard.")
    boards = _boards(session, found, wish)
    board, entry = _record(boards) if handle is None else _place(boards, handle)
    return Badge(
        title=found.detail.title,
        lane=board.lane,
        entry=entry,
        of=len(board.entries),
        is_record=handle is None,
    )


def _boards(session: Session, found: Shown, wish: Wish) -> list[Board]:
    """The board that was found, and where that is of a language nobody asked for, those of the others after it.

    Those with more entries come first, as the one that was found does.
    """
    board = found.board
    if wish.language is not None or board.selection.language is None:
        return [board]
    crowds = found.entries.get(board.lane, {})
    others = sorted(crowds.keys() - {board.selection.language}, key=lambda language: (-crowds[language], language))
    chosen = (replace(board.selection, language=language) for language in others)
    row = found.detail.row
    return [board, *(board_of(session, assignment=row, lane=board.lane, selection=each) for each in chosen)]


def _record(boards: list[Board]) -> tuple[Board, Entry | None]:
    """The fastest on any of them: more entries in another language make no record slower."""
    led = [board for board in boards if board.entries]
    board = min(led, key=lambda board: board.entries[0].ratio, default=boards[0])
    return board, next(iter(board.entries), None)


def _place(boards: list[Board], handle: str) -> tuple[Board, Entry]:
    """On the first of them where somebody with this pseudonym stands."""
    for board in boards:
        for entry in board.entries:
            if entry.handle == handle:
                return board, entry
    raise NotFoundError("Nobody with this name is on this leaderboard.")
