"""Write-ups: what a rung asks for, one's versions, and how a person reads one safely."""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import quote

from fastapi import APIRouter, Request, UploadFile
from fastapi.responses import RedirectResponse
from sqlalchemy.orm import Session
from starlette.responses import Response

from server import db, writeups
from server.courses import courses
from server.errors import ConflictError, InvalidInputError, LadderError, TooLargeError
from server.groups import groups
from server.http.attachments import attachment
from server.http.identity import Identity, Someone
from server.http.turns import Turn
from server.http.work import Work, arrived_at, database_of
from server.models import WriteUpFormat
from server.pages.markdown import markdown_html
from server.pages.rendering import Slot, render, write

router = APIRouter(include_in_schema=False)
PATH = "/courses/{course}/assignments/{slug}/writeup"
_KINDS = {WriteUpFormat.pdf: "application/pdf"}


@router.get(PATH)
def writeup_page(request: Request, course: str, slug: str, who: Someone, work: Work) -> Response:
    """What is asked for and what was uploaded: a student's own and their group's, the newest of everybody for staff."""
    return _page(request, work, who, (course, slug))


@router.post(PATH, dependencies=[Slot])
def upload(request: Request, course: str, slug: str, who: Someone, file: UploadFile | None = None) -> Response:
    """Store a version."""

    def act(session: Session) -> None:
        member = courses.membership(session, who.user, course)
        now = arrived_at(request, session)
        detail = courses.assignment_of(session, member, slug, now)
        writeups.upload(
            session,
            member,
            detail,
            filename=file.filename or "" if file else "",
            data=file.file.read() if file else b"",
            now=now,
            trace=request.state.trace,
        )

    try:
        write(request, act)
    except (InvalidInputError, TooLargeError, ConflictError) as error:
        with database_of(request).reading() as session:
            return _page(request, session, who, (course, slug), problem=error)
    path = f"/courses/{quote(course)}/assignments/{quote(slug)}/writeup"
    return RedirectResponse(path, status_code=HTTPStatus.SEE_OTHER)


@router.get("/writeups/{public_id}", dependencies=[Turn])
def read(request: Request, public_id: str, who: Someone, work: Work) -> Response:
    """A text as a page: Markdown without raw HTML, pictures or scripts. A PDF is a file to download."""
    row, member = writeups.find(work, who.user, public_id)
    assignment = writeups.assignment_of(work, row)
    shown = row.format is not WriteUpFormat.pdf and row.size <= writeups.SHOWN_BYTES
    text = writeups.content_of(work, row).decode("utf-8", "replace") if shown else ""
    db.let_go(work)
    return render(
        request,
        "writeup_read.html",
        member=member,
        course=member.course,
        assignment=assignment,
        row=row,
        shown=shown,
        text=text,
        html=markdown_html(text) if shown and row.format is WriteUpFormat.markdown else None,
    )


@router.get("/writeups/{public_id}/file")
def file(public_id: str, who: Someone, work: Work) -> Response:
    """The bytes as they were uploaded, always as a download: no browser shows or runs them in our name."""
    row, _member = writeups.find(work, who.user, public_id)
    return Response(
        writeups.content_of(work, row),
        media_type=_KINDS.get(row.format, "text/plain; charset=utf-8"),
        headers={
            **attachment(row.filename),
            "x-content-type-options": "nosniff",
            "content-security-policy": "default-src 'none'; sandbox",
        },
    )


def _page(
    request: Request,
    session: Session,
    who: Identity,
    place: tuple[str, str],
    *,
    problem: LadderError | None = None,
) -> Response:
    member = courses.membership(session, who.user, place[0])
    detail = courses.assignment_of(session, member, place[1])
    together = groups.together(session, detail.row.id, member.user.id)
    rows = (
        writeups.newest_of_everybody(session, detail.row.id)
        if member.is_staff
        else writeups.versions(session, detail.row.id, together)
    )
    now = db.now(session)
    return render(
        request,
        "writeup.html",
        status=problem.status if problem else HTTPStatus.OK,
        member=member,
        course=member.course,
        detail=detail,
        asked=detail.spec.writeup,
        rows=rows,
        several=member.is_staff or len(together) > 1,
        is_late=detail.is_late(now),
        is_closed=detail.is_closed(now) and not member.is_staff,
        problem=problem,
    )
