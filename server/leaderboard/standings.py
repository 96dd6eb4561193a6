"""All boards of a course on one lane together: who leads where, and who has most rank points.

A place is worth `100 / rank` rank points: the first of a rung gets 100, the second 50, the tenth 10; who shares a rank
gets the same. Those of a rung are summed over the rungs, and have nothing to do with grades. Practice boards are ranked
in one language, boards that give points in all of them together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from sqlalchemy import select, union_all
from sqlalchemy.orm import Session

from autograder.contract import Lane, Language
from server import db
from server.courses.courses import AssignmentDetail
from server.grading.ranking import Boards, Selection, crowds, outline, ranks
from server.leaderboard.board import (
    chief_lane,
    crowds_of,
    frozen_at,
    is_practice,
    languages_of,
    practice_language,
)
from server.leaderboard.limits import CaseWork, limit_us, work_of
from server.leaderboard.viewer import Looker, details
from server.models import Enrolment, User

FIRST = 100.0
"""Rank points of the first place of a board."""
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
    """One board of the standings; `leaders` share its first rank, and `work` and `limit_us` are as a board's.

    Attributes:
        language: that of a practice board; `None` where all languages are ranked together.
    """

    detail: AssignmentDetail
    entries: int
    leaders: tuple[Leader, ...]
    frozen_since: datetime | None
    work: CaseWork | None = None
    limit_us: float | None = None
    language: Language | None = None


@dataclass(frozen=True)
class Standing:
    """One person over all boards.

    Attributes:
        rank: shared by those with the same points.
        firsts: how many boards they lead, alone or with others.
        boards: on how many they stand.
        points: their sum of rank points, rounded to a tenth.
    """

    rank: int
    name: str
    own: bool
    points: float
    firsts: int
    boards: int


@dataclass(frozen=True)
class Standings:
    """The boards of one lane, by rung, and everybody who stands on one of them, best first.

    Attributes:
        language: that of the lane's practice boards; `None` where it has none.
        languages: those that they are in.
        entries: how many there are on each lane in each language, on boards that are not frozen for the looker.
        has_frozen: there are boards whose entries are not counted there.
        details: the assignments whose boards the looker sees, on any lane.
    """

    lane: Lane | None
    lanes: tuple[Lane, ...]
    rungs: tuple[Rung, ...]
    people: tuple[Standing, ...]
    language: Language | None = None
    languages: tuple[Language, ...] = ()
    entries: Mapping[Lane, Mapping[Language, int]] = field(default_factory=dict)
    has_frozen: bool = False
    details: tuple[AssignmentDetail, ...] = ()

    @property
    def own(self) -> Standing | None:
        """The viewer's."""
        return next((person for person in self.people if person.own), None)


def worth(rank: int) -> float:
    """Rank points of a place."""
    return FIRST / rank


def standings(
    session: Session, who: Looker, now: datetime, lane: Lane | None = None, language: Language | None = None
) -> Standings:
    """The standings as they see them; without a lane, of the one that is used and gives points.

    Args:
        language: of practice boards; without one, that with most entries. Of other boards it says nothing.

    A frozen board counts as it is shown: for students and the public as it was, for staff as it is.
    """
    found = details(session, who, now)
    lanes = tuple(item for item in Lane if any(item in detail.board_lanes for detail in found))
    chosen = lane if lane in lanes else chief_lane(session, found)
    if chosen is None:
        return Standings(None, (), (), (), details=tuple(found))
    since = {detail.row.id: None if who.is_staff else frozen_at(detail.row, now) for detail in found}
    entries = crowds_of(session, [number for number, at in since.items() if at is None])
    boards = [detail for detail in found if chosen in detail.board_lanes]
    practice = [detail for detail in boards if is_practice(detail, chosen)]
    languages = languages_of(practice, chosen)
    if language not in languages:
        counted = _counted(session, {detail.row.id: since[detail.row.id] for detail in practice}, chosen)
        language = practice_language(practice, chosen, counted)
    spoken = {detail.row.id: language if detail in practice else None for detail in boards}
    boards = [detail for detail in boards if (only := spoken[detail.row.id]) is None or only in detail.spec.languages]
    places: dict[int, list[_Place]] = {}
    for only in {spoken[detail.row.id] for detail in boards}:
        numbers = [detail.row.id for detail in boards if spoken[detail.row.id] is only]
        places |= _places(session, {number: since[number] for number in numbers}, chosen, only)
    names = _names(session, who.course.id)
    rungs = []
    for detail in boards:
        here = places.get(detail.row.id, [])
        leaders = tuple(_leader(place, names, who.user_id) for place in here if place[1] == 1)
        work, limit = work_of(detail.version, chosen), limit_us(detail.version, chosen)
        since_here = frozen_at(detail.row, now)
        rungs.append(Rung(detail, len(here), leaders, since_here, work, limit, spoken[detail.row.id]))
    return Standings(
        chosen,
        lanes,
        tuple(rungs),
        _people(places.values(), names, who.user_id),
        language=language if practice else None,
        languages=languages,
        entries=entries,
        has_frozen=any(since.values()),
        details=tuple(found),
    )


def _counted(session: Session, since: Mapping[int, datetime | None], lane: Lane) -> dict[Language, int]:
    """How many entries these boards have on a lane in each language; a frozen one as it was when it froze."""
    live = [number for number, at in since.items() if at is None]
    asked = [crowds(Selection(), Boards(live, [lane]))] if live else []
    asked += [crowds(Selection(as_of=at), Boards([one], [lane])) for one, at in since.items() if at is not None]
    found: dict[Language, int] = {}
    for row in session.execute(union_all(*asked)) if asked else ():
        found[row.language] = found.get(row.language, 0) + row.people
    return found


def _places(
    session: Session, since: Mapping[int, datetime | None], lane: Lane, language: Language | None
) -> dict[int, list[_Place]]:
    """The places of each board, by assignment, best first; a frozen board's as they were when it froze."""
    chosen, live = Selection(language=language), [number for number, at in since.items() if at is None]
    asked = [outline(chosen, Boards(live, [lane]))] if live else []
    asked += [outline(replace(chosen, as_of=at), Boards([one], [lane])) for one, at in since.items() if at is not None]
    found: dict[int, list[_Entry]] = {}
    for query in asked:
        for assignment_id, _, user_id, spoken, _, *numbers in db.plain_rows(session, query):
            found.setdefault(assignment_id, []).append((user_id, spoken, *numbers))
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
