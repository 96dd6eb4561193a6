"""The unit of work: one request is one transaction, committed at the edge before the response is sent.

Both dependencies have the scope `function`: FastAPI ends them after the endpoint returned and before the first byte of
the response leaves, so that a commit that fails is a 500 and never a success that did not happen.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager
from datetime import datetime, timedelta
from typing import Annotated

from anyio import CancelScope, CapacityLimiter, to_thread
from fastapi import Depends, Path, Request
from sqlalchemy.orm import Session

from server.config import Config
from server.db import Database, now, show_at

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
MAX_WRITERS = 8
"""Writers on SQLite wait for each other in threads, and the one that holds the lock needs a thread to go on. With more
waiters than threads nobody would move until the busy timeout; so few that readers always find a thread as well."""


def config_of(request: Request) -> Config:
    """The configuration that the application was made with."""
    config: Config = request.app.state.config
    return config


def database_of(request: Request) -> Database:
    """The application's database."""
    database: Database = request.app.state.database
    return database


def arrived_at(request: Request, session: Session) -> datetime:
    """When the request was here with its last byte, by the database's clock; its wait since does not count.

    Never later, and earlier by no more than the database's answer takes on its way, which counts for whoever uploads.
    """
    arrived: float = request.state.arrived
    return now(session) - timedelta(seconds=time.monotonic() - arrived)


async def writer_slot(request: Request) -> AsyncIterator[None]:
    """Let at most `MAX_WRITERS` unsafe requests work at once."""
    if request.method in SAFE_METHODS:
        yield
        return
    async with request.app.state.writers:
        yield


async def unit_of_work(
    request: Request, _slot: Annotated[None, Depends(writer_slot, scope="function")]
) -> AsyncIterator[Session]:
    """A session that may write for an unsafe method, and one that only reads otherwise."""
    database = database_of(request)
    begin = database.reading if request.method in SAFE_METHODS else database.transaction
    async with _ended_in_a_thread(begin()) as session:
        if (at := shown_at(request)) is not None and request.method in SAFE_METHODS:
            show_at(session, at)
        yield session


def shown_at(request: Request) -> datetime | None:
    """The time that this request's pages show, where somebody looks at how things will be then; `None`: as it is."""
    at: datetime | None = getattr(request.state, "shown_at", None)
    return at


@asynccontextmanager
async def _ended_in_a_thread(scope: AbstractContextManager[Session]) -> AsyncIterator[Session]:
    """Begin here, because a session asks the database for nothing before its first query; end in a thread.

    That thread is none of the pool: if all of those wait for a connection, it is this end that gives one back.
    """
    session = scope.__enter__()
    leave, limiter = scope.__exit__, CapacityLimiter(1)
    try:
        yield session
    except BaseException as error:
        with CancelScope(shield=True):
            await to_thread.run_sync(leave, type(error), error, error.__traceback__, limiter=limiter)
        raise
    else:
        with CancelScope(shield=True):
            await to_thread.run_sync(leave, None, None, None, limiter=limiter)


async def _settings(request: Request) -> Config:
    return config_of(request)


# What waits for nothing is asynchronous: FastAPI sends every other dependency to a thread and back.
Work = Annotated[Session, Depends(unit_of_work, scope="function")]
Settings = Annotated[Config, Depends(_settings)]
RowId = Annotated[int, Path(ge=1, le=2**31 - 1)]
"""In an address: a number that both databases can look for."""
