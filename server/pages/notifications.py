"""What one was told: the list behind the bell, and how one wants to be told."""

from __future__ import annotations

from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from server.courses import courses
from server.http.identity import Someone
from server.http.work import RowId, Work
from server.messages import messages
from server.messages.kinds import KINDS
from server.messages.messages import Wanted
from server.models import Notification, NotificationKind
from server.pages.forms import SentForm, WhatWasDone, back
from server.pages.rendering import render, write

router = APIRouter(include_in_schema=False)
PAGE = 50
DONE = {"read": "Everything is marked as read.", "wanted": "Saved."}
Before = Annotated[int | None, Query(ge=1, le=2**53)]


async def _writing(request: Request) -> AsyncIterator[None]:
    """A place among the writers for a request that looks safe: opening a notification marks it as read."""
    async with request.app.state.writers:
        yield


@router.get("/notifications")
def notifications_page(
    request: Request, who: Someone, work: Work, done: WhatWasDone, before: Before = None
) -> Response:
    """The list, the newest first."""
    told = messages.told(work, who.user.id, before=before, most=PAGE + 1)
    return render(
        request,
        "notifications.html",
        told=told[:PAGE],
        more=told[PAGE - 1].row.id if len(told) > PAGE else None,
        before=before,
        kinds=KINDS,
        said=done.said(DONE),
    )


@router.get("/notifications/settings")
def settings_page(request: Request, who: Someone, work: Work, done: WhatWasDone) -> Response:
    """What one is told, and how; what only staff get is shown to staff."""
    is_staff = any(member.is_staff for member in courses.courses_of(work, who.user))
    wanted = messages.wanted(work, who.user.id)
    kinds = [(kind, about, wanted[kind]) for kind, about in KINDS.items() if is_staff or not about.staff]
    return render(request, "notification_settings.html", kinds=kinds, said=done.said(DONE))


@router.post("/notifications/settings")
def set_wanted(who: Someone, work: Work, form: SentForm) -> Response:
    """Save them; a kind that the form did not have stays as it is."""
    asked = {item for item in form.getlist("kind") if item in set(NotificationKind)}
    wanted = {
        NotificationKind(kind): Wanted(in_app=f"{kind}.app" in form, by_mail=f"{kind}.mail" in form)
        for kind in map(str, asked)
    }
    messages.want(work, who.user.id, wanted)
    return back("/notifications/settings", "wanted")


@router.post("/notifications/read")
def read_all(who: Someone, work: Work, form: SentForm) -> Response:
    """Mark as read what the page showed; what came since stays."""
    newest = form.get("newest")
    if isinstance(newest, str) and newest.isascii() and newest.isdigit() and len(newest) <= 15:  # noqa: PLR2004  # digits
        messages.read_all(work, who.user.id, up_to=int(newest))
    return back("/notifications", "read")


@router.get("/notifications/{notification_id}", dependencies=[Depends(_writing)])
async def open_notification(request: Request, notification_id: RowId, who: Someone) -> Response:
    """To what it is about; it is read from then on."""

    def act() -> Notification:
        found: Notification = write(request, lambda session: messages.read(session, who.user.id, notification_id))
        return found

    return RedirectResponse((await run_in_threadpool(act)).url, status_code=HTTPStatus.SEE_OTHER)
