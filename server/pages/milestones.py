"""The steps to the reference kernel: what each is, and the source of those that are open to the reader."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse
from sqlalchemy.orm import Session
from starlette.responses import Response

from server import db
from server.courses import courses
from server.errors import NotFoundError
from server.http.identity import Someone
from server.http.work import Settings, Work
from server.leaderboard.comparands import kernels
from server.leaderboard.steps import steps
from server.models import Lane, Mode
from server.pages.highlight import listing
from server.pages.rendering import Slot, render, write
from server.submissions import submissions

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


@router.post("/courses/{course}/assignments/{slug}/milestones/profile", dependencies=[Slot])
def profile(
    *,
    request: Request,
    course: str,
    slug: str,
    who: Someone,
    config: Settings,
    file: Annotated[str, Form(max_length=200)],
    lane: Annotated[Lane, Form()],
) -> Response:
    """Staff have a milestone or a solution profiled, so that students can hold theirs against it; go to it."""

    def act(session: Session) -> str:
        member, now = courses.staff_of(session, who.user, course), db.now(session)
        detail = courses.assignment_of(session, member, slug, now)
        kernel = kernels(session, member, detail, now).get(file)
        if kernel is None:
            raise NotFoundError("There is no such kernel.")
        made = submissions.submit(
            session,
            membership=member,
            assignment=slug,
            mode=Mode.profile,
            lane=lane,
            language=kernel.language,
            filename=file.rpartition("/")[2],
            source=kernel.source.encode(),
            config=config,
            now=now,
            trace=request.state.trace,
        )
        return made.public_id

    return RedirectResponse(f"/submissions/{quote(write(request, act))}", status_code=HTTPStatus.SEE_OTHER)
