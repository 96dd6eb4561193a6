"""The leaderboard of an assignment on one lane; of a public course for anybody."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from autograder import languages as records
from autograder.contract import Lane, Language
from server import db
from server.errors import InvalidInputError, NotFoundError
from server.http.identity import Anyone
from server.http.work import Work
from server.leaderboard.board import Entry, is_practice
from server.leaderboard.limits import ranked_cases
from server.leaderboard.milestones import Baseline
from server.leaderboard.records import records_of
from server.leaderboard.shared_sources import shown_on
from server.leaderboard.viewer import Shown, Wish, looker, shown
from server.pages import labels
from server.pages.record_plot import record_plot
from server.pages.rendering import render
from server.pages.svg_geometry import RatioScale, ratio_scale

router = APIRouter(include_in_schema=False)
PATH = "/courses/{course}/assignments/{slug}/leaderboard"
_SCALE_WIDTH = 160


@router.get(PATH)
def leaderboard_page(
    *,
    request: Request,
    course: str,
    slug: str,
    who: Anyone,
    work: Work,
    lane: Annotated[str, Query()] = "",
    language: Annotated[str, Query()] = "",
    section: Annotated[str, Query(max_length=60)] = "",
    frozen: Annotated[bool, Query()] = False,
) -> Response:
    """Ranks with their intervals; milestones and the reference stand among them, where they belong."""
    looking, now = looker(work, who.user if who else None, course), db.now(work)
    wish = Wish(_lane(lane), _language(language), section or None, frozen)
    found = shown(work, looking, slug, wish, now)
    board = found.board
    records = records_of(work, assignment=found.detail.row, lane=board.lane, selection=board.selection)
    scale = _scale(board.entries, board.baselines)
    return render(
        request,
        "leaderboard.html",
        member=looking.member,
        course=looking.course,
        detail=found.detail,
        shown=found,
        board=board,
        looker=looking,
        rows=_rows(board.entries, board.baselines, scale),
        scale=scale,
        peers=sum(entry.rank == board.own.rank for entry in board.entries) if board.own else 0,
        shared=shown_on(work, looking, found.detail, board, now),
        records=records,
        plot=record_plot(records, end=found.frozen_since if found.is_frozen else now, zone=looking.course.timezone),
        tabs=_tabs(found),
        sizes=ranked_cases(found.detail.version, board.lane) if board.ranks else (),
        query=_query(found),
        badge=looking.course.public_leaderboards,
    )


def _rows(entries: Sequence[Entry], baselines: Sequence[Baseline], scale: RatioScale) -> list[dict[str, object]]:
    """Entries, milestones and the reference by ratio; of equals students first."""
    places = list(scale.intervals)
    rows: list[tuple[float, int, dict[str, object]]] = [
        (entry.ratio, 0, {"entry": entry, "baseline": None, "place": place})
        for entry, place in zip(entries, places[: len(entries)], strict=True)
    ]
    rows += [
        (item.ratio, 1, {"entry": None, "baseline": item, "place": place})
        for item, place in zip(baselines, places[len(entries) : -1], strict=True)
    ]
    rows.append((1.0, 2, {"entry": None, "baseline": None, "place": places[-1]}))
    return [row for _, _, row in sorted(rows, key=lambda row: row[:2])]


def _scale(entries: Sequence[Entry], baselines: Sequence[Baseline]) -> RatioScale:
    numbers = [(item.ratio_low, item.ratio, item.ratio_high) for item in entries]
    numbers += [(item.ratio_low, item.ratio, item.ratio_high) for item in baselines]
    numbers.append((1.0, 1.0, 1.0))
    return ratio_scale(numbers, width=_SCALE_WIDTH)


@dataclass(frozen=True)
class Tab:
    """A choice of what the board shows; `value` is as in the address, `""` for all, and `entries` are there."""

    label: str
    value: str
    current: bool
    entries: int | None = None


@dataclass(frozen=True)
class Tabs:
    """The choices of a board, each empty where there is nothing to choose."""

    lanes: tuple[Tab, ...] = ()
    languages: tuple[Tab, ...] = ()
    sections: tuple[Tab, ...] = ()


def _tabs(found: Shown) -> Tabs:
    board, here = found.board, found.entries.get(found.board.lane, {})
    chosen = board.selection.language
    languages = [
        Tab(labels.LANGUAGES[language], language, language is chosen, here.get(language, 0))
        for language in found.detail.spec.languages
        if records.of(language).loader(board.lane)
    ]
    if len(languages) > 1 and not is_practice(found.detail, board.lane):
        languages.insert(0, Tab("All", "", chosen is None))
    section = board.selection.section
    sections = [Tab("All", "", section is None), *(Tab(each, each, each == section) for each in found.sections)]
    return Tabs(
        lane_tabs(found.lanes, board.lane, found.entries),
        tuple(languages) if len(languages) > 1 else (),
        tuple(sections) if len(sections) > 1 else (),
    )


def lane_tabs(
    lanes: Sequence[Lane],
    current: Lane | None,
    entries: Mapping[Lane, Mapping[Language, int]],
    *,
    all_counted: bool = True,
) -> tuple[Tab, ...]:
    """The lanes to choose among; those without an entry say so, if all entries are counted."""
    return tuple(
        Tab(labels.LANES[lane], lane, lane is current, 0 if all_counted and not entries.get(lane) else None)
        for lane in (lanes if len(lanes) > 1 else ())
    )


def _query(found: Shown) -> str:
    """What is chosen, as the API and the export take it."""
    chosen = found.board.selection
    named = {"lane": found.board.lane, "language": chosen.language, "section": chosen.section}
    asked = {name: value for name, value in named.items() if value}
    return urlencode({**asked, "frozen": "true"} if found.is_frozen else asked)


def _lane(asked: str) -> Lane | None:
    if asked and asked not in list(Lane):
        raise NotFoundError("There is no such lane.")
    return Lane(asked) if asked else None


def _language(asked: str) -> Language | None:
    if asked and asked not in list(Language):
        raise InvalidInputError("There is no such language.", field="language")
    return Language(asked) if asked else None
