"""The settings of a course, and its end: archive it, open it again, begin the next term from it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated, Any
from zoneinfo import available_timezones

from fastapi import APIRouter, Form, Request
from sqlalchemy.orm import Session
from starlette.datastructures import FormData
from starlette.responses import Response

from server import db
from server.courses import courses
from server.courses.courses import Membership
from server.errors import ForbiddenError, InvalidInputError, LadderError
from server.http.identity import Identity, Someone
from server.http.work import Work, database_of
from server.models import Course, SourceSharing
from server.pages import forms
from server.pages.forms import SentForm, WhatWasDone
from server.pages.rendering import Slot, render, write
from server.terms import course_settings, erasure, terms
from server.terms.course_settings import LateRules, Settings

router = APIRouter(include_in_schema=False)
PATH = "/courses/{course}/settings"
_CHECKS = ("locks_rungs", "accepts_unserved_lanes", "public_leaderboards", "public_handouts", "keeps_erased_work")
_SAID = {
    "saved": "Saved.",
    "archived": "The course is archived: it can be read but not changed.",
    "opened": "The course can be changed again.",
    "purged": "People erased: {}.",
}
ZONES = sorted(name for name in available_timezones() if "/" in name or name == "UTC")


@router.get(PATH)
def settings_page(request: Request, course: str, who: Someone, work: Work, done: WhatWasDone) -> Response:
    """The page."""
    member = courses.membership(work, who.user, course)
    return _page(request, who, member, done=done.said(_SAID))


@router.post(PATH, dependencies=[Slot])
def change_settings(request: Request, course: str, who: Someone, form: SentForm) -> Response:
    """Save; what is refused comes back as it was typed."""
    typed = _typed(form)

    def act(session: Session) -> None:
        member = courses.membership(session, who.user, course)
        member.require_instructor()
        course_settings.change(session, member, _meant(typed), revision=forms.whole(typed["revision"]))

    try:
        write(request, act)
    except InvalidInputError as error:
        return _refused(request, who, course, error, typed=typed)
    return forms.back(forms.course_path(course, "/settings"), "saved")


@router.post(PATH + "/archive", dependencies=[Slot])
def archive(request: Request, course: str, who: Someone, typed: Annotated[str, Form()] = "") -> Response:
    """End the course."""

    def act(session: Session) -> None:
        member = courses.membership(session, who.user, course, even_archived=True)
        terms.archive(session, member, typed=typed, now=db.now(session))

    try:
        write(request, act)
    except InvalidInputError as error:
        return _refused(request, who, course, error, archiving=typed)
    return forms.back(forms.course_path(course, "/settings"), "archived")


@router.post(PATH + "/open")
def open_again(course: str, who: Someone, work: Work) -> Response:
    """Let an archived course be changed again."""
    terms.open_again(work, courses.membership(work, who.user, course, even_archived=True))
    return forms.back(forms.course_path(course, "/settings"), "opened")


@router.post(PATH + "/clone", dependencies=[Slot])
def clone(
    *,
    request: Request,
    course: str,
    who: Someone,
    slug: Annotated[str, Form()] = "",
    title: Annotated[str, Form()] = "",
    weeks: Annotated[str, Form()] = "",
) -> Response:
    """Begin the next term from this course."""
    typed = {"slug": slug, "title": title, "weeks": weeks}

    def act(session: Session) -> str:
        member = courses.membership(session, who.user, course, even_archived=True)
        made = terms.clone(
            session, member, slug=slug.strip(), title=title, weeks=forms.whole(weeks.strip()), now=db.now(session)
        )
        return made.slug

    try:
        made = write(request, act)
    except ForbiddenError:
        raise
    except LadderError as error:
        return _refused(request, who, course, error, cloning=typed)
    return forms.back(forms.course_path(made, "/schedule"))


@router.post(PATH + "/purge", dependencies=[Slot])
def purge(request: Request, course: str, who: Someone, typed: Annotated[str, Form()] = "") -> Response:
    """Forget the people of an archived course now; an admin's alone to do."""

    def act(session: Session) -> int:
        member = courses.membership(session, who.user, course, even_archived=True)
        if not member.user.is_admin:
            raise ForbiddenError("Only an admin can erase the people of a course.")
        terms.check_typed(member.course, typed)
        return erasure.purge(session, member.course, now=db.now(session), actor=member.user).erased

    try:
        count = write(request, act)
    except InvalidInputError as error:
        return _refused(request, who, course, error, purging=typed)
    return forms.back(forms.course_path(course, "/settings"), "purged", count=count)


