"""All leaderboards of a course together: who leads where, and who has most rank points."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from autograder.contract import Lane, Language
from server import db
from server.errors import NotFoundError
from server.http.identity import Anyone
from server.http.work import Work
from server.leaderboard.showcase import newest
from server.leaderboard.standings import FIRST, Standings, standings
from server.leaderboard.viewer import looker
from server.pages import labels
from server.pages.leaderboard import Tab, Tabs, lane_tabs
from server.pages.rendering import render

router = APIRouter(include_in_schema=False)
LEADERS_SHOWN = 3
"""More who share a first rank are counted."""


@router.get("/courses/{course}/standings")
def standings_page(
    *,
    request: Request,
    course: str,
    who: Anyone,
    work: Work,
    lane: Annotated[str, Query()] = "",
    language: Annotated[str, Query()] = "",
) -> Response:
    """The hall of fame, then everybody."""
    if lane and lane not in list(Lane):
        raise NotFoundError("There is no such lane.")
    if language and language not in list(Language):
        raise NotFoundError("There is no such language.")
    looking, now = looker(work, who.user if who else None, course), db.now(work)
    spoken = Language(language) if language else None
    found = standings(work, looking, now, Lane(lane) if lane else None, spoken)
    return render(
        request,
        "standings.html",
        member=looking.member,
        course=looking.course,
        looker=looking,
        standings=found,
        newest=newest(work, found.details, now, staff=looking.is_staff),
        tabs=Tabs(
            lane_tabs(found.lanes, found.lane, found.entries, all_counted=not found.has_frozen), language_tabs(found)
        ),
        query=urlencode({name: value for name, value in (("lane", found.lane), ("language", found.language)) if value}),
        first=FIRST,
        leaders_shown=LEADERS_SHOWN,
    )


def language_tabs(found: Standings) -> tuple[Tab, ...]:
    """The languages that practice boards can be shown in."""
    if len(found.languages) < 2 or found.lane is None:  # noqa: PLR2004  # there is nothing to choose
        return ()
    # What is counted is of all the lane's boards, and of none that is frozen.
    all_counted = not found.has_frozen and all(rung.language for rung in found.rungs)
    here = found.entries.get(found.lane, {})
    return tuple(
        Tab(labels.LANGUAGES[each], each, each is found.language, here.get(each, 0) if all_counted else None)
        for each in found.languages
    )
