"""The front page, and the ladder of a course."""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse
from starlette.responses import Response

from server import db
from server.accounting import service as accounting
from server.courses import service as courses
from server.gradebook import service as gradebook
from server.http.identity import Anyone, Someone
from server.http.work import Work
from server.pages.pictures import staircase
from server.pages.progress import HOLDS, Hold, climb, late_days
from server.pages.rendering import render

router = APIRouter(include_in_schema=False)
_CLIMB = 260
"""Units of the highest step, of 960 across."""


@router.get("/")
def front(request: Request, who: Anyone, work: Work) -> Response:
    """Straight to the course of whoever is in one, a list for whoever is in several."""
    if who is None:
        return RedirectResponse("/login", status_code=HTTPStatus.SEE_OTHER)
    found = courses.courses_of(work, who.user)
    if len(found) == 1:
        return RedirectResponse(f"/courses/{quote(found[0].course.slug)}", status_code=HTTPStatus.SEE_OTHER)
    return render(request, "courses.html", memberships=found)


@router.get("/courses/{course}")
def course_page(request: Request, course: str, who: Someone, work: Work) -> Response:
    """The ladder: every rung that the viewer sees, how far they are, and what is due next."""
    now = db.now(work)
    member = courses.membership(work, who.user, course)
    standing = gradebook.standing(work, member.course, member.user.id)
    rungs = climb(work, member, courses.assignments_of(work, member, now), now, standing)
    days_left, days_total = late_days(standing)
    return render(
        request,
        "course.html",
        member=member,
        course=member.course,
        rungs=rungs,
        steps=staircase([rung.share for rung in rungs], height=_CLIMB),
        here=next((place for place, rung in enumerate(rungs) if rung.hold is Hold.open), None),
        words_of=HOLDS,
        total=sum(rung.points * rung.detail.row.weight for rung in rungs),
        maximum=sum(rung.maximum * rung.detail.row.weight for rung in rungs),
        days_left=days_left,
        days_total=days_total,
        accounts=accounting.last_check(work, member.course.id),
        accounted=accounting,
        due_next=min((rung for rung in rungs if rung.is_due(now)), key=lambda rung: rung.due_at, default=None),
    )
