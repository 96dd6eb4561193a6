"""Extensions and extra late days: for one student or many, with a reason; and what was given so far."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Form, Request
from sqlalchemy.orm import Session
from starlette.datastructures import FormData
from starlette.responses import Response

from server import db
from server.courses import clock
from server.courses import service as courses
from server.courses.service import Membership
from server.errors import InvalidInputError
from server.gradebook import extensions
from server.http.identity import Identity, Someone
from server.http.work import RowId, Work, database_of
from server.models import Enrolment
from server.pages import forms
from server.pages.forms import SentForm, WhatWasDone
from server.pages.rendering import Slot, render, write
from server.roster import service as roster

router = APIRouter(include_in_schema=False)
PATH = "/courses/{course}/extensions"
MOST_SHOWN = 300
_MINUS = "-\N{MINUS SIGN}"
_SAID = {
    "given": "Extensions given: {}. Each student has a notification.",
    "granted": "Late days were set for {} students. Each has a notification.",
    "withdrawn": "The extension is withdrawn: the assignment's own dates hold again.",
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
) -> Response:
    """The page; `user` is a student who is chosen already and alone listed, `assignment` the slug of one."""
    member = courses.membership(work, who.user, course)
    only = forms.whole(user, 0)
    return _page(request, work, member, only=only, chosen=[user], rung=assignment, done=done.said(_SAID))


@router.post(PATH, dependencies=[Slot])
def give(request: Request, course: str, who: Someone, form: SentForm) -> Response:
    """Give extensions; what is refused comes back as it was chosen and typed."""

    def act(session: Session) -> int:
        member = courses.staff_of(session, who.user, course)
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
        return len(made)

    return _done(request, who, course, form, act=act, done="given")


@router.post(PATH + "/late-days", dependencies=[Slot])
def grant(request: Request, course: str, who: Someone, form: SentForm) -> Response:
    """Give late days for the term, or take some."""

    def act(session: Session) -> int:
        member = courses.staff_of(session, who.user, course)
        return len(
            extensions.grant_late_days(
                session,
                member,
                user_ids=_students(session, member, form),
                days=_days(form) or 0,
                reason=forms.text(form, "reason"),
                now=db.now(session),
            )
        )

    return _done(request, who, course, form, act=act, done="granted")


@router.post(PATH + "/{extension_id}/withdraw")
def withdraw(
    course: str, extension_id: RowId, who: Someone, work: Work, reason: Annotated[str, Form()] = ""
) -> Response:
    """Take one back."""
    member = courses.membership(work, who.user, course)
    extensions.withdraw(work, member, extension_id, reason=reason, now=db.now(work))
    return forms.back(forms.course_path(course, "/extensions"), "withdrawn", anchor="given")


def _done(
    request: Request, who: Identity, course: str, form: FormData, *, act: Callable[[Session], int], done: str
) -> Response:
    try:
        count = write(request, act)
    except InvalidInputError as error:
        with database_of(request).reading() as session:
            member = courses.membership(session, who.user, course)
            return _page(
                request, session, member, chosen=forms.texts(form, "student"), form=form, problem=error, which=done
            )
    return forms.back(forms.course_path(course, "/extensions"), done, count=count)


def _students(session: Session, member: Membership, form: FormData) -> Collection[int]:
    """Those that were chosen, one by one, by section or by a pasted list.

    Raises:
        InvalidInputError: a pasted line is nobody's, or nobody was chosen.
    """
    everybody = roster.students(session, member.course.id)
    sections = set(forms.texts(form, "section"))
    found = set(_numbers(forms.texts(form, "student")))
    found |= {row.user_id for row in everybody if sections and row.section in sections}
    found |= _pasted(everybody, forms.text(form, "pasted", 100_000))
    if not found:
        raise InvalidInputError("Choose at least one student.", field="user_ids")
    return found


def _pasted(everybody: Sequence[Enrolment], text: str) -> set[int]:
    known = {row.student_number.casefold(): row.user_id for row in everybody if row.student_number}
    known |= {row.user.email: row.user_id for row in everybody}
    asked = [word.strip().casefold() for line in text.splitlines() for word in line.replace(";", ",").split(",")]
    unknown = [word for word in asked if word and word not in known]
    if unknown:
        more = f", and {len(unknown) - 3} more" if len(unknown) > 3 else ""  # noqa: PLR2004  # as many as are named
        named = ", ".join(f"“{word[:60]}”" for word in unknown[:3])
        raise InvalidInputError(f"No student of this course has this address or id: {named}{more}.", field="pasted")
    return {known[word] for word in asked if word}


def _days(form: FormData) -> int | None:
    text = forms.text(form, "days").strip()
    if not text:
        return None
    sign = -1 if text[0] in _MINUS else 1
    days = forms.whole(text.lstrip(f"+{_MINUS}"))
    if days < 0:
        raise InvalidInputError("It is a whole number of days.", field="days")
    return sign * days


def _numbers(texts: Sequence[str]) -> list[int]:
    return [number for number in map(forms.whole, texts) if number > 0]


def _page(
    request: Request,
    session: Session,
    member: Membership,
    *,
    chosen: Sequence[str],
    only: int = 0,
    rung: str = "",
    form: FormData | None = None,
    problem: InvalidInputError | None = None,
    which: str = "",
    done: str = "",
) -> Response:
    member.require_staff()
    now = db.now(session)
    given = extensions.of_course(session, member.course.id, user_id=only or None)
    granted = extensions.grants_of(session, member.course.id, user_id=only or None)
    everybody = roster.students(session, member.course.id)
    details = [one for one in courses.assignments_of(session, member, now) if one.row.due_at is not None]
    picked = [str(one.row.id) for one in details if one.slug == rung]
    return render(
        request,
        "extensions.html",
        status=problem.status if problem else HTTPStatus.OK,
        member=member,
        course=member.course,
        students=everybody,
        sections=sorted({row.section for row in everybody if row.section}),
        details=details,
        chosen=frozenset(_numbers(chosen)),
        only=next((row.user for row in everybody if row.user_id == only), None),
        given=given[:MOST_SHOWN],
        granted=granted[:MOST_SHOWN],
        more=max(0, len(given) - MOST_SHOWN) + max(0, len(granted) - MOST_SHOWN),
        typed={name: forms.text(form, name, 100_000) for name in _TYPED} if form else dict.fromkeys(_TYPED, ""),
        picked=frozenset(forms.texts(form, "assignment") if form else picked),
        picked_sections=frozenset(forms.texts(form, "section") if form else ()),
        problems={problem.field: problem.message} if problem else {},
        which=which,
        done=done,
    )


_TYPED = ("due_at", "late_until", "days", "reason", "pasted")
