"""Leaderboards and standings, as JSON and for a spreadsheet; those of a public course for anybody."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic import Field

from autograder.contract import Lane, Language
from server import db
from server.api.responses import errors
from server.api.schemas import Read
from server.http.attachments import attachment
from server.http.identity import Anyone
from server.http.work import Work
from server.leaderboard import standings as all_boards
from server.leaderboard import tables
from server.leaderboard.board import Entry
from server.leaderboard.milestones import Baseline
from server.leaderboard.records import Record, records_of
from server.leaderboard.shared_sources import SharedEntry, shared_entry, shown_on
from server.leaderboard.standings import Leader, Standings
from server.leaderboard.viewer import Looker, Shown, Wish, detail_of, looker, shown
from server.models import MilestoneKind

router = APIRouter(tags=["leaderboard"])

ChosenLane = Annotated[
    Lane | None, Query(description="The device class; where it is left out, one that is used and gives points.")
]
ChosenLanguage = Annotated[
    Language | None,
    Query(
        description="Only results in it; ranks are among them. Where it is left out: all, "
        "or on a practice lane the language with most entries."
    ),
]
ChosenSection = Annotated[
    str, Query(max_length=60, description="Only students of it: any for staff, one's own for students.")
]
AsFrozen = Annotated[bool, Query(description="Staff: what a freeze leaves students to see.")]
_PATH = "/courses/{course}/assignments/{slug}/leaderboard"
_STANDINGS = "/courses/{course}/standings"
_TABLE: dict[int | str, dict[str, Any]] = {200: {"content": {"text/csv": {}}, "description": "The table."}}


class EntryRead(Read):
    """One student's place."""

    rank: Annotated[int, Field(description="Shared by entries whose intervals overlap that of their group's first.")]
    name: Annotated[str, Field(description="The name if they chose to show it, otherwise their pseudonym.")]
    own: bool
    ratio: Annotated[float, Field(description="Submission / reference; below 1 is faster than the reference.")]
    ratio_low: float
    ratio_high: float
    confirmations: Annotated[int, Field(description="How often it was graded once more, with other seeds, and passed.")]
    time_us: float
    time_low_us: float | None
    time_high_us: float | None
    limit_share: Annotated[float | None, Field(description="The device's limit by its data sheet, over that time.")]
    throughput: Annotated[
        float | None,
        Field(description="The work that the exercise needs over that time, in 1e12 `work_unit` a second."),
    ]
    language: Language
    at: datetime
    submission: Annotated[str | None, Field(description="Shown to its owner and to staff.")]
    shared: Annotated[
        str | None, Field(description="Where its source is shared: `GET …/leaderboard/entries/{entry}` has it.")
    ] = None

    @classmethod
    def of(cls, entry: Entry, *, staff: bool, shared: str | None) -> EntryRead:
        """The entry, without its submission for others than its owner and staff."""
        read = cls.model_validate(entry).model_copy(update={"shared": shared})
        return read if staff or entry.own else read.model_copy(update={"submission": None})


class BaselineRead(Read):
    """A milestone: a kernel of the course's own, graded as everybody's are."""

    name: str
    kind: MilestoneKind
    language: Language
    ratio: float
    ratio_low: float
    ratio_high: float
    time_us: float
    at: datetime

    @classmethod
    def of(cls, baseline: Baseline) -> BaselineRead:
        """The milestone."""
        return cls.model_validate(baseline)


class RecordRead(Read):
    """A result that was faster than all before it."""

    at: datetime
    name: str
    language: Language
    ratio: float
    time_us: float

    @classmethod
    def of(cls, record: Record) -> RecordRead:
        """The record."""
        return cls.model_validate(record)


class BoardRead(Read):
    """A leaderboard."""

    course: str
    assignment: str
    title: str
    lane: Lane
    version: Annotated[int, Field(description="The current one; earlier ones stand if graded the same way.")]
    ranks: Annotated[bool, Field(description="Whether the lane has a leaderboard.")]
    practice: Annotated[bool, Field(description="Whether its times are practice and give no points.")]
    language: Annotated[Language | None, Field(description="Only results in it are here; null: in all languages.")]
    work_unit: Annotated[str | None, Field(description="What the throughput counts: `B` or `FLOP`.")]
    limit_us: Annotated[float | None, Field(description="The device's limit by its data sheet, in microseconds.")]
    frozen_since: Annotated[datetime | None, Field(description="Students see what it was then.")]
    as_of: Annotated[datetime | None, Field(description="Only what was handed in by then is here.")]
    entries: list[EntryRead]
    milestones: list[BaselineRead]
    records: Annotated[list[RecordRead], Field(description="How the record came down, oldest first.")]

    @classmethod
    def of(cls, found: Shown, records: tuple[Record, ...], who: Looker, shared: Mapping[str, str]) -> BoardRead:
        """The board of this assignment as they see it."""
        return cls(
            course=who.course.slug,
            assignment=found.detail.slug,
            title=found.detail.title,
            lane=found.board.lane,
            version=found.board.version,
            ranks=found.board.ranks,
            practice=found.board.practice,
            language=found.board.selection.language,
            work_unit=found.board.work.unit if found.board.work else None,
            limit_us=found.board.limit_us,
            frozen_since=found.frozen_since,
            as_of=found.board.selection.as_of,
            entries=[
                EntryRead.of(entry, staff=who.is_staff, shared=shared.get(entry.submission))
                for entry in found.board.entries
            ],
            milestones=[BaselineRead.of(item) for item in found.board.baselines],
            records=[RecordRead.of(item) for item in records],
        )


