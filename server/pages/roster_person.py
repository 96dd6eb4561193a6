"""One person's entry in the roster: role, section and student id, dropping and adding again, and erasing."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Form, Request
from sqlalchemy.orm import Session
from starlette.responses import Response

from server import db
from server.courses import courses
from server.courses.courses import AssignmentDetail, Membership
from server.errors import ForbiddenError, InvalidInputError
from server.gradebook.grid import Row, grid
from server.http.identity import Someone
from server.http.work import RowId, Work, database_of
from server.models import Enrolment, Role
from server.pages import forms
from server.pages.forms import WhatWasDone
from server.pages.rendering import Slot, render, write
from server.roster import roster
from server.roster.people import STAFF_ONLY_BY_INSTRUCTORS
from server.roster.roster import Wanted
from server.terms import erasure

router = APIRouter(include_in_schema=False)
PERSON = "/courses/{course}/roster/people/{user_id}"
_SAID = {
    "changed": "Saved.",
    "dropped": "They have left the course. Their work is kept and comes back if they are added again.",
    "added": "They are back in the course, with their work.",
}


@router.get(PERSON)
def person_page(
    *, request: Request, course: str, user_id: RowId, who: Someone, work: Work, done: WhatWasDone
) -> Response:
    """One person's entry."""
    member = courses.membership(work, who.user, course)
    return _person(request, work, member, user_id, done=done.said(_SAID))


@router.post(PERSON, dependencies=[Slot])
def change_person(
    *,
    request: Request,
    course: str,
    user_id: RowId,
    who: Someone,
    role: Annotated[str, Form()] = "",
    section: Annotated[str, Form()] = "",
    student_number: Annotated[str, Form()] = "",
    seen: Annotated[str, Form()] = "",
) -> Response:
    """Give somebody another role, section or student id; what is refused comes back as it was typed."""
    typed = {"role": role, "section": section, "student_number": student_number}

    def act(session: Session) -> None:
        member = courses.membership(session, who.user, course)
        chosen = Role(role) if role in list(Role) else roster.find(session, member, user_id).role
        roster.change(session, member, user_id, Wanted(chosen, section, student_number), seen_as=seen)

    try:
        write(request, act)
    except InvalidInputError as error:
        with database_of(request).reading() as session:
            member = courses.membership(session, who.user, course)
            return _person(request, session, member, user_id, typed=typed, problem=error)
    return forms.back(forms.course_path(course, f"/roster/people/{user_id}"), "changed")


@router.post(PERSON + "/drop")
def drop_person(
    *,
    course: str,
    user_id: RowId,
    who: Someone,
    work: Work,
    seen: Annotated[str, Form()] = "",
    reason: Annotated[str, Form()] = "",
) -> Response:
    """Take somebody out of the course."""
    member = courses.membership(work, who.user, course)
    roster.drop(work, member, user_id, seen_as=seen, reason=reason, now=db.now(work))
    return forms.back(forms.course_path(course, f"/roster/people/{user_id}"), "dropped")


@router.post(PERSON + "/add")
def add_again(course: str, user_id: RowId, who: Someone, work: Work, seen: Annotated[str, Form()] = "") -> Response:
    """Let somebody who dropped the course back in."""
    roster.add_again(work, courses.membership(work, who.user, course), user_id, seen_as=seen)
    return forms.back(forms.course_path(course, f"/roster/people/{user_id}"), "added")


@router.post(PERSON + "/erase", dependencies=[Slot])
def erase_person(
    *,
    request: Request,
    course: str,
    user_id: RowId,
    who: Someone,
    typed: Annotated[str, Form()] = "",
    reason: Annotated[str, Form()] = "",
) -> Response:
    """Erase somebody's account, everywhere and for good; an admin's alone to do."""

    def act(session: Session) -> None:
        member = courses.membership(session, who.user, course, even_archived=True)
        row = roster.find(session, member, user_id)
        if not member.user.is_admin:
            raise ForbiddenError("Only an admin can erase an account.")
        erasure.check_typed(row.user, typed)
        erasure.erase_account(session, row.user, now=db.now(session), actor=member.user, reason=reason)

    try:
        write(request, act)
    except InvalidInputError as error:
        with database_of(request).reading() as session:
            member = courses.membership(session, who.user, course)
            return _person(request, session, member, user_id, problem=error, erasing=typed)
    return forms.back(forms.course_path(course, "/roster"), "erased")


def _person(
    request: Request,
    session: Session,
    member: Membership,
    user_id: int,
    *,
    typed: dict[str, str] | None = None,
    problem: InvalidInputError | None = None,
    erasing: str | None = None,
    done: str = "",
) -> Response:
    row = roster.find(session, member, user_id)
    return render(
        request,
        "roster_person.html",
        status=problem.status if problem else HTTPStatus.OK,
        member=member,
        course=member.course,
        row=row,
        person=row.user,
        seen=roster.seen(row),
        typed=typed or _as_typed(row),
        problems={problem.field.replace("student id", "student_number"): problem.message} if problem else {},
        may_change=member.is_instructor or row.role is Role.student,
        why_not=STAFF_ONLY_BY_INSTRUCTORS,
        roles=list(Role) if member.is_instructor else [Role.student],
        may_erase=member.user.is_admin and not row.user.is_admin and row.user.disabled_at is None,
        erasing=erasing,
        sections=[name for name, _count in roster.sections(session, member.course.id) if name],
        done=done,
        grades=_grades(session, member, row),
    )


def _grades(session: Session, member: Membership, row: Enrolment) -> tuple[Row, Sequence[AssignmentDetail]] | None:
    """The student's row of the gradebook, with its columns; `None` for staff and for who dropped the course."""
    if row.role is not Role.student or row.dropped_at is not None:
        return None
    found = grid(session, member.course.id, user_id=row.user_id)
    return found.rows[0], found.details


def _as_typed(row: Enrolment) -> dict[str, str]:
    return {"role": row.role.value, "section": row.section, "student_number": row.student_number}
