"""See the course as one of its students does, at a chosen time."""

from __future__ import annotations

from datetime import datetime
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse
from sqlalchemy.orm import Session
from starlette.responses import Response

from server import db, previews
from server.courses import clock, courses
from server.courses.courses import AssignmentDetail, Membership
from server.courses.deadlines import Deadlines, deadlines_in, own_dates
from server.errors import ForbiddenError, InvalidInputError
from server.http.identity import PREVIEW_END, Someone, clear_preview_cookie, set_preview_cookie
from server.http.work import Settings, Work, database_of
from server.pages import forms
from server.pages.rendering import Slot, render, write
from server.roster import picking, roster

router = APIRouter(include_in_schema=False)
PATH = "/courses/{course}/preview"


@router.get(PATH)
def preview_page(request: Request, course: str, who: Someone, work: Work, student: str = "") -> Response:
    """The form; `student` is the id of one who is chosen already."""
    member = courses.membership(work, who.user, course)
    chosen = forms.whole(student, 0)
    emails = (row.user.email for row in roster.students(work, member.course.id) if row.user_id == chosen)
    return _page(request, work, member, typed={"student": next(emails, ""), "at": ""}, chosen=chosen)


@router.post(PATH, dependencies=[Slot])
def start(
    *,
    request: Request,
    course: str,
    who: Someone,
    config: Settings,
    student: Annotated[str, Form()] = "",
    at: Annotated[str, Form()] = "",
) -> Response:
    """Begin to look, and go to the ladder as the student sees it."""
    login = who.login
    if login is None:
        raise ForbiddenError("Log in with a browser to view a course as somebody else.")

    def act(session: Session) -> str:
        member = courses.membership(session, who.user, course, even_archived=True)
        member.require_staff()
        chosen = picking.one(roster.students(session, member.course.id), student, field="student")
        shown_at = clock.read(at, member.course.timezone, field="at")
        _row, token = previews.start(session, member, login, student_id=chosen, shown_at=shown_at, now=db.now(session))
        return token

    try:
        token = write(request, act)
    except InvalidInputError as error:
        with database_of(request).reading() as session:
            member = courses.membership(session, who.user, course)
            return _page(request, session, member, typed={"student": student, "at": at}, problem=error)
    response = forms.back(forms.course_path(course))
    set_preview_cookie(response, config, token)
    return response


@router.post(PREVIEW_END)
def end(who: Someone, work: Work, config: Settings) -> Response:
    """See everything as oneself again."""
    slug = previews.end(work, who.login) if who.login is not None else None
    target = forms.course_path(slug, "/preview") if slug else "/"
    response = RedirectResponse(target, status_code=HTTPStatus.SEE_OTHER)
    clear_preview_cookie(response, config)
    return response


def _page(
    request: Request,
    session: Session,
    member: Membership,
    *,
    typed: dict[str, str],
    chosen: int = 0,
    problem: InvalidInputError | None = None,
) -> Response:
    member.require_staff()
    zone = member.course.timezone
    details = courses.assignments_of(session, member, db.now(session))
    own = deadlines_in(session, member.course.id, [chosen])
    dates = {detail.row.id: own.get((chosen, detail.row.id)) for detail in details}
    return render(
        request,
        "preview.html",
        status=problem.status if problem else HTTPStatus.OK,
        member=member,
        course=member.course,
        students=roster.students(session, member.course.id),
        moments=[
            (f"{detail.title} {word}", clock.typed(at, zone))
            for detail in details
            for word, at in _moments(detail, dates[detail.row.id])
            if at is not None
        ],
        typed=typed,
        problems={problem.field: problem.message} if problem else {},
        minutes=int(previews.LASTS.total_seconds() // 60),
    )


def _moments(detail: AssignmentDetail, extended: Deadlines | None) -> list[tuple[str, datetime | None]]:
    """When something changes for the student who is chosen already, or for everybody without an extension."""
    dates = extended or own_dates(detail.row, 0)
    word = " for them" if extended else ""
    return [("opens", dates.open_at), (f"is due{word}", dates.due_at), (f"closes{word}", dates.late_until)]
