"""Hand something in, and follow it."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator
from contextlib import aclosing
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import BaseModel, Field
from sqlalchemy.orm import Session

from server.api.responses import errors
from server.api.schemas import ChangesRead, SubmissionCreate, SubmissionRead, SubmissionSummary
from server.config import Config
from server.courses import courses
from server.db import now
from server.errors import InvalidInputError, LadderError
from server.http.attachments import attachment
from server.http.identity import Someone, identify, require
from server.http.waits import followed, newest_wait, wait_of
from server.http.work import Settings, Work, arrived_at, config_of, database_of
from server.leaderboard.comparands import compare
from server.models import Lane, Language, Mode, Review, State, Submission, User, Verdict
from server.submissions import listing, profiles, submissions
from server.submissions.submissions import SubmissionView

router = APIRouter(tags=["submissions"])

RequestKey = Annotated[
    str | None, Header(pattern=r"^[!-~]{1,64}$", description="Made up by the client, one for every submission.")
]


@router.post(
    "/courses/{course}/assignments/{slug}/submissions",
    status_code=HTTPStatus.CREATED,
    responses=errors(401, 403, 404, 409, 413, 422, 429, 503),
    summary="Submit",
)
def submit(
    *,
    course: str,
    slug: str,
    body: SubmissionCreate,
    request: Request,
    who: Someone,
    work: Work,
    config: Settings,
    idempotency_key: RequestKey = None,
) -> SubmissionRead:
    """Store a source and queue it; a 201 means that it is stored and will be graded.

    Where no answer came, send the same again with the same `Idempotency-Key`: it is stored once.
    """
    member = courses.membership(work, who.user, course)
    submission = submissions.submit(
        work,
        membership=member,
        assignment=slug,
        mode=body.mode,
        lane=body.lane,
        language=body.language,
        filename=body.filename,
        source=_bytes(body.source),
        config=config,
        now=arrived_at(request, work),
        trace=request.state.trace,
        request_key=idempotency_key,
        case=body.case,
    )
    view = submissions.view(work, submission, staff=member.is_staff, max_attempts=config.max_attempts)
    return SubmissionRead.of(view)


class SubmissionsAsked(BaseModel):
    """Which submissions; what is not given is left open. Only staff choose people."""

    assignment: Annotated[str, Field(max_length=60, description="Only of this slug.")] = ""
    student: Annotated[
        str,
        Field(
            max_length=listing.MAX_STUDENT_CHARS,
            description="Part of a name, address or handle; `#7`: user 7.",
        ),
    ] = ""
    section: Annotated[str | None, Field(max_length=60, description="Only of this one; empty: of none.")] = None
    verdict: Verdict | None = None
    state: State | None = None
    review: Review | None = None
    lane: Lane | None = None
    language: Language | None = None
    mode: Mode | None = None
    before: Annotated[str, Field(max_length=26, description="Older than this submission.")] = ""
    limit: Annotated[int, Field(ge=1, le=submissions.MAX_PAGE)] = 50


@router.get("/courses/{course}/submissions", responses=errors(401, 403, 404, 422), summary="Submissions")
def list_submissions(
    course: str, who: Someone, work: Work, asked: Annotated[SubmissionsAsked, Query()]
) -> list[SubmissionSummary]:
    """Newest first. A student gets their own, staff everybody's."""
    member = courses.membership(work, who.user, course)
    wanted = listing.Filter(**asked.model_dump(exclude={"before", "limit"}))
    rows = listing.listed(work, member, wanted, before=asked.before, limit=asked.limit)
    return [SubmissionSummary.of(row) for row in rows]


@router.get("/submissions/{public_id}", responses=errors(401, 404), summary="One submission")
def read_submission(public_id: str, request: Request, who: Someone, work: Work, config: Settings) -> SubmissionRead:
    """Where it is and what was found; the student's own, or any of a course whose staff one is."""
    submission = submissions.find(work, who.user, public_id)
    return SubmissionRead.of(_view(request, work, submission, who.user, config))


@router.get(
    "/submissions/{public_id}/source",
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}, "description": "The source."}, **errors(401, 404)},
    summary="A submission's source",
)
def read_source(public_id: str, who: Someone, work: Work) -> Response:
    """The bytes as uploaded."""
    submission = submissions.find(work, who.user, public_id)
    return Response(submissions.source_of(work, submission), media_type="text/plain; charset=utf-8")


