"""Hand something in, and follow it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.sse import EventSourceResponse, ServerSentEvent

from server.api.responses import errors
from server.api.schemas import SubmissionCreate, SubmissionRead, SubmissionSummary
from server.courses import service as courses
from server.errors import InvalidInputError, LadderError
from server.http.identity import Someone, identify, require
from server.http.live import Live
from server.http.work import Settings, Work, config_of, database_of
from server.models import Mode
from server.submissions import service as submissions
from server.submissions.service import SubmissionView

router = APIRouter(tags=["submissions"])


@router.post(
    "/courses/{course}/assignments/{slug}/submissions",
    status_code=HTTPStatus.CREATED,
    responses=errors(401, 404, 413, 422, 429, 503),
    summary="Submit",
)
def submit(
    *, course: str, slug: str, body: SubmissionCreate, request: Request, who: Someone, work: Work, config: Settings
) -> SubmissionRead:
    """Store a source and queue it; a 201 means that it is stored and will be graded."""
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
        now=datetime.now(UTC),
        trace=request.state.trace,
    )
    view = submissions.view(work, submission, staff=member.is_staff, max_attempts=config.max_attempts)
    return SubmissionRead.of(view)


@router.get("/courses/{course}/submissions", responses=errors(401, 404, 422), summary="My submissions")
def list_submissions(
    *,
    course: str,
    who: Someone,
    work: Work,
    assignment: Annotated[str | None, Query(description="Only of this slug.")] = None,
    mode: Mode | None = None,
    before: Annotated[str | None, Query(description="Older than this submission.")] = None,
    limit: Annotated[int, Query(ge=1, le=submissions.MAX_PAGE)] = 50,
) -> list[SubmissionSummary]:
    """Newest first. A student gets their own, staff everybody's."""
    member = courses.membership(work, who.user, course)
    rows = submissions.history(work, member, assignment=assignment, mode=mode, before=before, limit=limit)
    return [SubmissionSummary.of(row) for row in rows]


@router.get("/submissions/{public_id}", responses=errors(401, 404), summary="One submission")
def read_submission(public_id: str, who: Someone, work: Work, config: Settings) -> SubmissionRead:
    """Where it is and what was found; the student's own, or any of a course whose staff one is."""
    submission = submissions.find(work, who.user, public_id)
    staff = submissions.is_staff_of(work, who.user, submission)
    return SubmissionRead.of(submissions.view(work, submission, staff=staff, max_attempts=config.max_attempts))


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


def current_view(public_id: str, who: Someone, request: Request) -> SubmissionView:
    """The submission as the caller may see it now, in a transaction of its own."""
    config = config_of(request)
    with database_of(request).reading() as session:
        submission = submissions.find(session, who.user, public_id)
        staff = submissions.is_staff_of(session, who.user, submission)
        return submissions.view(session, submission, staff=staff, max_attempts=config.max_attempts)


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
    live: Live = request.app.state.live
    yield _event("submission", view)
    async with aclosing(live.changes(view.id, seen=view.revision)) as changes:
        while not view.is_final:
            # A heartbeat looks too: the place in the queue moves, and logins end, without a change of the submission.
            await anext(changes)
            fresh = await run_in_threadpool(_look_again, public_id, request)
            if fresh is None:
                return
            if fresh != view:
                view = fresh
                yield _event("submission", view)
    yield _event("end", view)


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
