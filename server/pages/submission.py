"""A submission: where it is, what was found, and the source."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse
from sqlalchemy.orm import Session
from starlette.responses import Response

from autograder.receipts import Copy
from server import db
from server.courses import courses
from server.errors import ConflictError, InvalidInputError, LadderError, NotFoundError
from server.gradebook.people import checked_reason
from server.grading import appeals
from server.http.attachments import attachment
from server.http.identity import Someone
from server.http.signed_receipts import receipt_for
from server.http.turns import Turn
from server.http.waits import wait_of
from server.http.work import Work, database_of
from server.models import Review, User
from server.pages.highlight import listing
from server.pages.nav_context import around
from server.pages.queue_text import PLACE, place_context
from server.pages.rendering import Slot, render, write
from server.pages.submission_view import Sheet, sheet_of
from server.submissions import board_inspections, submissions

router = APIRouter(include_in_schema=False)
PARTS = ("head", PLACE, "cancel", "progress", "detail", "cases", "receipt")
"""What changes while a submission is graded, each a template of its own under `submission/`."""


@router.get("/submissions/{public_id}", dependencies=[Turn])
def submission_page(request: Request, public_id: str, who: Someone, work: Work) -> Response:
    """The page; its parts are the ones that the live stream sends again."""
    return _page(request, work, who.user, public_id)


@router.post("/submissions/{public_id}/cancel", dependencies=[Slot])
def cancel(request: Request, public_id: str, who: Someone) -> Response:
    """Take it out of the queue and show it; if it has started meanwhile, say so."""

    def act(session: Session) -> None:
        submissions.cancel(session, who.user, public_id, now=db.now(session))

    try:
        write(request, act)
    except ConflictError as error:
        with database_of(request).reading() as session:
            return _page(request, session, who.user, public_id, problem=error)
    return RedirectResponse(f"/submissions/{quote(public_id)}", status_code=HTTPStatus.SEE_OTHER)


def _page(
    request: Request,
    session: Session,
    user: User,
    public_id: str,
    *,
    problem: LadderError | None = None,
    reason: str = "",
) -> Response:
    submission = submissions.find(session, user, public_id)
    wait = wait_of(request, session, submission)
    sheet = sheet_of(session, submission, user, wait=wait, max_attempts=request.app.state.config.max_attempts)
    source = submissions.source_of(session, submission).decode("utf-8", "replace")
    member = courses.membership(session, user, sheet.view.course)
    context = place_context(wait, submission.lane, own=sheet.own)
    beside = around(session, member, submission)
    inspected = board_inspections.found_in(session, submission) if sheet.own or sheet.view.for_staff else None
    db.let_go(session)
    return render(
        request,
        "submission.html",
        status=problem.status if problem else HTTPStatus.OK,
        problem=problem,
        reason=reason,
        member=member,
        around=beside,
        inspected=inspected,
        sheet=sheet,
        view=sheet.view,
        **context,
        parts=PARTS,
        own=sheet.own,
        may_cancel=sheet.may_cancel,
        source=source,
        listing=listing(source, submission.language.value),
        marked=_marked(sheet),
    )


def _marked(sheet: Sheet) -> dict[int, str]:
    """Notes beside lines of the source: where it failed, or what the sanitizer found."""
    found = sheet.view.sanitized.findings if sheet.view.sanitized is not None else ()
    if lines := {line: one.what for one in found for line in (one.other_line, one.line) if line}:
        return lines
    return {frame.line: sheet.error.kind for frame in sheet.error.frames[-1:]} if sheet.error else {}


@router.get("/submissions/{public_id}/receipt")
def receipt_file(request: Request, public_id: str, who: Someone, copy: Copy | None = None) -> Response:
    """The signed receipt of its grade, as a file."""
    document = receipt_for(request, who.user, public_id, copy)
    return Response(
        json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n",
        media_type="application/json",
        headers=attachment(f"receipt-{document['number']}-{document['copy']}.json"),
    )


@router.post("/submissions/{public_id}/review", dependencies=[Slot])
def review(
    *,
    request: Request,
    public_id: str,
    who: Someone,
    decision: Annotated[Review, Form()],
    seen: Annotated[Review, Form()],
    reason: Annotated[str, Form(max_length=1000)] = "",
    appeal: Annotated[bool, Form()] = False,
) -> Response:
    """Let a submission's speed count, or not, with a reason that its student reads; its course's staff only.

    Where the form showed an open appeal, this answers it.
    """

    def act(session: Session) -> None:
        submission = submissions.find_as_staff(session, who.user, public_id)
        if decision is Review.none:
            raise InvalidInputError("Clear it, reject it, or hold it.", field="decision")
        actor, why, now = session.get_one(User, who.user.id), checked_reason(reason), db.now(session)
        appeals.settle(session, submission, decision, actor=actor, reason=why, now=now, seen=seen, read=appeal)

    try:
        write(request, act)
    except (ConflictError, InvalidInputError) as error:
        with database_of(request).reading() as session:
            return _page(request, session, who.user, public_id, problem=error, reason=reason)
    return RedirectResponse(f"/submissions/{quote(public_id)}", status_code=HTTPStatus.SEE_OTHER)


@router.get("/submissions/{public_id}/source")
def source_file(public_id: str, who: Someone, work: Work) -> Response:
    """The bytes as they were handed in, as a file."""
    submission = submissions.find(work, who.user, public_id)
    content = submissions.source_of(work, submission)
    if not submission.filename.isprintable():
        raise NotFoundError("There is no such file.")
    return Response(content, media_type="text/plain; charset=utf-8", headers=attachment(submission.filename))
