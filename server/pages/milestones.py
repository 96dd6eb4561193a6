"""The steps to the reference kernel: what each is, and the source of those that are open to the reader."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from server import db
from server.courses import courses
from server.errors import NotFoundError
from server.http.identity import Someone
from server.http.work import Work
from server.leaderboard.steps import steps
from server.pages.highlight import listing
from server.pages.rendering import render

router = APIRouter(include_in_schema=False)


@router.get("/courses/{course}/assignments/{slug}/milestones")
def milestones_page(request: Request, course: str, slug: str, who: Someone, work: Work) -> Response:
    """The page."""
    member = courses.membership(work, who.user, course)
    now = db.now(work)
    detail = courses.assignment_of(work, member, slug, now)
    found = steps(work, member, detail, now)
    if not found:
        raise NotFoundError("This assignment has no milestones.")
    return render(
        request,
        "milestones.html",
        member=member,
        course=member.course,
        detail=detail,
        steps=[(step, listing(step.source, step.language) if step.opened else None) for step in found],
    )
