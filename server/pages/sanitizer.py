"""A sanitizer run: asked for from a submission's page; what it found stands on its own submission's page."""

from __future__ import annotations

from datetime import UTC, datetime
from http import HTTPStatus
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse
from starlette.responses import Response

from server.courses import courses
from server.http.identity import Someone
from server.http.turns import Turn
from server.http.work import Settings, Work
from server.models import AssignmentVersion, Mode
from server.pages.profile import handed_in
from server.pages.rendering import Slot, render, write
from server.submissions import inspections, profiles, submissions

router = APIRouter(include_in_schema=False)


@router.post("/submissions/{public_id}/sanitizer", dependencies=[Slot])
def ask(
    *, request: Request, public_id: str, who: Someone, config: Settings, case: Annotated[str, Form(max_length=120)] = ""
) -> Response:
    """Ask for a sanitizer run of this source, and go to it."""
    made = write(request, handed_in(request, who.user, public_id, Mode.sanitize, case=case, config=config))
    return RedirectResponse(f"/submissions/{quote(made)}", status_code=HTTPStatus.SEE_OTHER)


@router.get("/submissions/{public_id}/sanitizer", dependencies=[Turn])
def sanitizer_page(request: Request, public_id: str, who: Someone, work: Work) -> Response:
    """How to ask for one, or why nobody can."""
    submission = submissions.find(work, who.user, public_id)
    assignment, spec = submission.assignment, courses.spec_of(work.get_one(AssignmentVersion, submission.version_id))
    result = profiles.result_of(work, submission)
    failed = result.told_case if result is not None else ""
    cases = inspections.cases_of(spec, submission.lane)
    return render(
        request,
        "sanitizer.html",
        submission=submission,
        assignment=assignment,
        course=assignment.course,
        member=courses.membership(work, who.user, assignment.course.slug),
        refused=inspections.why_not(
            work, submission.lane, Mode.sanitize, course_id=submission.course_id, now=datetime.now(UTC)
        ),
        cases=cases,
        failed=failed if failed in cases else "",
        others=profiles.of_source(work, submission, Mode.sanitize),
    )
