"""The roster: who is in a course, one person's entry, and links that invite others."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Query, Request
from pydantic import BaseModel
from sqlalchemy.orm import Session
from starlette.responses import Response

from server import csv_io, db
from server.courses import courses
from server.courses.courses import Membership
from server.errors import InvalidInputError, LadderError
from server.http.attachments import attachment
from server.http.identity import Someone
from server.http.work import RowId, Work, config_of, database_of
from server.models import Role
from server.pages import forms
from server.pages.forms import WhatWasDone
from server.pages.rendering import Slot, render, write
from server.roster import imports, invites, people, roster
from server.roster.roster import Filter

router = APIRouter(include_in_schema=False)
PATH = "/courses/{course}/roster"
_SAID = {
    "added": "They are in the course now and will get a mail.",
    "returns": "They are back in the course, with their work.",
    "changed": "Saved.",
    "unchanged": "Nothing was changed: they are in the course already.",
    "revoked": "The link is no longer valid.",
    "erased": "The account is erased. What is left of it has a pseudonym.",
}


class Asked(BaseModel):
    """Which part of the roster an address asks for."""

    search: str = ""
    section: str = "*"
    role: str = ""
    dropped: str = ""
    page: str = "1"

    def filter(self) -> Filter:
        """What the service looks for; what nobody could have chosen is passed over."""
        return Filter(
            search=self.search[:100],
            section=None if self.section == "*" else self.section[:60],
            role=Role(self.role) if self.role in list(Role) else None,
            dropped=bool(self.dropped),
            page=max(1, forms.whole(self.page, 1)),
        )

    def other_page(self, page: int) -> str:
        """The query of another page of the same."""
        return urlencode({**self.model_dump(exclude={"page"}), "page": page})


AskedFor = Annotated[Asked, Query()]


@router.get(PATH)
def roster_page(
    *, request: Request, course: str, who: Someone, work: Work, asked: AskedFor, done: WhatWasDone
) -> Response:
    """The page."""
    member = courses.membership(work, who.user, course)
    return _page(request, work, member, asked=asked, done=done.said(_SAID))


@router.get(PATH + ".csv")
def roster_table(course: str, who: Someone, work: Work) -> Response:
    """Everybody who is in the course, for a spreadsheet; `roster/import` reads it again."""
    member = courses.membership(work, who.user, course)
    found = roster.everybody(work, member)
    header = ("email", "name", "section", "role", "student id")
    lines = ((row.user.email, row.user.name, row.section, row.role.value, row.student_number) for row in found)
    return Response(
        "\ufeff" + csv_io.write(header, lines),
        media_type="text/csv; charset=utf-8",
        headers=attachment(f"{member.course.slug}-roster.csv"),
    )


@router.post(PATH + "/add", dependencies=[Slot])
def add_person(
    *,
    request: Request,
    course: str,
    who: Someone,
    email: Annotated[str, Form()] = "",
    name: Annotated[str, Form()] = "",
    section: Annotated[str, Form()] = "",
    role: Annotated[str, Form()] = Role.student.value,
    student_number: Annotated[str, Form()] = "",
) -> Response:
    """Put one person in the course."""
    typed = {"email": email, "name": name, "section": section, "role": role, "student_number": student_number}

    def act(session: Session) -> str:
        member = courses.staff_of(session, who.user, course)
        person = people.person({**typed, "student id": student_number}, line=1)
        return imports.add_one(session, member, person, now=db.now(session)).value

    try:
        step = write(request, act)
    except InvalidInputError as error:
        return _again(request, who, course, adding=typed, problem=error)
    return forms.back(forms.course_path(course, "/roster"), step)


@router.post(PATH + "/invites", dependencies=[Slot])
def make_invite(
    *,
    request: Request,
    course: str,
    who: Someone,
    role: Annotated[str, Form()] = Role.student.value,
    section: Annotated[str, Form()] = "",
    days: Annotated[str, Form()] = "14",
    most_uses: Annotated[str, Form()] = "",
) -> Response:
    """Make a link into the course; this answer is the only place where it stands."""
    typed = {"role": role, "section": section, "days": days, "most_uses": most_uses}

    def act(session: Session) -> str:
        member = courses.membership(session, who.user, course)
        made = invites.create(
            session,
            member,
            role=Role(role) if role in list(Role) else Role.student,
            section=section,
            days=forms.whole(days.strip()),
            most_uses=forms.whole(most_uses.strip()) if most_uses.strip() else None,
            now=db.now(session),
        )
        return made.path

    try:
        path = write(request, act)
    except InvalidInputError as error:
        return _again(request, who, course, inviting=typed, problem=error)
    return _again(request, who, course, link=config_of(request).public_url.rstrip("/") + path)


@router.post(PATH + "/invites/{invite_id}/revoke")
def revoke_invite(course: str, invite_id: RowId, who: Someone, work: Work) -> Response:
    """Take a link back."""
    invites.revoke(work, courses.membership(work, who.user, course), invite_id, now=db.now(work))
    return forms.back(forms.course_path(course, "/roster"), "revoked", anchor="invites")


def _again(request: Request, who: Someone, course: str, **given: Any) -> Response:
    with database_of(request).reading() as session:
        return _page(request, session, courses.membership(session, who.user, course), **given)


def _page(
    request: Request,
    session: Session,
    member: Membership,
    *,
    asked: Asked | None = None,
    problem: LadderError | None = None,
    **given: Any,
) -> Response:
    asked = asked or Asked()
    which = asked.filter()
    return render(
        request,
        "roster.html",
        status=problem.status if problem else HTTPStatus.CREATED if given.get("link") else HTTPStatus.OK,
        member=member,
        course=member.course,
        asked=asked,
        which=which,
        roster=roster.roster(session, member, which),
        invites=invites.of_course(session, member, now=db.now(session)),
        roles=list(Role) if member.is_instructor else [Role.student],
        problems={problem.field: problem.message} if isinstance(problem, InvalidInputError) else {},
        **{"done": "", "link": "", "adding": None, "inviting": None, **given},
    )
