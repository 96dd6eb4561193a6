"""Which assignment folders the server has, and reading them into a course; for its instructors."""

from __future__ import annotations

from fastapi import APIRouter, Request
from sqlalchemy.orm import Session
from starlette.responses import Response

from server.courses import courses, sync
from server.errors import ForbiddenError, InvalidInputError
from server.http.identity import Someone
from server.http.turns import Turn
from server.http.work import Settings, Work, database_of
from server.models import User
from server.pages import forms
from server.pages.forms import SentForm
from server.pages.rendering import Slot, render, write

router = APIRouter(include_in_schema=False)
PATH = "/courses/{course}/assignment-files"


@router.get(PATH, dependencies=[Turn])
def files_page(request: Request, course: str, who: Someone, work: Work, config: Settings) -> Response:
    """Every folder that they may read, and whether it is new to the course or changed."""
    return _page(request, work, who, course, config)


@router.post(PATH, dependencies=[Slot])
def read_files(request: Request, course: str, who: Someone, config: Settings, form: SentForm) -> Response:
    """Read the folders that were chosen, all or none of them; what is new to the course is hidden at first."""
    chosen = frozenset(forms.texts(form, "slug"))

    def act(session: Session) -> int:
        member = courses.membership(session, who.user, course)
        member.require_instructor()
        if not chosen:
            raise InvalidInputError("Choose at least one assignment.", field="slug")
        if chosen - sync.may_read(session, config, who.user):
            raise ForbiddenError("Only an admin may add an assignment that no course of yours has.")
        actor = session.get_one(User, who.user.id)
        return len(sync.sync_assignments(session, config, member.course, actor, only=chosen, published=False))

    try:
        count = write(request, act)
    except InvalidInputError as error:
        with database_of(request).reading() as session:
            return _page(request, session, who, course, config, problem=error)
    return forms.back(forms.course_path(course, "/schedule"), "read", count=count)


def _page(
    request: Request,
    session: Session,
    who: Someone,
    course: str,
    config: Settings,
    *,
    problem: InvalidInputError | None = None,
) -> Response:
    member = courses.membership(session, who.user, course)
    member.require_instructor()
    return render(
        request,
        "assignment_files.html",
        status=problem.status if problem else 200,
        member=member,
        course=member.course,
        offers=sync.offers(session, config, member.course, who.user),
        sees_all=who.user.is_admin,
        problem=sync.without_places(config, problem.message) if problem else "",
    )
