"""Announcements of a course: everybody reads them, staff write them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Form, Query, Request
from sqlalchemy.orm import Session
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from server import announcements
from server.announcements import Draft, Shown
from server.courses import clock, courses
from server.courses.courses import Membership
from server.errors import ConflictError, InvalidInputError, LadderError
from server.http.identity import Identity, Someone
from server.http.work import RowId, Work, database_of
from server.models import Announcement
from server.pages.forms import WhatWasDone, back, course_path
from server.pages.markdown import markdown_html
from server.pages.rendering import Slot, render, write

router = APIRouter(include_in_schema=False)
PATH = "/courses/{course}/announcements"
DONE = {
    "published": "Published.",
    "planned": "Saved. It will be published at the set time.",
    "changed": "Saved. Earlier versions stay readable.",
    "withdrawn": "Withdrawn. Nobody can see it any more.",
}
PageNumber = Annotated[int, Query(ge=1, le=1000)]


@dataclass(frozen=True)
class Typed:
    """The form as it was sent."""

    title: str = ""
    text: str = ""
    publish_at: str = ""
    pinned: bool = False
    tell: bool = True
    revision: int = 0


def _typed(
    *,
    title: Annotated[str, Form()] = "",
    text: Annotated[str, Form()] = "",
    publish_at: Annotated[str, Form()] = "",
    pinned: Annotated[str, Form()] = "",
    tell: Annotated[str, Form()] = "",
    revision: Annotated[int, Form()] = 0,
) -> Typed:
    return Typed(title, text, publish_at, bool(pinned), bool(tell), revision)


Sent = Annotated[Typed, Depends(_typed)]


@router.get(PATH)
def announcements_page(
    *, request: Request, course: str, who: Someone, work: Work, done: WhatWasDone, page: PageNumber = 1
) -> Response:
    """All of them; those that the viewer had not seen are marked, and are seen from now on."""
    member = courses.membership(work, who.user, course)
    shown, more = announcements.listed(work, member, page=page - 1)
    response = render(
        request,
        "announcements.html",
        member=member,
        course=member.course,
        shown=shown,
        page=page,
        more=more,
        markdown=markdown_html,
        said=done.said(DONE),
    )
    response.background = _seen_after(request, who, shown)
    return response


@router.get(PATH + "/new")
def new_page(*, request: Request, course: str, who: Someone, work: Work, title: str = "", text: str = "") -> Response:
    """The form for staff; other pages lead here with words to begin with."""
    member = courses.staff_of(work, who.user, course)
    return _form(request, member, Typed(title[: announcements.TITLE_CHARS], text[: announcements.TEXT_CHARS]))


@router.post(PATH, dependencies=[Slot])
def publish(request: Request, course: str, who: Someone, typed: Sent) -> Response:
    """Write one."""

    def act(session: Session) -> Announcement:
        member = courses.membership(session, who.user, course)
        return announcements.write(session, member, _draft(typed, member))

    try:
        made = write(request, act)
    except InvalidInputError as error:
        return _refused(request, who, course, typed, error)
    return back(course_path(course, "/announcements"), "published" if made.told_at else "planned")


@router.get(PATH + "/{announcement_id}")
def announcement_page(
    *, request: Request, course: str, announcement_id: RowId, who: Someone, work: Work, done: WhatWasDone
) -> Response:
    """One, with what it said before."""
    member = courses.membership(work, who.user, course)
    shown = announcements.one(work, member, announcement_id)
    response = render(
        request,
        "announcement.html",
        member=member,
        course=member.course,
        item=shown,
        edits=announcements.edits_of(work, member, shown.row),
        markdown=markdown_html,
        said=done.said(DONE),
    )
    response.background = _seen_after(request, who, [shown])
    return response


@router.get(PATH + "/{announcement_id}/edit")
def edit_page(request: Request, course: str, announcement_id: RowId, who: Someone, work: Work) -> Response:
    """The form with what it says now."""
    member = courses.staff_of(work, who.user, course)
    row = announcements.one(work, member, announcement_id)
    return _form(request, member, _as_typed(row, member), shown=row)


@router.post(PATH + "/{announcement_id}", dependencies=[Slot])
def change(request: Request, course: str, announcement_id: RowId, who: Someone, typed: Sent) -> Response:
    """Change one."""

    def act(session: Session) -> None:
        member = courses.membership(session, who.user, course)
        announcements.edit(session, member, announcement_id, _draft(typed, member), revision=typed.revision)

    try:
        write(request, act)
    except (InvalidInputError, ConflictError) as error:
        return _refused(request, who, course, typed, error, announcement_id=announcement_id)
    return back(course_path(course, f"/announcements/{announcement_id}"), "changed")


@router.post(PATH + "/{announcement_id}/withdraw")
def withdraw(
    course: str, announcement_id: RowId, who: Someone, work: Work, revision: Annotated[int, Form()] = 0
) -> Response:
    """Take one back."""
    member = courses.membership(work, who.user, course)
    announcements.withdraw(work, member, announcement_id, revision=revision)
    return back(course_path(course, "/announcements"), "withdrawn")


def _draft(typed: Typed, member: Membership) -> Draft:
    at = clock.read(typed.publish_at, member.course.timezone, field="publish_at")
    return Draft(typed.title, typed.text, at, typed.pinned, typed.tell)


def _as_typed(shown: Shown, member: Membership) -> Typed:
    row = shown.row
    at = "" if shown.is_out else clock.typed(row.publish_at, member.course.timezone)
    return Typed(row.title, row.text, at, row.pinned, row.tell, row.revision)


def _refused(
    request: Request, who: Identity, course: str, typed: Typed, error: LadderError, *, announcement_id: int = 0
) -> Response:
    """The form as it was sent, and why it was not taken; with a conflict, what stands there now is shown beside it."""
    with database_of(request).reading() as session:
        member = courses.membership(session, who.user, course)
        shown = announcements.one(session, member, announcement_id) if announcement_id else None
        if isinstance(error, ConflictError) and shown is not None:
            typed = replace(typed, revision=shown.row.revision)
        return _form(request, member, typed, shown=shown, error=error)


def _form(
    request: Request, member: Membership, typed: Typed, *, shown: Shown | None = None, error: LadderError | None = None
) -> Response:
    return render(
        request,
        "announcement_form.html",
        status=error.status if error else HTTPStatus.OK,
        member=member,
        course=member.course,
        typed=typed,
        item=shown,
        error=error,
        field=error.field if isinstance(error, InvalidInputError) else "",
        conflict=isinstance(error, ConflictError),
        preview=markdown_html(typed.text) if error else "",
        most=announcements.TEXT_CHARS,
        markdown=markdown_html,
    )


def _seen_after(request: Request, who: Identity, shown: Sequence[Shown]) -> BackgroundTask | None:
    """Once the page is sent, write down what was seen for the first time; staff who look as a student are not them."""
    new = [item.row.id for item in shown if item.is_new and item.is_out and who.preview is None]
    return BackgroundTask(_mark_seen, request, who.user.id, new) if new else None


async def _mark_seen(request: Request, user_id: int, new: Sequence[int]) -> None:
    async with request.app.state.writers:
        await run_in_threadpool(write, request, lambda session: announcements.mark_seen(session, user_id, new))
