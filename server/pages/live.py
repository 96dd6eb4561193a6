"""The stream that keeps a submission's page as it is: the parts that changed, as HTML.

`part` carries a part's name and its HTML, `title` the title for the tab, `end` nothing: the state is final. A stream
holds no thread and no session; whoever watches is looked up again before anything of a submission is sent.

While it waits, its place in the queue moves without the submission changing. That part is made from the look that all
viewers share, so a viewer of a waiting submission costs no query; the login is looked up every `LOGIN_S`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent

from server.errors import LadderError
from server.http.identity import Identity, Someone, identify, require
from server.http.waits import followed, newest_wait, wait_of
from server.http.work import database_of
from server.models import Lane
from server.pages.queue_text import PLACE, place_context
from server.pages.rendering import fragment
from server.pages.submission import PARTS
from server.pages.submission_view import sheet_of
from server.submissions import submissions

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class Snapshot:
    """A submission's parts at one time."""

    submission_id: int
    lane: Lane
    own: bool
    revision: int
    is_waiting: bool
    is_final: bool
    title: str
    parts: Mapping[str, str]


def first_snapshot(public_id: str, request: Request, who: Someone) -> Snapshot:
    """The submission when the stream begins; an error here is an ordinary answer."""
    return _snapshot(public_id, request, who)


@router.get("/submissions/{public_id}/live", response_class=EventSourceResponse)
async def follow(
    public_id: str, request: Request, now: Annotated[Snapshot, Depends(first_snapshot)]
) -> AsyncIterator[ServerSentEvent]:
    """Send every part once, because the page may be older than the stream, then each part that changes."""
    for event in _changed(now, None):
        yield event
    stream = followed(request, public_id, now.submission_id, now, look_again=_look_again, moved=_moved)
    async with aclosing(stream) as states:
        async for fresh in states:
            for event in _changed(fresh, now):
                yield event
            now = fresh
    if now.is_final:
        yield ServerSentEvent(event="end", data={})


async def _moved(request: Request, now: Snapshot) -> Snapshot:
    """The same with its place in the queue as it is now."""
    wait = await newest_wait(request, now.lane, now.submission_id) if now.is_waiting else None
    if wait is None:
        return now
    html = fragment(request, f"submission/{PLACE}.html", **place_context(wait, now.lane, own=now.own))
    return now if html == now.parts[PLACE] else replace(now, parts={**now.parts, PLACE: html})


def _look_again(public_id: str, request: Request) -> Snapshot | None:
    """The submission now; `None` once the login has ended or the viewer may not see it any more."""
    try:
        return _snapshot(public_id, request, require(identify(request)))
    except LadderError:
        return None


def _snapshot(public_id: str, request: Request, identity: Identity) -> Snapshot:
    user = identity.user
    with database_of(request).reading() as session:
        submission = submissions.find(session, user, public_id)
        wait = wait_of(request, session, submission)
        sheet = sheet_of(session, submission, user, wait=wait, max_attempts=request.app.state.config.max_attempts)
    context = {
        "sheet": sheet,
        "view": sheet.view,
        "may_cancel": sheet.may_cancel,
        "csrf_token": identity.csrf_token,
        **place_context(wait, sheet.view.lane, own=sheet.own),
    }
    parts = {name: fragment(request, f"submission/{name}.html", **context) for name in PARTS}
    view = sheet.view
    return Snapshot(view.id, view.lane, sheet.own, view.revision, view.is_waiting, view.is_final, sheet.title, parts)


def _changed(new: Snapshot, old: Snapshot | None) -> list[ServerSentEvent]:
    """What a page that shows `old` has to be told."""
    events = [
        ServerSentEvent(event="part", data={"name": name, "html": html})
        for name, html in new.parts.items()
        if old is None or old.parts[name] != html
    ]
    if old is None or old.title != new.title:
        events.append(ServerSentEvent(event="title", data=new.title))
    return events