@router.get(
    "/submissions/{public_id}/profile/report",
    response_class=Response,
    responses={200: {"content": {"application/octet-stream": {}}, "description": "The file."}, **errors(401, 404)},
    summary="The report of a profile",
)
def read_report(public_id: str, who: Someone, work: Work) -> Response:
    """The profiler's own file; of its owner's, and for staff. It is removed after a while."""
    submission = submissions.find(work, who.user, public_id)
    headers = {**attachment(f"profile-{submission.number}.ncu-rep"), "x-content-type-options": "nosniff"}
    return Response(profiles.report_of(work, submission), media_type="application/octet-stream", headers=headers)


@router.get("/submissions/{public_id}/profile/trace", responses=errors(401, 404), summary="The timeline of a profile")
def read_trace(public_id: str, who: Someone, work: Work) -> dict[str, Any]:
    """In the trace-event format, which Perfetto opens; of its owner's, and for staff."""
    submission = submissions.find(work, who.user, public_id)
    return profiles.perfetto(profiles.profile_of(work, submission).timeline)


@router.get(
    "/submissions/{public_id}/profile/changes", responses=errors(401, 404, 422), summary="What changed in a profile"
)
def read_changes(
    public_id: str,
    who: Someone,
    work: Work,
    against: Annotated[
        str, Query(max_length=200, description="A key of `offered`; empty: the first that has a profile.")
    ] = "",
) -> ChangesRead:
    """A profile beside the owner's last one, that of their best, or that of a milestone which the caller may read."""
    submission = submissions.find(work, who.user, public_id)
    found = profiles.profile_of(work, submission)
    member = courses.membership(work, who.user, submission.assignment.course.slug)
    return ChangesRead.of(compare(work, member, submission, found, now=now(work), against=against))


@router.post("/submissions/{public_id}/cancel", responses=errors(401, 403, 404, 409), summary="Cancel a submission")
def cancel(public_id: str, request: Request, who: Someone, work: Work, config: Settings) -> SubmissionRead:
    """Take it out of the queue, while it waits; only who handed it in can. What it superseded gets its place back."""
    submission = submissions.cancel(work, who.user, public_id, now=now(work))
    return SubmissionRead.of(_view(request, work, submission, who.user, config))


def current_view(public_id: str, who: Someone, request: Request) -> SubmissionView:
    """The submission as the caller may see it now, in a transaction of its own."""
    with database_of(request).reading() as session:
        submission = submissions.find(session, who.user, public_id)
        return _view(request, session, submission, who.user, config_of(request))


@router.get(
    "/submissions/{public_id}/events",
    response_class=EventSourceResponse,
    responses=errors(401, 404),
    summary="Follow a submission",
)
async def follow(
    public_id: str, request: Request, view: Annotated[SubmissionView, Depends(current_view)]
) -> AsyncIterator[ServerSentEvent]:
    """Server-sent events: `submission` with the whole submission at every change, then `end` once it is final."""
    yield _event("submission", view)
    stream = followed(request, public_id, view.id, view, look_again=_look_again, moved=_moved)
    async with aclosing(stream) as states:
        async for fresh in states:
            if fresh != view:
                view = fresh
                yield _event("submission", view)
    if view.is_final:
        yield _event("end", view)


def _view(request: Request, session: Session, submission: Submission, user: User, config: Config) -> SubmissionView:
    return submissions.view(
        session,
        submission,
        staff=submissions.is_staff_of(session, user, submission),
        max_attempts=config.max_attempts,
        wait=wait_of(request, session, submission),
    )


async def _moved(request: Request, view: SubmissionView) -> SubmissionView:
    """The same with its place in the queue as it is now, which is looked up once for everybody."""
    wait = await newest_wait(request, view.lane, view.id) if view.is_waiting else None
    moved = wait is not None and (view.wait is None or wait.ahead != view.wait.ahead)
    return dataclasses.replace(view, wait=wait) if moved else view


def _look_again(public_id: str, request: Request) -> SubmissionView | None:
    """The submission now; `None` once the caller may not see it any more."""
    try:
        return current_view(public_id, require(identify(request)), request)
    except LadderError:
        return None


def _event(name: str, view: SubmissionView) -> ServerSentEvent:
    return ServerSentEvent(event=name, id=str(view.revision), data=SubmissionRead.of(view))


def _bytes(source: str) -> bytes:
    try:
        return source.encode()
    except UnicodeEncodeError as error:
        raise InvalidInputError(
            f"The source has half a surrogate pair at character {error.start + 1:,}, which is no text.", field="source"
        ) from None
