"""All boards of a course on one lane together: who leads where, and who has most points of leaderboards.

A place is worth `100 / rank` points: the first of a rung gets 100, the second 50, the tenth 10; who shares a rank gets
the same. Points of a rung are summed over the rungs, and have nothing to do with grades.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from autograder.contract import Lane, Language
from server import db
from server.courses.service import AssignmentDetail
from server.grading.ranked import EVERYTHING, Boards, Selection, outline, ranks
from server.leaderboard.looking import Looker, details
from server.leaderboard.service import chief_lane, frozen_at, lanes_with_board
from server.models import Enrolment, User

FIRST = 100.0
"""Points of the first place of a board."""
_Entry = tuple[int, str, float, float, float, float]
"""Whose it is, its language, ratio, the ratio's ends, and time in µs; plain, since there are ten thousand."""
_Place = tuple[int, int, _Entry]
"""Who, their rank, and with what."""


@dataclass(frozen=True)
class Leader:
    """Who is first on a board, alone or with others; the numbers are as an entry's."""

    name: str
    own: bool
    ratio: float
    ratio_low: float
    ratio_high: float
    time_us: float
    language: Language


@dataclass(frozen=True)
class Rung:
    """One board of the standings; `leaders` share its first rank."""

    detail: AssignmentDetail
    entries: int
    leaders: tuple[Leader, ...]
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
    places, names = _places(session, who, boards, chosen, now), _names(session, who.course.id)
    rungs = []
    for detail in boards:
        here = places.get(detail.row.id, [])
        leaders = tuple(_leader(place, names, who.user_id) for place in here if place[1] == 1)
        rungs.append(Rung(detail, len(here), leaders, frozen_at(detail.row, now)))
    return Standings(chosen, lanes, tuple(rungs), _people(places.values(), names, who.user_id))


def _places(
    session: Session, who: Looker, boards: Sequence[AssignmentDetail], lane: Lane, now: datetime
) -> dict[int, list[_Place]]:
    """The places of each board, by assignment, best first; a frozen board's as they were when it froze."""
    since = {detail.row.id: None if who.is_staff else frozen_at(detail.row, now) for detail in boards}
    live = [number for number, at in since.items() if at is None]
    asked = [outline(EVERYTHING, Boards(live, [lane]))] if live else []
    asked += [outline(Selection(as_of=at), Boards([one], [lane])) for one, at in since.items() if at is not None]
    found: dict[int, list[_Entry]] = {}
    for query in asked:
        for assignment_id, _, user_id, language, _, *numbers in db.plain_rows(session, query):
            found.setdefault(assignment_id, []).append((user_id, language, *numbers))
    return {assignment_id: _ranked(entries) for assignment_id, entries in found.items()}


def _ranked(entries: Sequence[_Entry]) -> list[_Place]:
    places = ranks([(low, high) for _, _, _, low, high, _ in entries])
    return [(entry[0], rank, entry) for entry, rank in zip(entries, places, strict=True)]


def _names(session: Session, course_id: int) -> dict[int, str]:
    """As whom everybody of the course stands on boards."""
    query = select(Enrolment.user_id, Enrolment.show_name, User.name, User.handle).join(
        User, User.id == Enrolment.user_id
    )
    rows = session.execute(query.where(Enrolment.course_id == course_id))
    return {user_id: name if shown else handle for user_id, shown, name, handle in rows}


def _leader(place: _Place, names: Mapping[int, str], viewer_id: int | None) -> Leader:
    user_id, _, (_, language, ratio, low, high, time_us) = place
    return Leader(
        name=names[user_id],
        own=user_id == viewer_id,
        ratio=ratio,
        ratio_low=low,
        ratio_high=high,
        time_us=time_us,
        language=Language(language),
    )


def _people(
    boards: Iterable[Sequence[_Place]], names: Mapping[int, str], viewer_id: int | None
) -> tuple[Standing, ...]:
    theirs: dict[int, list[int]] = defaultdict(list)
    for places in boards:
        for user_id, rank, _ in places:
            theirs[user_id].append(rank)
    sums = [(round(sum(worth(rank) for rank in mine), 1), user_id) for user_id, mine in theirs.items()]
    sums.sort(key=lambda item: (-item[0], names[item[1]]))
    shared = ranks([(-points, -points) for points, _ in sums])
    return tuple(
        Standing(
            rank=rank,
            name=names[user_id],
            own=user_id == viewer_id,
            points=points,
            firsts=theirs[user_id].count(1),
            boards=len(theirs[user_id]),
        )
        for rank, (points, user_id) in zip(shared, sums, strict=True)
    )
