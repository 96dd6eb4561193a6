"""Whether the server works."""

from __future__ import annotations

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Request

from autograder.contract import Lane
from server.api.responses import errors
from server.api.schemas import HealthRead
from server.db import Database, now
from server.http.work import database_of
from server.nodes import nodes

router = APIRouter(tags=["health"])

AT_ONCE = 2
"""Of these answers, each in a thread of its own."""


@router.get("/healthz", responses=errors(503), summary="Whether the database answers")
async def health(request: Request) -> HealthRead:
    """For a load balancer or a supervisor.

    It waits for no thread that makes pages: a web process with much to do is not one that is broken.
    """
    slots: CapacityLimiter = request.app.state.health_slots
    lanes = await to_thread.run_sync(_lanes, database_of(request), limiter=slots)
    return HealthRead(status="ok", lanes=lanes)


def _lanes(database: Database) -> list[Lane]:
    with database.reading() as session:
        return sorted(nodes.lanes_in_service(session, now=now(session)))
