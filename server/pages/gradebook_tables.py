"""The gradebook as tables: out for spreadsheets and Canvas, in to set points, with a look at them first."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Form, Query, Request, UploadFile
from sqlalchemy.orm import Session
from starlette.responses import Response

from server import db
from server.courses import courses
from server.courses.courses import Membership
from server.errors import ConflictError, InvalidInputError
from server.gradebook import imports
from server.gradebook.exports import canvas_csv, plain_csv
from server.gradebook.grid import grid
from server.http.attachments import attachment
from server.http.identity import Someone
from server.http.work import Work, database_of
from server.pages import forms
from server.pages.rendering import Slot, render, write

router = APIRouter(include_in_schema=False)
EXPORT = "/courses/{course}/gradebook/export"
IMPORT = "/courses/{course}/gradebook/import"
_MARK = "﻿"
"""A spreadsheet takes CSV that begins with it for UTF-8."""


@router.get(EXPORT)
def export(
    *, course: str, who: Someone, work: Work, format_: Annotated[str, Query(alias="format", max_length=20)] = ""
) -> Response:
    """All grades as CSV, plain or as Canvas takes it in."""
    member = courses.staff_of(work, who.user, course)
    found = grid(work, member.course.id)
    is_canvas = format_ == "canvas"
    text = canvas_csv(found) if is_canvas else _MARK + plain_csv(found)
    name = f"{member.course.slug}-{'canvas' if is_canvas else 'grades'}.csv"
    headers = {**attachment(name), "cache-control": "no-store"}
    return Response(text, media_type="text/csv; charset=utf-8", headers=headers)


@router.get(IMPORT)
def import_page(request: Request, course: str, who: Someone, work: Work) -> Response:
    """The form for a table."""
    return _form(request, courses.staff_of(work, who.user, course))


@router.post(IMPORT, dependencies=[Slot])
def look(
    *,
    request: Request,
    course: str,
    who: Someone,
    file: UploadFile | None = None,
    pasted: Annotated[str, Form()] = "",
    reason: Annotated[str, Form()] = "",
) -> Response:
    """What a table would do; nothing is changed."""
    named = file is not None and bool(file.filename)
    data = file.file.read() if file and named else pasted.encode("utf-8", "replace")
    with database_of(request).reading() as session:
        member = courses.staff_of(session, who.user, course)
        try:
            plan = imports.read(session, member, data, reason=reason)
        except InvalidInputError as error:
            return _form(request, member, pasted=pasted, reason=reason, problem=error)
        return _form(request, member, pasted=pasted, reason=reason, plan=plan)


@router.post(IMPORT + "/apply", dependencies=[Slot])
def apply(
    *,
    request: Request,
    course: str,
    who: Someone,
    rows: Annotated[str, Form()] = "",
    digest: Annotated[str, Form()] = "",
    above: Annotated[str, Form()] = "",
) -> Response:
    """Set what was looked at, if it is still that."""

    def act(session: Session) -> int:
        member = courses.staff_of(session, who.user, course)
        return imports.apply(session, member, rows, digest=digest, now=db.now(session), above=bool(above))

    try:
        count = write(request, act)
    except (ConflictError, InvalidInputError) as error:
        with database_of(request).reading() as session:
            return _form(request, courses.staff_of(session, who.user, course), problem=error)
    return forms.back(forms.course_path(course, "/gradebook"), "imported", count=count)


def _form(
    request: Request,
    member: Membership,
    *,
    pasted: str = "",
    reason: str = "",
    problem: ConflictError | InvalidInputError | None = None,
    plan: imports.Plan | None = None,
) -> Response:
    return render(
        request,
        "gradebook_import.html",
        status=problem.status if problem else HTTPStatus.OK,
        member=member,
        course=member.course,
        pasted=pasted,
        reason=reason[:1000],
        problem=problem.message if problem else "",
        plan=plan,
        most_lines=imports.MOST_LINES,
    )
