"""The staff's solutions, for staff, and for students once they are released."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from server import db
from server.courses import courses
from server.courses.solutions import are_released, solutions
from server.http.identity import Someone
from server.http.work import Work
from server.pages.highlight import listing
from server.pages.rendering import render

router = APIRouter(include_in_schema=False)


@router.get("/courses/{course}/assignments/{slug}/solutions")
def solutions_page(request: Request, course: str, slug: str, who: Someone, work: Work) -> Response:
    """The page."""
    member = courses.membership(work, who.user, course)
    now = db.now(work)
    detail = courses.assignment_of(work, member, slug, now)
    found = solutions(work, member, detail, now)
    return render(
        request,
        "solutions.html",
        member=member,
        course=member.course,
        detail=detail,
        solutions=[(one, listing(one.source, one.language)) for one in found],
        for_staff_alone=member.is_staff and not are_released(detail, now),
    )