def _typed(form: FormData) -> dict[str, str]:
    names = (
        "title",
        "timezone",
        "source_sharing",
        "retained_days",
        "late_days",
        "late_days_per_assignment",
        "late_penalty",
        "slack",
    )
    return {name: forms.text(form, name, 300) for name in (*names, *_CHECKS, "revision")}


def _as_typed(course: Course) -> dict[str, str]:
    return {
        "title": course.title,
        "timezone": course.timezone,
        "source_sharing": course.source_sharing.value,
        "retained_days": _shown(course.retained_days),
        "late_days": str(course.late_days),
        "late_days_per_assignment": _shown(course.late_days_per_assignment),
        "late_penalty": f"{course.late_penalty * 100:.10g}",
        "slack": f"{course.slack_s / 60:.10g}",
        "revision": str(course.revision),
        **{name: "on" if getattr(course, name) else "" for name in _CHECKS},
    }


def _meant(typed: Mapping[str, str]) -> Settings:
    each = typed["late_days_per_assignment"].strip()
    return Settings(
        title=typed["title"],
        timezone=typed["timezone"].strip(),
        locks_rungs=bool(typed["locks_rungs"]),
        accepts_unserved_lanes=bool(typed["accepts_unserved_lanes"]),
        public_leaderboards=bool(typed["public_leaderboards"]),
        public_handouts=bool(typed["public_handouts"]),
        source_sharing=_sharing(typed["source_sharing"]),
        keeps_erased_work=bool(typed["keeps_erased_work"]),
        retained_days=_whole(typed, "retained_days") if typed["retained_days"].strip() else None,
        late=LateRules(
            late_days=_whole(typed, "late_days"),
            late_days_per_assignment=_whole(typed, "late_days_per_assignment") if each else None,
            late_penalty=_number(typed, "late_penalty") / 100,
            slack_s=round(_number(typed, "slack") * 60),
        ),
    )


def _sharing(typed: str) -> SourceSharing:
    if typed not in list(SourceSharing):
        raise InvalidInputError("Choose one of these.", field="source_sharing")
    return SourceSharing(typed)


def _whole(typed: Mapping[str, str], name: str) -> int:
    value = forms.whole(typed[name].strip())
    if value < 0:
        raise InvalidInputError("Enter a whole number.", field=name)
    return value


def _number(typed: Mapping[str, str], name: str) -> float:
    try:
        value = float(typed[name].strip() or "0")
    except ValueError:
        value = math.nan
    if not 0 <= value < 1e6:  # noqa: PLR2004  # what follows it says more exactly what can be meant
        raise InvalidInputError("Enter a number of 0 or more.", field=name)
    return value


def _shown(value: int | None) -> str:
    return "" if value is None else str(value)


def _refused(request: Request, who: Identity, course: str, problem: LadderError, **given: Any) -> Response:
    with database_of(request).reading() as session:
        member = courses.membership(session, who.user, course)
        return _page(request, who, member, problem=problem, **given)


def _page(
    request: Request,
    who: Identity,
    member: Membership,
    *,
    problem: LadderError | None = None,
    typed: Mapping[str, str] | None = None,
    **given: Any,
) -> Response:
    member.require_instructor()
    field = (problem.field if isinstance(problem, InvalidInputError) else "") if problem else None
    problems = {{"slack_s": "slack"}.get(field, field): problem.message} if problem and field is not None else {}
    return render(
        request,
        "settings.html",
        status=problem.status if problem else HTTPStatus.OK,
        member=member,
        course=member.course,
        typed=typed or _as_typed(member.course),
        zones=ZONES,
        problems=problems,
        is_admin=who.user.is_admin,
        **{"done": "", "archiving": None, "cloning": None, "purging": None, **given},
    )
