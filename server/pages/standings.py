"""All leaderboards of a course together: who leads where, and who has most points of leaderboards."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from autograder.contract import Lane
from server import db
from server.errors import NotFoundError
from server.http.identity import Anyone
from server.http.work import Work
from server.leaderboard.looking import looker
from server.leaderboard.standings import FIRST, standings
from server.pages.rendering import render

router = APIRouter(include_in_schema=False)
LEADERS_SHOWN = 3
"""More who share a first rank are counted."""


@router.get("/courses/{course}/standings")
def standings_page(
    *, request: Request, course: str, who: Anyone, work: Work, lane: Annotated[str, Query()] = ""
) -> Response:
    """The hall of fame, then everybody."""
    if lane and lane not in list(Lane):
        raise NotFoundError("There is no such lane.")
    looking = looker(work, who.user if who else None, course)
    found = standings(work, looking, db.now(work), Lane(lane) if lane else None)
    return render(
        request,
        "standings.html",
        member=looking.member,
        course=looking.course,
        looker=looking,
        standings=found,
        first=FIRST,
        leaders_shown=LEADERS_SHOWN,
    )
