"""The leaderboard of an assignment on one lane."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from autograder.contract import Lane
from server.courses import service as courses
from server.errors import NotFoundError
from server.http.identity import Someone
from server.http.work import Work
from server.leaderboard import service as leaderboard
from server.pages.pictures import ratio_scale
from server.pages.rendering import render

router = APIRouter(include_in_schema=False)
PATH = "/courses/{course}/assignments/{slug}/leaderboard"


@router.get(PATH)
def leaderboard_page(
    *, request: Request, course: str, slug: str, who: Someone, work: Work, lane: Annotated[str, Query()] = ""
) -> Response:
    """Ranks with their intervals; the reference stands among them, where it belongs."""
    member = courses.membership(work, who.user, course)
    detail = courses.assignment_of(work, member, slug)
    lanes = leaderboard.lanes_with_board(detail.version)
    chosen = _lane(lane, lanes)
    board = leaderboard.board(work, assignment=detail.row, lane=chosen, viewer_id=who.user.id)
    entries = board.entries
    scale = ratio_scale([(entry.ratio_low, entry.ratio, entry.ratio_high) for entry in entries], width=200)
    return render(
        request,
        "leaderboard.html",
        member=member,
        course=member.course,
        detail=detail,
        lanes=lanes,
        board=board,
        rows=list(zip(entries, scale.intervals, strict=True)),
        scale=scale,
        reference_at=sum(entry.ratio < 1.0 for entry in entries),
    )


def _lane(asked: str, lanes: tuple[Lane, ...]) -> Lane:
    if not asked:
        return next(iter(lanes), Lane.cpu)
    if asked not in list(Lane):
        raise NotFoundError("There is no such lane.")
    return Lane(asked)
