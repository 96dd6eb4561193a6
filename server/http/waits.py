"""What viewers of a waiting submission are told of its turn, from the looks that this process shares among them."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Protocol, TypeVar

from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from sqlalchemy.orm import Session

from server.errors import LadderError
from server.grading.forecast import LaneForecast, Wait
from server.grading.snapshots import Snapshots
from server.grading.states import WAITING
from server.http.identity import identify, require
from server.http.live import Live
from server.http.work import database_of
from server.models import Lane, Submission
from server.submissions import submissions

WAITING_S = 5.0
"""The place in the queue is looked at so often; a change of the submission itself is told at once."""
LOGIN_S = 15.0
"""A login that ended, or a course that was left, ends the stream after so long at the latest."""


class Shown(Protocol):
    """A submission as one front shows it."""

    @property
    def revision(self) -> int:
        """Of the submission when it was looked at."""

    @property
    def is_final(self) -> bool:
        """Nothing more comes."""


T = TypeVar("T", bound=Shown)


async def followed(
    request: Request,
    public_id: str,
    submission_id: int,
    shown: T,
    *,
    look_again: Callable[[str, Request], T | None],
    moved: Callable[[Request, T], Awaitable[T]],
) -> AsyncGenerator[T, None]:
    """What `shown` becomes, until it is final or its viewer may not see it any more; the same again is not left out.

    Args:
        look_again: the submission now, for this viewer; `None` once they may not see it. It runs in a thread.
        moved: the same with its place in the queue as it is now, which is looked up once for everybody.
    """
    live: Live = request.app.state.live
    seen_at = time.monotonic()
    async with aclosing(live.changes(submission_id, seen=shown.revision, heartbeat_s=WAITING_S)) as changes:
        while not shown.is_final:
            if await anext(changes) is not None:
                fresh: T | None = await run_in_threadpool(look_again, public_id, request)
                seen_at = time.monotonic()
            elif time.monotonic() - seen_at < LOGIN_S:
                fresh = await moved(request, shown)
            else:
                # Logins end without a change of the submission too.
                fresh = shown if await run_in_threadpool(still_sees, request, public_id) else None
                seen_at = time.monotonic()
            if fresh is None:
                return
            shown = fresh
            yield shown


def snapshots_of(request: Request) -> Snapshots:
    """The process's looks at its lanes."""
    snapshots: Snapshots = request.app.state.snapshots
    return snapshots


def wait_of(request: Request, session: Session, submission: Submission) -> Wait | None:
    """What it can be told; `None` if it does not wait, or came a moment ago."""
    return snapshots_of(request).wait_of(session, submission) if submission.state in WAITING else None


async def newest_wait(request: Request, lane: Lane, submission_id: int) -> Wait | None:
    """What a stream tells between two changes of its submission: nothing of it is looked up for one viewer alone."""
    seen = snapshots_of(request).peek(lane)
    if seen is None:
        seen = await run_in_threadpool(_newest, request, lane)
    return seen.waits.get(submission_id)


def still_sees(request: Request, public_id: str) -> bool:
    """Whether the viewer's login lives and they may see the submission; a fraction of what showing it costs."""
    try:
        identity = require(identify(request))
        with database_of(request).reading() as session:
            submissions.find(session, identity.user, public_id)
    except LadderError:
        return False
    return True


def _newest(request: Request, lane: Lane) -> LaneForecast:
    with database_of(request).reading() as session:
        return snapshots_of(request).newest(session, lane)
