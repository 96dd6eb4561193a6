"""A source that is open on a leaderboard: its page, and where its author or staff open and close it."""

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
from server.errors import ConflictError, InvalidInputError, LadderError
from server.http.identity import Anyone, Someone
from server.http.work import Work, database_of
from server.leaderboard import shared_sources
from server.leaderboard.limits import limit_us, work_of
from server.leaderboard.viewer import detail_of, looker
from server.models import User
from server.pages.highlight import listing
from server.pages.rendering import Slot, render, write
from server.submissions import submissions

router = APIRouter(include_in_schema=False)
ENTRY = "/courses/{course}/assignments/{slug}/leaderboard/entries/{entry}"
SHARE = "/submissions/{public_id}/share"


@router.get(ENTRY)
def entry_page(*, request: Request, course: str, slug: str, entry: str, who: Anyone, work: Work) -> Response:
    """Why an entry is as fast as it is: the author's note and the source."""
    looking, now = looker(work, who.user if who else None, course), db.now(work)
    detail = detail_of(work, looking, slug, now)
    found = shared_sources.shared_entry(work, looking, detail, entry, now)
    db.let_go(work)
    return render(
        request,
        "shared_source.html",
        member=looking.member,
        course=looking.course,
        detail=detail,
        entry=found,
        limit_us=limit_us(detail.version, found.lane),
        work=work_of(detail.version, found.lane),
        listing=listing(found.source, found.language),
    )


@router.get(SHARE)
def share_page(request: Request, public_id: str, who: Someone, work: Work) -> Response:
    """Whether a submission's source is open, and what would change that."""
    return _page(request, work, who.user, public_id)


@router.post(SHARE, dependencies=[Slot])
def share(
    *,
    request: Request,
    public_id: str,
    who: Someone,
    open_it: Annotated[bool, Form(alias="open")] = False,
    note: Annotated[str, Form()] = "",
) -> Response:
    """Open it, with a note, or close it."""

    def act(session: Session) -> None:
        now = db.now(session)
        if open_it:
            shared_sources.open_source(session, who.user, public_id, note=note, now=now)
        else:
            shared_sources.close_source(session, who.user, public_id, now=now)

    try:
        write(request, act)
    except (ConflictError, InvalidInputError) as error:
        with database_of(request).reading() as session:
            return _page(request, session, who.user, public_id, problem=error, note=note)
    return RedirectResponse(f"/submissions/{quote(public_id)}/share", status_code=HTTPStatus.SEE_OTHER)


def _page(
    request: Request,
    session: Session,
    user: User,
    public_id: str,
    *,
    problem: LadderError | None = None,
    note: str | None = None,
) -> Response:
    submission = submissions.find(session, user, public_id)
    member = courses.membership(session, user, submission.assignment.course.slug)
    state = shared_sources.state(session, user, submission, db.now(session))
    kept = state.row.note if state.row else ""
    return render(
        request,
        "share.html",
        status=problem.status if problem else HTTPStatus.OK,
        member=member,
        course=member.course,
        submission=submission,
        assignment=submission.assignment,
        state=state,
        note=kept if note is None else note[: 2 * shared_sources.MAX_NOTE_CHARS],
        most=shared_sources.MAX_NOTE_CHARS,
        problem=problem,
    )