class SharedEntryRead(Read):
    """An entry whose source is shared."""

    name: Annotated[str, Field(description="The name if they chose to show it, otherwise their pseudonym.")]
    lane: Lane
    language: Language
    at: datetime
    ratio: float
    ratio_low: float
    ratio_high: float
    time_us: float
    note: Annotated[str, Field(description="Its author's, as plain text.")]
    source: str

    @classmethod
    def of(cls, entry: SharedEntry) -> SharedEntryRead:
        """The entry."""
        return cls.model_validate(entry)


class LeaderRead(Read):
    """Who stands first on a board, alone or with others."""

    name: str
    own: bool
    ratio: float
    time_us: float
    language: Language

    @classmethod
    def of(cls, leader: Leader) -> LeaderRead:
        """The leader."""
        return cls.model_validate(leader)


class RungRead(Read):
    """One board of the standings."""

    assignment: str
    title: str
    rung: int
    entries: int
    frozen_since: datetime | None
    leaders: list[LeaderRead]


class StandingRead(Read):
    """One person over all boards."""

    rank: Annotated[int, Field(description="Shared by those with the same points.")]
    name: str
    own: bool
    points: Annotated[
        float, Field(description="Rank points: 100 / rank for each board, summed; nothing to do with grades.")
    ]
    firsts: Annotated[int, Field(description="How many boards they lead, alone or with others.")]
    boards: int


class StandingsRead(Read):
    """All boards of a course on one lane."""

    course: str
    lane: Lane | None
    language: Annotated[Language | None, Field(description="Of a practice lane's standings; null: all languages.")]
    rungs: list[RungRead]
    people: list[StandingRead]

    @classmethod
    def of(cls, found: Standings, who: Looker) -> StandingsRead:
        """The standings as they see them."""
        rungs = [
            RungRead(
                assignment=rung.detail.slug,
                title=rung.detail.title,
                rung=rung.detail.row.rung,
                entries=rung.entries,
                frozen_since=rung.frozen_since,
                leaders=[LeaderRead.of(leader) for leader in rung.leaders],
            )
            for rung in found.rungs
        ]
        people = [StandingRead.model_validate(person) for person in found.people]
        return cls(course=who.course.slug, lane=found.lane, language=found.language, rungs=rungs, people=people)


@router.get(_PATH, responses=errors(401, 404, 422), summary="Leaderboard")
def read_leaderboard(
    *,
    course: str,
    slug: str,
    who: Anyone,
    work: Work,
    lane: ChosenLane = None,
    language: ChosenLanguage = None,
    section: ChosenSection = "",
    frozen: AsFrozen = False,
) -> BoardRead:
    """Every student's best valid result on one lane, by ratio to the reference."""
    looking = looker(work, who.user if who else None, course)
    now = db.now(work)
    found = shown(work, looking, slug, Wish(lane, language, section, frozen), now)
    records = records_of(work, assignment=found.detail.row, lane=found.board.lane, selection=found.board.selection)
    shared = shown_on(work, looking, found.detail, found.board, now)
    return BoardRead.of(found, records if found.board.ranks else (), looking, shared)


@router.get(f"{_PATH}/entries/{{entry}}", responses=errors(401, 404), summary="The shared source of an entry")
def read_shared_entry(*, course: str, slug: str, entry: str, who: Anyone, work: Work) -> SharedEntryRead:
    """Its author's note and the source; shared by its author or by staff, and shown once the assignment has closed."""
    looking, now = looker(work, who.user if who else None, course), db.now(work)
    return SharedEntryRead.of(shared_entry(work, looking, detail_of(work, looking, slug, now), entry, now))


@router.get(
    f"{_PATH}.csv",
    response_class=Response,
    responses={**_TABLE, **errors(401, 404, 422)},
    summary="Leaderboard for a spreadsheet",
)
def export_leaderboard(
    *,
    course: str,
    slug: str,
    who: Anyone,
    work: Work,
    lane: ChosenLane = None,
    language: ChosenLanguage = None,
    section: ChosenSection = "",
    frozen: AsFrozen = False,
) -> Response:
    """The same table as comma-separated values; no cell can be taken for a formula."""
    looking = looker(work, who.user if who else None, course)
    found = shown(work, looking, slug, Wish(lane, language, section, frozen), db.now(work))
    return _csv(tables.board_table(found.board), f"{found.detail.slug}-{found.board.lane}")


@router.get(_STANDINGS, responses=errors(401, 404, 422), summary="Standings")
def read_standings(
    *, course: str, who: Anyone, work: Work, lane: ChosenLane = None, language: ChosenLanguage = None
) -> StandingsRead:
    """All boards of the course on one lane: who leads each of them, and everybody's rank points."""
    looking = looker(work, who.user if who else None, course)
    return StandingsRead.of(all_boards.standings(work, looking, db.now(work), lane, language), looking)


@router.get(
    f"{_STANDINGS}.csv",
    response_class=Response,
    responses={**_TABLE, **errors(401, 404, 422)},
    summary="Standings for a spreadsheet",
)
def export_standings(
    *, course: str, who: Anyone, work: Work, lane: ChosenLane = None, language: ChosenLanguage = None
) -> Response:
    """Everybody's rank points as comma-separated values."""
    looking = looker(work, who.user if who else None, course)
    found = all_boards.standings(work, looking, db.now(work), lane, language)
    return _csv(tables.standings_table(found), f"{looking.course.slug}-standings")


def _csv(text: str, name: str) -> Response:
    return Response(text, media_type="text/csv; charset=utf-8", headers=attachment(f"{name}.csv"))
