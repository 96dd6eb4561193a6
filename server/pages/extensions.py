"""Extensions and extra late days: for one student or many, with a reason; and what was given so far."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Form, Query, Request
from sqlalchemy.orm import Session
from starlette.datastructures import FormData
from starlette.responses import Response

from server import db
from server.courses import clock, courses
from server.courses.courses import Membership
from server.errors import InvalidInputError
from server.gradebook import extensions
from server.http.identity import Someone
from server.http.work import RowId, Work, database_of
from server.pages import forms
from server.pages.forms import SentForm, WhatWasDone
from server.pages.rendering import Slot, render, write
from server.roster import picking, roster

router = APIRouter(include_in_schema=False)
PATH = "/courses/{course}/extensions"
MOST_SHOWN = 300
_MOST_PASTED = 100_000


class Kind(StrEnum):
    """What is given."""

    extension = "extension"
    late_days = "late_days"


_SAID = {
    Kind.extension: "Extensions given: {}. Each student was notified",
    Kind.late_days: "Students whose late days were changed: {}. Each was notified",
    "withdrawn": "The extension is withdrawn: the assignment's own dates apply again.",
}


@router.get(PATH)
def extensions_page(
    *,
    request: Request,
    course: str,
    who: Someone,
    work: Work,
    done: WhatWasDone,
    user: str = "",
    assignment: str = "",
    told: Annotated[str, Query(max_length=60)] = "",
    people: Annotated[str, Query(max_length=9)] = "",
) -> Response:
    """The page; `user` is a student who is chosen already and alone listed, `assignment` the slug of one.

    `told` are the ids of some who were given something just now, `people` how many they are in all.
    """
    member = courses.membership(work, who.user, course)
    said = done.said(_SAID)
    if told and said:
        said += _names(work, member, _numbers(told.split()), forms.whole(people, 0))
    return _page(request, work, member, only=forms.whole(user, 0), rung=assignment, done=said)


@router.post(PATH, dependencies=[Slot])
def give(request: Request, course: str, who: Someone, form: SentForm) -> Response:
    """Give extensions or late days; what is refused comes back as it was chosen and typed.

    With `act=add` nothing is given: who was looked for joins the list.
    """
    if forms.text(form, "act") == "add":
        with database_of(request).reading() as session:
            return _with_found(request, session, courses.membership(session, who.user, course), form)
    kind = Kind.late_days if forms.text(form, "kind") == Kind.late_days else Kind.extension

    def act(session: Session) -> list[int]:
        member = courses.staff_of(session, who.user, course)
        return _GIVE[kind](session, member, form)

    try:
        made = write(request, act)
    except InvalidInputError as error:
        with database_of(request).reading() as session:
            return _page(request, session, courses.membership(session, who.user, course), form=form, problem=error)
    ids = sorted(set(made))
    named = {"told": " ".join(map(str, ids[: picking.NAMED])), "people": str(len(ids))}
    return forms.back(forms.course_path(course, "/extensions"), kind.value, count=len(made), **named)


def _names(session: Session, member: Membership, told: Collection[int], people: int) -> str:
    member.require_staff()
    found = [row.user.name for row in roster.students(session, member.course.id) if row.user_id in told]
    more = [f"{people - len(found)} more"] if people > len(found) else []
    return f": {', '.join(found)}{' and ' if found and more else ''}{''.join(more)}."


def _give_extensions(session: Session, member: Membership, form: FormData) -> list[int]:
    """Whom they were given to, for each."""
    zone = member.course.timezone
    made = extensions.give(
        session,
        member,
        assignment_ids=_numbers(forms.texts(form, "assignment")),
        user_ids=_students(session, member, form),
        due_at=clock.read(forms.text(form, "due_at"), zone, field="due_at"),
        days=_days(form),
        late_until=clock.read(forms.text(form, "late_until"), zone, field="late_until"),
        reason=forms.text(form, "reason"),
        now=db.now(session),
    )
    return [row.user_id for row in made]


def _grant_late_days(session: Session, member: Membership, form: FormData) -> list[int]:
    made = extensions.grant_late_days(
        session,
        member,
        user_ids=_students(session, member, form),
        days=_days(form) or 0,
        reason=forms.text(form, "reason"),
        now=db.now(session),
    )
    return [row.user_id for row in made]


_GIVE = {Kind.extension: _give_extensions, Kind.late_days: _grant_late_days}


@router.post(PATH + "/{extension_id}/withdraw")
def withdraw(
    course: str, extension_id: RowId, who: Someone, work: Work, reason: Annotated[str, Form()] = ""
) -> Response:
    """Take one back."""
    member = courses.membership(work, who.user, course)
    extensions.withdraw(work, member, extension_id, reason=reason, now=db.now(work))
    return forms.back(forms.course_path(course, "/extensions"), "withdrawn", anchor="given")


def _with_found(request: Request, session: Session, member: Membership, form: FormData) -> Response:
    """The page with whom the field finds added to the list."""
    member.require_staff()
    everybody = roster.students(session, member.course.id)
    try:
        found = picking.one(everybody, forms.text(form, "student"), field="student")
    except InvalidInputError as error:
        return _page(request, session, member, form=form, problem=error)
    email = next(row.user.email for row in everybody if row.user_id == found)
    pasted = forms.text(form, "pasted", _MOST_PASTED).rstrip()
    return _page(request, session, member, form=form, typed={"student": "", "pasted": f"{pasted}\n{email}".lstrip()})


def _students(session: Session, member: Membership, form: FormData) -> Collection[int]:
    """Those that were chosen: by the field, by section or by a list.

    Raises:
        InvalidInputError: somebody of the list is nobody, or nobody was chosen.
    """
    everybody = roster.students(session, member.course.id)
    sections = set(forms.texts(form, "section"))
    found = {row.user_id for row in everybody if sections and row.section in sections}
    found |= picking.several(everybody, forms.text(form, "pasted", _MOST_PASTED), field="pasted")
    if looked_for := forms.text(form, "student").strip():
        found.add(picking.one(everybody, looked_for, field="student"))
    if not found:
        raise InvalidInputError("Choose at least one student.", field="student")
    return found


def _days(form: FormData) -> int | None:
    text = forms.text(form, "days").strip()
    if not text:
        return None
    days = forms.signed(text)
    if days is None:
        raise InvalidInputError("Enter a whole number of days.", field="days")
    return days


def _numbers(texts: Sequence[str]) -> list[int]:
    return [number for number in map(forms.whole, texts) if number > 0]


def _page(
    request: Request,
    session: Session,
    member: Membership,
    *,
    only: int = 0,
    rung: str = "",
    form: FormData | None = None,
    typed: Mapping[str, str] | None = None,
    problem: InvalidInputError | None = None,
    done: str = "",
) -> Response:
    member.require_staff()
    now = db.now(session)
    given = extensions.of_course(session, member.course.id, user_id=only or None)
    granted = extensions.grants_of(session, member.course.id, user_id=only or None)
    everybody = roster.students(session, member.course.id)
    details = [one for one in courses.assignments_of(session, member, now) if one.row.due_at is not None]
    listed = next((row.user for row in everybody if row.user_id == only), None)
    begun = {**dict.fromkeys(_TYPED, ""), "kind": Kind.extension.value, "pasted": listed.email if listed else ""}
    sent = {name: forms.text(form, name, _MOST_PASTED) for name in _TYPED} if form else begun
    return render(
        request,
        "extensions.html",
        status=problem.status if problem else HTTPStatus.OK,
        member=member,
        course=member.course,
        students=everybody,
        sections=sorted({row.section for row in everybody if row.section}),
        details=details,
        only=listed,
        given=given[:MOST_SHOWN],
        granted=granted[:MOST_SHOWN],
        more=max(0, len(given) - MOST_SHOWN) + max(0, len(granted) - MOST_SHOWN),
        typed={**sent, **(typed or {})},
        picked=frozenset(
            forms.texts(form, "assignment") if form else [str(one.row.id) for one in details if one.slug == rung]
        ),
        picked_sections=frozenset(forms.texts(form, "section") if form else ()),
        problems={_FIELD.get(problem.field, problem.field): problem.message} if problem else {},
        done=done,
    )


_TYPED = ("student", "kind", "due_at", "late_until", "days", "reason", "pasted")
_FIELD = {"user_ids": "student"}
