"""A profile: asked for from a submission's page, shown on a page of its own, with its files."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import RedirectResponse
from sqlalchemy.orm import Session
from starlette.responses import Response

from autograder.profile_changes import GROUPS, Changes, Row, shown
from server import db
from server.config import Config
from server.courses import courses
from server.http.attachments import attachment
from server.http.identity import Someone
from server.http.turns import Turn
from server.http.work import Settings, Work
from server.leaderboard.comparands import compare
from server.models import AssignmentVersion, Mode, User
from server.pages import profile_view
from server.pages.highlight import listing
from server.pages.rendering import Slot, render, write
from server.submissions import inspections, profiles, submissions

router = APIRouter(include_in_schema=False)


@router.post("/submissions/{public_id}/profile", dependencies=[Slot])
def ask(
    *, request: Request, public_id: str, who: Someone, config: Settings, case: Annotated[str, Form(max_length=120)] = ""
) -> Response:
    """Ask for a profile of this source, and go to it."""
    made = write(request, handed_in(request, who.user, public_id, Mode.profile, case=case, config=config))
    return RedirectResponse(f"/submissions/{quote(made)}", status_code=HTTPStatus.SEE_OTHER)


def handed_in(
    request: Request, user: User, public_id: str, mode: Mode, *, case: str, config: Config
) -> Callable[[Session], str]:
    """What hands in the source of a submission once more, to be looked at with a tool, and says its ID.

    Args:
        public_id: the submission's.
        case: as of `submissions.submit`.
    """

    def act(session: Session) -> str:
        found = submissions.find(session, user, public_id)
        member = courses.membership(session, user, found.assignment.course.slug)
        made = submissions.submit(
            session,
            membership=member,
            assignment=found.assignment.slug,
            mode=mode,
            lane=found.lane,
            language=found.language,
            filename=found.filename,
            source=submissions.source_of(session, found),
            config=config,
            now=db.now(session),
            trace=request.state.trace,
            case=case,
        )
        return made.public_id

    return act


@router.get("/submissions/{public_id}/profile", dependencies=[Turn])
def profile_page(
    request: Request, public_id: str, who: Someone, work: Work, against: Annotated[str, Query(max_length=200)] = ""
) -> Response:
    """What was found; before there is anything, why there is none, and how to ask for one."""
    submission = submissions.find(work, who.user, public_id)
    assignment, spec = submission.assignment, courses.spec_of(work.get_one(AssignmentVersion, submission.version_id))
    result = profiles.result_of(work, submission) if submission.mode is Mode.profile else None
    found = result.profile if result is not None else None
    member, now = courses.membership(work, who.user, assignment.course.slug), datetime.now(UTC)
    comparison = compare(work, member, submission, found, now=now, against=against) if found is not None else None
    dtype = next((case.dtype for case in spec.cases if found is not None and case.name == found.case), "")
    source = submissions.source_of(work, submission).decode("utf-8", "replace")
    refused = inspections.why_not(work, submission.lane, Mode.profile, course_id=submission.course_id, now=now)
    return render(
        request,
        "profile.html",
        submission=submission,
        assignment=assignment,
        course=assignment.course,
        member=member,
        profile=found,
        requirements=result.requirements if result is not None else (),
        refused=refused,
        cases=inspections.cases_of(spec, submission.lane),
        others=profiles.of_source(work, submission, Mode.profile),
        kernels=profile_view.kernels_of(found) if found else [],
        missing=profile_view.missing_parts(found) if found else [],
        rows=profile_view.bars(found.timeline) if found else (),
        host_cost=profile_view.host_cost(found.timeline) if found else "",
        traffic=profile_view.traffic(found) if found else "",
        roofline=profile_view.roofline_data(found, submission.lane, dtype) if found else None,
        comparison=comparison,
        groups=_groups(comparison.changes) if comparison is not None and comparison.changes is not None else [],
        shown=shown,
        listing=listing(source, submission.language.value),
    )


def _groups(found: Changes) -> list[tuple[str, list[Row]]]:
    """The rows below the titles of their groups."""
    return [(GROUPS[group], list(rows)) for group, rows in itertools.groupby(found.rows, key=lambda row: row.group)]


@router.get("/submissions/{public_id}/profile/report")
def report_file(public_id: str, who: Someone, work: Work) -> Response:
    """The profiler's own report, as a file."""
    submission = submissions.find(work, who.user, public_id)
    headers = {**attachment(f"profile-{submission.number}.ncu-rep"), "x-content-type-options": "nosniff"}
    return Response(profiles.report_of(work, submission), media_type="application/octet-stream", headers=headers)


@router.get("/submissions/{public_id}/profile/trace")
def trace_file(public_id: str, who: Someone, work: Work) -> Response:
    """The timeline, as a file for ui.perfetto.dev."""
    submission = submissions.find(work, who.user, public_id)
    found = profiles.profile_of(work, submission)
    text = json.dumps(profiles.perfetto(found.timeline), ensure_ascii=False, allow_nan=False)
    return Response(text, media_type="application/json", headers=attachment(f"profile-{submission.number}-trace.json"))
