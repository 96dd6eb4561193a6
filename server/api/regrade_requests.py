"""What students ask to be looked at again, and what staff answer."""

from __future__ import annotations

from datetime import datetime
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import Field

from server.api.regrades import Page, Revision
from server.api.responses import errors
from server.api.schemas import Create, Read
from server.courses import courses
from server.db import now
from server.http.identity import Someone
from server.http.work import RowId, Work
from server.models import RegradeMessage, RegradeRequest, RequestState
from server.regrades import inbox, requests
from server.regrades.inbox import Box
from server.regrades.telling import MAX_TEXT_CHARS
from server.submissions import submissions

router = APIRouter(tags=["regrades"])
_REQUESTS = "/courses/{course}/regrade-requests"
PublicId = Annotated[str, Path(max_length=26)]
Text = Annotated[str, Field(max_length=MAX_TEXT_CHARS)]
OfAssignment = Annotated[str, Query(max_length=60, description="Slug of an assignment.")]


class RegradeRequestCreate(Create):
    """What a student asks, or somebody says."""

    text: Text


class AnswerRequest(Create):
    """Staff's answer; a reason is owed."""

    outcome: RequestState
    text: Text
    revision: Revision
    regrade: Annotated[bool, Field(description="Accepting drafts a proposal about this submission.")] = True


class RegradeRequestRead(Read):
    """A request."""

    id: int
    submission: str
    assignment: str
    student: str
    state: RequestState
    retiming: Annotated[bool, Field(description="Its times are being taken once more.")]
    revision: int
    created_at: datetime
    answered_at: datetime | None
    reopened_at: datetime | None
    regrade: int | None

    @classmethod
    def of(cls, row: RegradeRequest) -> RegradeRequestRead:
        """As it is now."""
        return cls(
            id=row.id, submission=row.submission.public_id, assignment=row.assignment.slug, student=row.user.name,
            state=row.state, retiming=row.retiming, revision=row.revision, created_at=row.created_at,
            answered_at=row.answered_at, reopened_at=row.reopened_at, regrade=row.regrade_id,
        )  # fmt: skip


class MessageRead(Read):
    """Something that was said."""

    author: str
    by_staff: bool
    outcome: RequestState | None
    text: str
    at: datetime

    @classmethod
    def of(cls, row: RegradeMessage) -> MessageRead:
        """As both sides read it."""
        return cls(author=row.author.name, by_staff=row.by_staff, outcome=row.outcome, text=row.text, at=row.at)


class ThreadRead(Read):
    """A request with all that was said."""

    request: RegradeRequestRead
    messages: list[MessageRead]


@router.get(_REQUESTS, responses=errors(401, 404), summary="Regrade requests")
def read_requests(
    *, course: str, who: Someone, work: Work, box: Box = Box.open, assignment: OfAssignment = "", page: Page = 1
) -> list[RegradeRequestRead]:
    """Staff see everybody's, a student their own."""
    member = courses.membership(work, who.user, course)
    return [RegradeRequestRead.of(row) for row in inbox.listed(work, member, box, assignment=assignment, page=page)]


@router.post(
    "/submissions/{public_id}/regrade-request",
    status_code=HTTPStatus.CREATED,
    responses=errors(401, 403, 404, 409, 422),
    summary="Ask for a regrade",
)
def ask_for_regrade(public_id: PublicId, body: RegradeRequestCreate, who: Someone, work: Work) -> ThreadRead:
    """First its times are taken once more, then a person answers."""
    submission = submissions.find(work, who.user, public_id)
    member = courses.membership(work, who.user, submission.assignment.course.slug)
    made = requests.ask(work, member, submission, body.text, now=now(work))
    return _thread(work, member, made.id)


@router.get(f"{_REQUESTS}/{{request_id}}", responses=errors(401, 404), summary="A regrade request")
def read_request(course: str, request_id: RowId, who: Someone, work: Work) -> ThreadRead:
    """With all that was said."""
    return _thread(work, courses.membership(work, who.user, course), request_id)


@router.post(f"{_REQUESTS}/{{request_id}}/messages", responses=errors(401, 403, 404, 409, 422), summary="Say something")
def say(course: str, request_id: RowId, body: RegradeRequestCreate, who: Someone, work: Work) -> ThreadRead:
    """Add to the thread."""
    member = courses.membership(work, who.user, course)
    requests.say(work, member, request_id, body.text, now=now(work))
    return _thread(work, member, request_id)


@router.post(f"{_REQUESTS}/{{request_id}}/answer", responses=errors(401, 403, 404, 409, 422), summary="Answer")
def answer_request(course: str, request_id: RowId, body: AnswerRequest, who: Someone, work: Work) -> ThreadRead:
    """Accept or decline; for staff."""
    member = courses.membership(work, who.user, course)
    requests.answer(
        work, member, request_id, outcome=body.outcome, text=body.text, revision=body.revision, now=now(work),
        regrade=body.regrade,
    )  # fmt: skip
    return _thread(work, member, request_id)


@router.post(f"{_REQUESTS}/{{request_id}}/reopen", responses=errors(401, 403, 404, 409, 422), summary="Reopen")
def reopen_request(course: str, request_id: RowId, body: RegradeRequestCreate, who: Someone, work: Work) -> ThreadRead:
    """Once, by who asked."""
    member = courses.membership(work, who.user, course)
    requests.reopen(work, member, request_id, body.text, now=now(work))
    return _thread(work, member, request_id)


def _thread(work: Work, member: courses.Membership, request_id: int) -> ThreadRead:
    work.flush()
    row = requests.find(work, member, request_id)
    said = [MessageRead.of(message) for message in requests.thread(work, row)]
    return ThreadRead(request=RegradeRequestRead.of(row), messages=said)
