"""Who does an assignment together: for students their own group, for staff all of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse
from sqlalchemy.orm import Session
from starlette.responses import Response

from server import db
from server.courses import courses
from server.courses.courses import AssignmentDetail, Membership
from server.errors import ConflictError, InvalidInputError, LadderError
from server.groups import forming, staffing, views
from server.http.identity import Identity, Someone
from server.http.work import Work, database_of
from server.pages.rendering import Slot, render, write

router = APIRouter(include_in_schema=False)
PATH = "/courses/{course}/assignments/{slug}/group"
MANY = 100
"""Groups on one page, for staff."""
Number = Annotated[int, Form(ge=1, le=2**31 - 1)]
Act = Callable[[Session, Membership, AssignmentDetail], object]


@dataclass(frozen=True)
class Refusal:
    """What was not taken: which form it was, why, and what was typed."""

    form: str
    message: str
    typed: str = ""
    reason: str = ""


@router.get(PATH)
def group_page(*, request: Request, course: str, slug: str, who: Someone, work: Work, page: int = 1) -> Response:
    """The page."""
    return _page(request, work, who, course, slug, number=max(1, min(page, 10_000)))


@router.post(PATH + "/start", dependencies=[Slot])
def start(request: Request, course: str, slug: str, who: Someone) -> Response:
    """Begin a group."""

    def act(session: Session, member: Membership, detail: AssignmentDetail) -> None:
        forming.start(session, member, detail, now=db.now(session))

    return _do(request, (course, slug, who), act, Refusal("start", ""))


@router.post(PATH + "/invite", dependencies=[Slot])
def invite(
    request: Request, course: str, slug: str, who: Someone, person: Annotated[str, Form(max_length=254)] = ""
) -> Response:
    """Offer somebody a place."""

    def act(session: Session, member: Membership, detail: AssignmentDetail) -> None:
        forming.invite(session, member, detail, who=person, now=db.now(session))

    return _do(request, (course, slug, who), act, Refusal("invite", "", person))


@router.post(PATH + "/take-back", dependencies=[Slot])
def take_back(request: Request, course: str, slug: str, who: Someone, user_id: Number) -> Response:
    """Offer the place no longer."""

    def act(session: Session, member: Membership, detail: AssignmentDetail) -> None:
        forming.take_back(session, member, detail, user_id=user_id)

    return _do(request, (course, slug, who), act, Refusal("invite", ""))


@router.post(PATH + "/accept", dependencies=[Slot])
def accept(request: Request, course: str, slug: str, who: Someone, group_id: Number) -> Response:
    """Take the place."""

    def act(session: Session, member: Membership, detail: AssignmentDetail) -> None:
        forming.accept(session, member, detail, group_id=group_id, now=db.now(session))

    return _do(request, (course, slug, who), act, Refusal("accept", ""))


@router.post(PATH + "/decline", dependencies=[Slot])
def decline(request: Request, course: str, slug: str, who: Someone, group_id: Number) -> Response:
    """Leave the place to somebody else."""

    def act(session: Session, member: Membership, _detail: AssignmentDetail) -> None:
        forming.decline(session, member, group_id=group_id)

    return _do(request, (course, slug, who), act, Refusal("accept", ""))


@router.post(PATH + "/join", dependencies=[Slot])
def join(
    request: Request, course: str, slug: str, who: Someone, code: Annotated[str, Form(max_length=40)] = ""
) -> Response:
    """Come in by a code."""

    def act(session: Session, member: Membership, detail: AssignmentDetail) -> None:
        forming.join(session, member, detail, code=code, now=db.now(session))

    return _do(request, (course, slug, who), act, Refusal("join", "", code))


@router.post(PATH + "/leave", dependencies=[Slot])
def leave(request: Request, course: str, slug: str, who: Someone) -> Response:
    """Be on one's own again."""

    def act(session: Session, member: Membership, detail: AssignmentDetail) -> None:
        forming.leave(session, member, detail)

    return _do(request, (course, slug, who), act, Refusal("leave", ""))


@router.post(PATH + "/change", dependencies=[Slot])
def change(
    *,
    request: Request,
    course: str,
    slug: str,
    who: Someone,
    people: Annotated[str, Form(max_length=2000)] = "",
    was: Annotated[str, Form(max_length=400)] = "",
    reason: Annotated[str, Form(max_length=2000)] = "",
    group_id: Annotated[int | None, Form(ge=1, le=2**31 - 1)] = None,
) -> Response:
    """Staff say who is in a group; without `group_id` it is a new one."""
    named = [one for one in re.split(r"[\s,;]+", people) if one]

    def act(session: Session, member: Membership, detail: AssignmentDetail) -> None:
        staffing.change(
            session, member, detail, group_id=group_id, who=named, was=was, reason=reason, now=db.now(session)
        )

    return _do(request, (course, slug, who), act, Refusal(f"group-{group_id or 'new'}", "", people, reason))


def _do(request: Request, place: tuple[str, str, Identity], act: Act, refusal: Refusal) -> Response:
    """Do it and show the page; what is refused is said beside its form, with what was typed."""
    course, slug, who = place

    def acting(session: Session) -> None:
        member = courses.membership(session, who.user, course)
        act(session, member, courses.assignment_of(session, member, slug))

    try:
        write(request, acting)
    except (InvalidInputError, ConflictError) as error:
        said = Refusal(refusal.form, error.message, refusal.typed, refusal.reason)
        with database_of(request).reading() as session:
            return _page(request, session, who, course, slug, refusal=said, problem=error)
    path = f"/courses/{quote(course)}/assignments/{quote(slug)}/group"
    return RedirectResponse(path, status_code=HTTPStatus.SEE_OTHER)


def _page(
    request: Request,
    session: Session,
    who: Identity,
    course: str,
    slug: str,
    *,
    number: int = 1,
    refusal: Refusal | None = None,
    problem: LadderError | None = None,
) -> Response:
    member = courses.membership(session, who.user, course)
    detail = courses.assignment_of(session, member, slug)
    found = views.all_groups(session, detail, after=(number - 1) * MANY, most=MANY + 1) if member.is_staff else []
    return render(
        request,
        "group.html",
        status=problem.status if problem else HTTPStatus.OK,
        member=member,
        course=member.course,
        detail=detail,
        group=None if member.is_staff else views.view(session, detail, member.user),
        offered=[] if member.is_staff else views.invitations(session, detail, member.user),
        groups=found[:MANY],
        number=number,
        more=len(found) > MANY,
        refusal=refusal,
    )
