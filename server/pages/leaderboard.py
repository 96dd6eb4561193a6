"""The leaderboard of an assignment on one lane; of a public course for anybody."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from autograder.contract import Lane, Language
from server import db
from server.errors import InvalidInputError, NotFoundError
from server.http.identity import Anyone
from server.http.work import Work
from server.leaderboard.looking import Shown, Wish, looker, shown
from server.leaderboard.milestones import Baseline
from server.leaderboard.records import records_of
from server.leaderboard.service import Entry
from server.pages.pictures import RatioScale, ratio_scale
from server.pages.record_plot import record_plot
from server.pages.rendering import render

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
        records=records,
        plot=record_plot(records, end=found.frozen_since if found.is_frozen else now, zone=looking.course.timezone),
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
        for item, place in zip(baselines, places[len(entries) :], strict=True)
    ]
    rows.append((1.0, 2, {"entry": None, "baseline": None, "place": None}))
    return [row for _, _, row in sorted(rows, key=lambda row: row[:2])]


def _scale(entries: Sequence[Entry], baselines: Sequence[Baseline]) -> RatioScale:
    numbers = [(item.ratio_low, item.ratio, item.ratio_high) for item in entries]
    numbers += [(item.ratio_low, item.ratio, item.ratio_high) for item in baselines]
    return ratio_scale(numbers, width=_SCALE_WIDTH)


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
