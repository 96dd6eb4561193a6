"""The schedule of a course: every rung's dates, quotas and weight in one table that is edited in place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus

from fastapi import APIRouter, Request
from sqlalchemy.orm import Session
from starlette.datastructures import FormData
from starlette.responses import Response

from server import db
from server.courses import courses
from server.courses.courses import Membership
from server.errors import InvalidInputError
from server.http.identity import Someone
from server.http.work import Work, database_of
from server.pages import forms
from server.pages.forms import SentForm, WhatWasDone
from server.pages.labels import LANES
from server.pages.rendering import Slot, render, write
from server.schedule import schedule, typed
from server.schedule.schedule import Edit, ScheduleRefusedError
from server.surge import surge

router = APIRouter(include_in_schema=False)
PATH = "/courses/{course}/schedule"
_SAID = {
    "saved": "Saved. Assignments changed: {}.",
    "unchanged": "Nothing was changed.",
    "read": "Assignments added or updated: {}. Students do not see new ones until you make them visible here.",
}


MOST_DAYS_CHARS = 5
_SHOWN_CHARS = 20
"""So much of what was typed as a number of days is shown again."""


@dataclass(frozen=True)
class Move:
    """By how many days all dates are to move, as it was typed."""

    days: str = ""
    only_ahead: bool = True


@router.get(PATH)
def schedule_page(
    *,
    request: Request,
    course: str,
    who: Someone,
    work: Work,
    done: WhatWasDone,
    rung: str = "",
    days: str = "",
    which: str = "",
) -> Response:
    """The page; `rung` is one whose wait at the due date is estimated.

    With `days` the form holds all dates moved by so many days; nothing is changed before it is saved. Where `which` is
    `ahead`, dates that have passed stay.
    """
    member = courses.membership(work, who.user, course)
    move = Move(days.strip()[:_SHOWN_CHARS], only_ahead=which == "ahead")
    if not move.days:
        return _page(request, work, member, done=done.said(_SAID), rung=rung)
    number = (forms.signed(move.days) or 0) if len(move.days) <= MOST_DAYS_CHARS else 0
    try:
        found = schedule.moved(work, member, days=number, now=db.now(work), only_ahead=move.only_ahead)
    except InvalidInputError as error:
        return _page(request, work, member, move=move, problem=error)
    word = "day" if abs(number) == 1 else "days"
    said = f"Dates moved by {number:+d} {word} in {found.touched} of {len(found.rows)} rungs."
    return _page(request, work, member, edits=found.edits, move=move, unsaved=said, other_hours=found.other_hours)


@router.post(PATH, dependencies=[Slot], form_limits={"max_fields": forms.MOST_FIELDS})
def change_schedule(request: Request, course: str, who: Someone, form: SentForm) -> Response:
    """Save the rungs that were edited, all or none; what is refused comes back as it was typed."""
    edits = [_edit(form, slug) for slug in forms.texts(form, "rung")]
    reason = forms.text(form, "reason")

    def act(session: Session) -> list[str]:
        member = courses.membership(session, who.user, course)
        return [row.slug for row in schedule.change(session, member, edits, reason=reason)]

    try:
        slugs = write(request, act)
    except ScheduleRefusedError as error:
        with database_of(request).reading() as session:
            member = courses.membership(session, who.user, course)
            return _page(request, session, member, edits=edits, refused=error, reason=reason)
    only = {"rung": slugs[0]} if len(slugs) == 1 else {}
    done = "saved" if slugs else "unchanged"
    return forms.back(forms.course_path(course, "/schedule"), done, count=len(slugs), **only)


def _edit(form: FormData, slug: str) -> Edit:
    texts = {name: forms.text(form, f"{name}.{slug}", 100) for name in typed.FIELDS}
    texts["lanes"] = " ".join(forms.texts(form, f"lanes.{slug}"))
    return Edit(
        slug=slug,
        revision=forms.whole(forms.text(form, f"revision.{slug}")),
        seen=forms.text(form, f"seen.{slug}"),
        texts=texts,
    )


def _page(
    request: Request,
    session: Session,
    member: Membership,
    *,
    edits: Sequence[Edit] = (),
    refused: ScheduleRefusedError | None = None,
    done: str = "",
    rung: str = "",
    reason: str = "",
    move: Move | None = None,
    unsaved: str = "",
    other_hours: Sequence[str] = (),
    problem: InvalidInputError | None = None,
) -> Response:
    found = schedule.rows(session, member)
    sentences = [
        expected.sentence(LANES[lane])
        for one in found
        if one.row.slug == rung
        for lane, expected in surge.expectations(session, one.row, now=db.now(session))
    ]
    failed = refused or problem
    problems: Mapping[str, Mapping[str, str]] = refused.problems if refused else {}
    return render(
        request,
        "schedule.html",
        status=failed.status if failed else HTTPStatus.OK,
        member=member,
        course=member.course,
        rows=schedule.shown_again(found, edits, problems),
        refused=refused,
        done=done,
        rung=next((one.row for one in found if one.row.slug == rung), None),
        sentences=sentences,
        reason=reason,
        move=move or Move(),
        unsaved=unsaved,
        other_hours=other_hours,
        problem=problem.message if problem else "",
    )
