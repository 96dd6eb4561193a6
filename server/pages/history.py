"""What somebody handed in for an assignment, which of it counts, and any two of its versions side by side."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse
from sqlalchemy.orm import Session
from starlette.responses import Response

from server.courses import courses
from server.errors import InvalidInputError
from server.gradebook import queries as gradebook
from server.groups import views
from server.http.identity import Someone
from server.http.work import Work, database_of
from server.models import User
from server.pages.rendering import Slot, local_path, render, write
from server.submissions import submissions

router = APIRouter(include_in_schema=False)
ASSIGNMENT = "/courses/{course}/assignments/{slug}"
HISTORY_ROWS = 50


@router.get(ASSIGNMENT + "/submissions")
def history_page(
    *, request: Request, course: str, slug: str, who: Someone, work: Work, before: str | None = None
) -> Response:
    """Submissions and runs, newest first; a student's own and their group's, everybody's for staff."""
    return _page(request, work, who.user, (course, slug), before=before)


@router.get(ASSIGNMENT + "/compare")
def compare(*, course: str, slug: str, who: Someone, work: Work, old: str = "", new: str = "") -> Response:
    """Go to the page that has these two versions side by side, the older one on the left."""
    member = courses.membership(work, who.user, course)
    courses.assignment_of(work, member, slug)
    if not old or not new:
        return _back(course, slug)
    first, second = sorted(
        (submissions.find(work, who.user, public_id) for public_id in (old, new)), key=lambda one: one.id
    )
    query = urlencode({"from": first.public_id})
    return RedirectResponse(f"/submissions/{quote(second.public_id)}/diff?{query}", status_code=HTTPStatus.SEE_OTHER)


@router.post(ASSIGNMENT + "/active", dependencies=[Slot])
def choose_active(
    *,
    request: Request,
    course: str,
    slug: str,
    who: Someone,
    submission: Annotated[str, Form(max_length=26)] = "",
    next: Annotated[str, Form()] = "",  # noqa: A002  # the field's name
) -> Response:
    """Let this submission count, whatever the others have; none: the best one again."""

    def act(session: Session) -> None:
        member = courses.membership(session, who.user, course)
        detail = courses.assignment_of(session, member, slug)
        chosen = submissions.find(session, who.user, submission) if submission else None
        gradebook.choose_active(session, member, detail.row, chosen)

    try:
        write(request, act)
    except InvalidInputError as error:
        with database_of(request).reading() as session:
            return _page(request, session, who.user, (course, slug), problem=error)
    if next:
        return RedirectResponse(local_path(next), status_code=HTTPStatus.SEE_OTHER)
    return _back(course, slug)


def _back(course: str, slug: str) -> Response:
    path = f"/courses/{quote(course)}/assignments/{quote(slug)}/submissions"
    return RedirectResponse(path, status_code=HTTPStatus.SEE_OTHER)


def _page(
    request: Request,
    session: Session,
    user: User,
    place: tuple[str, str],
    *,
    before: str | None = None,
    problem: InvalidInputError | None = None,
) -> Response:
    course, slug = place
    member = courses.membership(session, user, course)
    detail = courses.assignment_of(session, member, slug)
    rows = submissions.history(session, member, assignment=slug, together=True, before=before, limit=HISTORY_ROWS + 1)
    return render(
        request,
        "history.html",
        status=problem.status if problem else HTTPStatus.OK,
        problem=problem,
        member=member,
        course=member.course,
        detail=detail,
        rows=rows[:HISTORY_ROWS],
        grade=gradebook.grade_of(session, user.id, detail.row.id),
        group=views.view(session, detail, user) if detail.row.group_size > 1 else None,
        waiting=submissions.WAITING,
        before=rows[HISTORY_ROWS - 1].public_id if len(rows) > HISTORY_ROWS else None,
    )
