"""Proposals to grade again: the list, and one with who changes, by how much and why."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import RedirectResponse
from sqlalchemy.orm import Session
from starlette.responses import Response

from server import db
from server.courses import courses
from server.courses.courses import Membership
from server.errors import ConflictError, InvalidInputError, LadderError
from server.http.attachments import attachment
from server.http.identity import Someone
from server.http.work import RowId, Work, database_of
from server.models import RegradeState
from server.pages.forms import course_path
from server.pages.regrade_new import BASE, problem_of, show_page
from server.pages.rendering import Slot, write
from server.regrades import boards, lifecycle, views
from server.regrades.steps import Step, take
from server.regrades.tables import table
from server.regrades.views import Show

router = APIRouter(include_in_schema=False)


@router.get(BASE)
def list_page(request: Request, course: str, who: Someone, work: Work) -> Response:
    """All proposals of the course."""
    member = courses.staff_of(work, who.user, course)
    return show_page(request, "regrades.html", member, found=views.listed(work, member.course.id), at=db.now(work))


@router.get(f"{BASE}/{{regrade_id}}")
def regrade_page(
    *,
    request: Request,
    course: str,
    regrade_id: RowId,
    who: Someone,
    work: Work,
    show: Show = Show.all,
    page: Annotated[int, Query(ge=1, le=10_000)] = 1,
) -> Response:
    """One proposal."""
    return _page(request, work, courses.staff_of(work, who.user, course), regrade_id, show=show, page=page)


@router.get(f"{BASE}/{{regrade_id}}/table.csv")
def regrade_table(course: str, regrade_id: RowId, who: Someone, work: Work) -> Response:
    """All of its submissions as a table for a spreadsheet."""
    member = courses.staff_of(work, who.user, course)
    regrade = lifecycle.find(work, member, regrade_id)
    name = f"{member.course.slug}-regrade-{regrade.id}.csv"
    return Response(table(work, regrade), media_type="text/csv; charset=utf-8", headers=attachment(name))


@router.post(f"{BASE}/{{regrade_id}}/{{step}}", dependencies=[Slot])
def act_page(
    *,
    request: Request,
    course: str,
    regrade_id: RowId,
    step: Step,
    who: Someone,
    revision: Annotated[int, Form()] = 0,
    reason: Annotated[str, Form(max_length=20_000)] = "",
) -> Response:
    """Do something to it, as it was seen; who was overtaken is told, and sees it as it is."""

    def act(session: Session) -> None:
        member = courses.staff_of(session, who.user, course)
        take(session, member, regrade_id, step, revision=revision, now=db.now(session), reason=reason)

    try:
        write(request, act)
    except (ConflictError, InvalidInputError) as error:
        with database_of(request).reading() as session:
            member = courses.staff_of(session, who.user, course)
            return _page(request, session, member, regrade_id, problem=error, reason=reason)
    return RedirectResponse(f"{course_path(course)}/regrades/{regrade_id}", status_code=HTTPStatus.SEE_OTHER)


def _page(
    request: Request,
    session: Session,
    member: Membership,
    regrade_id: int,
    *,
    show: Show = Show.all,
    page: int = 1,
    problem: LadderError | None = None,
    reason: str = "",
) -> Response:
    regrade = lifecycle.find(session, member, regrade_id)
    head = views.one(session, regrade)
    return show_page(
        request, "regrade.html", member, status=problem.status if problem else HTTPStatus.OK, head=head,
        regrade=head.row, lines=views.lines(session, regrade, show, page=page), show=show, page=page, per=views.PAGE,
        problem=problem_of(problem), typed_reason=reason, at=db.now(session),
        boards=boards.outlook(session, head.row) if head.row.state is RegradeState.ready else None,
    )  # fmt: skip
