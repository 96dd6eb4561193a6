"""Tables of people: hand one in, look at what each line would do, agree."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Form, Request, UploadFile
from sqlalchemy.orm import Session
from starlette.responses import Response

from server import db
from server.courses import courses
from server.errors import ConflictError, InvalidInputError
from server.http.attachments import attachment
from server.http.identity import Someone
from server.http.work import Work, database_of
from server.pages import forms
from server.pages.rendering import Slot, render, write
from server.roster import imports
from server.roster.plan import Step

router = APIRouter(include_in_schema=False)
PATH = "/courses/{course}/roster/import"
MOST_SHOWN = 400
"""Lines on one page; those that change something come first, and all are counted."""
_ORDER = (Step.refused, Step.added, Step.returns, Step.changed, Step.unchanged)


@router.get(PATH)
def import_page(request: Request, course: str, who: Someone, work: Work) -> Response:
    """The form for a table."""
    member = courses.staff_of(work, who.user, course)
    return render(request, "roster_import.html", member=member, course=member.course, pasted="", problem="")


@router.post(PATH, dependencies=[Slot])
def read_table(
    *, request: Request, course: str, who: Someone, pasted: Annotated[str, Form()] = "", file: UploadFile | None = None
) -> Response:
    """Read a table, from a file or pasted, and go to what it would do."""
    named = file is not None and bool(file.filename)
    data = file.file.read() if file and named else pasted.encode("utf-8", "replace")
    filename = (file.filename or "") if file and named else ""

    def act(session: Session) -> str:
        member = courses.membership(session, who.user, course)
        return imports.store(session, member, data, filename=filename, now=db.now(session)).public_id

    try:
        public_id = write(request, act)
    except InvalidInputError as error:
        with database_of(request).reading() as session:
            member = courses.membership(session, who.user, course)
            context = {"member": member, "course": member.course, "pasted": pasted, "problem": error.message}
            return render(request, "roster_import.html", status=error.status, **context)
    return forms.back(forms.course_path(course, f"/roster/import/{public_id}"))


@router.get(PATH + "/{import_id}")
def look(request: Request, course: str, import_id: str, who: Someone, work: Work) -> Response:
    """What a table would do, line by line."""
    return _look(request, work, who, course, import_id)


@router.get(PATH + "/{import_id}/left-out.csv")
def left_out(course: str, import_id: str, who: Someone, work: Work) -> Response:
    """The lines that are left out, each with the reason, for a spreadsheet."""
    member = courses.staff_of(work, who.user, course)
    return Response(
        "\ufeff" + imports.left_out(work, member, import_id),
        media_type="text/csv; charset=utf-8",
        headers=attachment(f"{member.course.slug}-left-out.csv"),
    )


@router.post(PATH + "/{import_id}", dependencies=[Slot])
def apply(
    *, request: Request, course: str, import_id: str, who: Someone, digest: Annotated[str, Form()] = ""
) -> Response:
    """Do what was shown; where that is not what would happen any more, show what would."""

    def act(session: Session) -> None:
        member = courses.membership(session, who.user, course)
        imports.apply(session, member, import_id, digest=digest, now=db.now(session))

    try:
        write(request, act)
    except ConflictError as error:
        with database_of(request).reading() as session:
            return _look(request, session, who, course, import_id, problem=error)
    return forms.back(forms.course_path(course, f"/roster/import/{import_id}"))


def _look(
    request: Request,
    session: Session,
    who: Someone,
    course: str,
    import_id: str,
    *,
    problem: ConflictError | None = None,
) -> Response:
    member = courses.membership(session, who.user, course)
    shown = imports.look(session, member, import_id)
    lines = sorted(shown.plan.lines, key=lambda line: (_ORDER.index(line.step), line.person.line))
    return render(
        request,
        "roster_plan.html",
        status=problem.status if problem else HTTPStatus.OK,
        member=member,
        course=member.course,
        row=shown.row,
        plan=shown.plan,
        troubles=shown.troubles[:MOST_SHOWN],
        more_troubles=max(0, len(shown.troubles) - MOST_SHOWN),
        lines=lines[:MOST_SHOWN],
        more=max(0, len(lines) - MOST_SHOWN),
        counts=[(step, shown.plan.counts[step]) for step in _ORDER if shown.plan.counts[step]],
        left_out=len(shown.troubles) + shown.plan.counts[Step.refused],
        steps=STEPS,
        problem=problem.message if problem else "",
    )


STEPS = {
    Step.added: {"word": "Added", "icon": "arrow", "tone": ""},
    Step.returns: {"word": "Added again", "icon": "arrow", "tone": ""},
    Step.changed: {"word": "Changed", "icon": "arrow", "tone": ""},
    Step.unchanged: {"word": "Unchanged", "icon": "dash", "tone": ""},
    Step.refused: {"word": "Skipped", "icon": "alert", "tone": "care"},
}
"""What each step is called on the page."""
