"""The stream that keeps a submission's page as it is: the parts that changed, as HTML.

`part` carries a part's name and its HTML, `title` the title for the tab, `end` nothing: the state is final. A stream
holds no thread and no session; whoever watches is looked up again before anything is sent.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.sse import EventSourceResponse, ServerSentEvent

from server.errors import LadderError
from server.http.identity import Someone, identify, require
from server.http.live import Live
from server.http.work import database_of
from server.models import User
from server.pages.rendering import fragment
from server.pages.sheet import sheet_of
from server.pages.submission import PARTS
from server.submissions import service as submissions

router = APIRouter(include_in_schema=False)
WAITING_S = 2.0
"""A place in the queue moves without the submission changing; it is looked at so often."""


@dataclass(frozen=True)
class Snapshot:
    """A submission's parts at one time."""

    submission_id: int
    revision: int
    is_final: bool
    title: str
    parts: Mapping[str, str]


def first_snapshot(public_id: str, request: Request, who: Someone) -> Snapshot:
    """The submission when the stream begins; an error here is an ordinary answer."""
    return _snapshot(public_id, request, who.user)


@router.get("/submissions/{public_id}/live", response_class=EventSourceResponse)
async def follow(
    public_id: str, request: Request, now: Annotated[Snapshot, Depends(first_snapshot)]
) -> AsyncIterator[ServerSentEvent]:
    """Send every part once, because the page may be older than the stream, then each part that changes."""
    live: Live = request.app.state.live
    for event in _changed(now, None):
        yield event
    async with aclosing(live.changes(now.submission_id, seen=now.revision, heartbeat_s=WAITING_S)) as changes:
        while not now.is_final:
            await anext(changes)
            fresh = await run_in_threadpool(_look_again, public_id, request)
            if fresh is None:
                return
            for event in _changed(fresh, now):
                yield event
            now = fresh
    yield ServerSentEvent(event="end", data={})


def _look_again(public_id: str, request: Request) -> Snapshot | None:
    """The submission now; `None` once the login has ended or the viewer may not see it any more."""
    try:
        return _snapshot(public_id, request, require(identify(request)).user)
    except LadderError:
        return None


def _snapshot(public_id: str, request: Request, user: User) -> Snapshot:
    with database_of(request).reading() as session:
        submission = submissions.find(session, user, public_id)
        sheet = sheet_of(session, submission, user, max_attempts=request.app.state.config.max_attempts)
    parts = {name: fragment(request, f"submission/{name}.html", sheet=sheet, view=sheet.view) for name in PARTS}
    return Snapshot(sheet.view.id, sheet.view.revision, sheet.view.is_final, sheet.title, parts)


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
