"""Boards and standings for a spreadsheet."""

from __future__ import annotations

from server import csv_io
from server.leaderboard.board import Board
from server.leaderboard.standings import Standings

ENTRY = (
    "rank", "name", "ratio", "ratio_low", "ratio_high", "time_us", "time_low_us", "time_high_us", "limit_share",
    "throughput", "language", "at", "confirmations",
)  # fmt: skip
STANDING = ("rank", "name", "points", "firsts", "boards")


def board_table(board: Board) -> str:
    """The entries of a board, best first; no cell can be taken for a formula."""
    return csv_io.write(ENTRY, ([getattr(entry, column) for column in ENTRY] for entry in board.entries))


def standings_table(found: Standings) -> str:
    """Everybody who stands on a board, best first."""
    return csv_io.write(STANDING, ([getattr(person, column) for column in STANDING] for person in found.people))
