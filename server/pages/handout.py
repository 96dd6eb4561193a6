"""The handout of a public course's assignment, for who is not in the course; its members have the assignment's page."""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse
from starlette.responses import Response

from server import db
from server.errors import NotFoundError
from server.http.identity import Anyone
from server.http.work import Work
from server.leaderboard.viewer import detail_of, looker
from server.pages.help import sections
from server.pages.markdown import handout_html
from server.pages.rendering import render

router = APIRouter(include_in_schema=False)
ASSIGNMENT = "/courses/{course}/assignments/{slug}"


@router.get(f"{ASSIGNMENT}/handout")
def handout_page(request: Request, course: str, slug: str, who: Anyone, work: Work) -> Response:
    """What students are given to read of an assignment that is open: handout, arguments and public cases."""
    looking = looker(work, who.user if who else None, course)
    if looking.member is not None or not looking.course.public_handouts:
        if looking.member is None and who is not None:
            raise NotFoundError("There is no such handout.")
        # Whoever is not logged in is asked to there.
        page = ASSIGNMENT.format(course=quote(course), slug=quote(slug))
        return RedirectResponse(page, status_code=HTTPStatus.SEE_OTHER)
    detail = detail_of(work, looking, slug, db.now(work))
    db.let_go(work)
    return render(
        request,
        "handout.html",
        course=looking.course,
        detail=detail,
        spec=detail.spec,
        handout=handout_html(detail.handout),
        sections=sections(detail.handout),
    )
