"""All boards of a course on one lane together: who leads where, and who has most points of leaderboards.

A place is worth `100 / rank` points: the first of a rung gets 100, the second 50, the tenth 10; who shares a rank gets
the same. Points of a rung are summed over the rungs, and have nothing to do with grades.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from sqlalchemy import and_, or_
from sqlalchemy.orm import Session

from autograder.contract import Lane
from server.courses.service import AssignmentDetail
from server.grading.ranked import EVERYTHING, best, ranks
from server.leaderboard.looking import Looker, details
from server.leaderboard.service import Entry, chief_lane, entries_of, frozen_at, lanes_with_board
from server.models import Submission

FIRST = 100.0
"""Points of the first place of a board."""


@dataclass(frozen=True)
class Rung:
    """One board of the standings; `leaders` share its first rank."""

    detail: AssignmentDetail
    entries: int
    leaders: tuple[Entry, ...]
    frozen_since: datetime | None


@dataclass(frozen=True)
class Standing:
    """One person over all boards.

    Attributes:
        rank: shared by those with the same points.
        firsts: how many boards they lead, alone or with others.
        boards: on how many they stand.
        points: their sum, rounded to a tenth.
    """

    rank: int
    name: str
    own: bool
    points: float
    firsts: int
    boards: int


@dataclass(frozen=True)
class Standings:
    """The boards of one lane, by rung, and everybody who stands on one of them, best first."""

    lane: Lane | None
    lanes: tuple[Lane, ...]
    rungs: tuple[Rung, ...]
    people: tuple[Standing, ...]

    @property
    def own(self) -> Standing | None:
        """The viewer's."""
        return next((person for person in self.people if person.own), None)


def worth(rank: int) -> float:
    """Points of a place."""
    return FIRST / rank


def standings(session: Session, who: Looker, now: datetime, lane: Lane | None = None) -> Standings:
    """The standings as they see them; without a lane, of the one that is used and gives points.

    A frozen board counts as it is shown: for students and the public as it was, for staff as it is.
    """
    found = details(session, who, now)
    lanes = tuple(item for item in Lane if any(item in lanes_with_board(detail) for detail in found))
    chosen = lane if lane in lanes else chief_lane(session, found)
    if chosen is None:
        return Standings(None, (), (), ())
    boards = [detail for detail in found if chosen in lanes_with_board(detail)]
    entries = _entries(session, who, boards, chosen, now)
    rungs = tuple(_rung(detail, entries.get(detail.row.id, ()), now) for detail in boards)
    return Standings(chosen, lanes, rungs, _people(entries.values()))


def _entries(
    session: Session, who: Looker, boards: Sequence[AssignmentDetail], lane: Lane, now: datetime
) -> dict[int, tuple[Entry, ...]]:
    """The entries of each board, by assignment, in one query; a frozen board's stop where it froze."""
    if not boards:
        return {}
    since = {detail.row.id: None if who.is_staff else frozen_at(detail.row, now) for detail in boards}
    live = Submission.assignment_id.in_([number for number, at in since.items() if at is None])
    frozen = [
        and_(Submission.assignment_id == number, Submission.uploaded_at <= at)
        for number, at in since.items()
        if at is not None
    ]
    rows = session.execute(best(EVERYTHING, Submission.lane == lane, or_(live, *frozen))).all()
    grouped = groupby(rows, key=lambda row: row.assignment_id)
    return {number: entries_of(list(group), who.user_id) for number, group in grouped}


def _rung(detail: AssignmentDetail, entries: Sequence[Entry], now: datetime) -> Rung:
    leaders = tuple(entry for entry in entries if entry.rank == 1)
    return Rung(detail, len(entries), leaders, frozen_at(detail.row, now))


def _people(boards: Iterable[Sequence[Entry]]) -> tuple[Standing, ...]:
    theirs: dict[int, list[Entry]] = defaultdict(list)
    for entries in boards:
        for entry in entries:
            theirs[entry.user_id].append(entry)
    sums = [(round(sum(worth(entry.rank) for entry in mine), 1), mine) for mine in theirs.values()]
    sums.sort(key=lambda item: (-item[0], item[1][0].name))
    places = ranks([(-points, -points) for points, _ in sums])
    return tuple(
        Standing(
            rank=rank,
            name=mine[0].name,
            own=mine[0].own,
            points=points,
            firsts=sum(entry.rank == 1 for entry in mine),
            boards=len(mine),
        )
        for rank, (points, mine) in zip(places, sums, strict=True)
    )
