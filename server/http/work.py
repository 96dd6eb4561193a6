"""The unit of work: one request is one transaction, committed at the edge before the response is sent.

Both dependencies have the scope `function`: FastAPI ends them after the endpoint returned and before the first byte of
the response leaves, so that a commit that fails is a 500 and never a success that did not happen.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Annotated

from fastapi import Depends, Request
from sqlalchemy.orm import Session

from server.config import Config
from server.db import Database

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


async def writer_slot(request: Request) -> AsyncIterator[None]:
    """Let at most `MAX_WRITERS` unsafe requests work at once."""
    if request.method in SAFE_METHODS:
        yield
        return
    async with request.app.state.writers:
        yield


def unit_of_work(request: Request, _slot: Annotated[None, Depends(writer_slot, scope="function")]) -> Iterator[Session]:
    """A session that may write for an unsafe method, and one that only reads otherwise."""
    database = database_of(request)
    begin = database.reading if request.method in SAFE_METHODS else database.transaction
    with begin() as session:
        yield session


Work = Annotated[Session, Depends(unit_of_work, scope="function")]
Settings = Annotated[Config, Depends(config_of)]
