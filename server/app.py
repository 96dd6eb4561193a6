"""Put the web tier together: there are no globals, everything it needs hangs on `app.state`.

    config      the frozen configuration
    database    sessions
    live        the listener that tells watchers of changes
    figures     what Prometheus is told of the database
    snapshots   looks at the lanes of the queue, shared among viewers (`server.http.waits`)
    outside     identity providers that people may log in with, and threads for asking them (`server.http.outside`)
    writers     slots for unsafe requests (`server.http.work`)
    turns       whose turn it is to have an expensive page made (`server.http.turns`)
    persons     what each person asks for at the moment (`server.http.rates`)
    too_fast    logins and tokens that are refused unseen for a moment
    health_slots  threads that say whether the server works (`server.api.health`)
    seen_slots  one for writing down that somebody is here (`server.http.identity`)

The pages add what they render with (`server.pages`).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from anyio import CapacityLimiter
from fastapi import Depends, FastAPI

from autograder.contract import MAX_SOURCE_BYTES
from server import pages
from server.accounts.oidc import relying_parties
from server.accounts.providers import load_providers
from server.api import (
    accounts,
    artefacts,
    courses,
    drafts,
    fleet,
    gradebook,
    health,
    leaderboard,
    metrics,
    nodes,
    quizzes,
    receipts,
    regrade_requests,
    regrades,
    staff,
    submissions,
)
from server.api.responses import errors as described
from server.config import Config
from server.db import Database
from server.grading.snapshots import Snapshots
from server.http import error_responses
from server.http.csrf import guard
from server.http.edge import Edge
from server.http.limits import BodyLimit
from server.http.live import Live
from server.http.outside import MAX_OUTSIDE
from server.http.rates import Networks, TooFast, for_persons, limited
from server.http.turns import Turns
from server.http.work import MAX_WRITERS
from server.service_heartbeat import Beating, Presence

API = "/api/v1"
MAX_BODY_BYTES = 6 * MAX_SOURCE_BYTES + 64 * 1024
"""The largest source in JSON that escapes every character, and something for the rest; counted while it arrives."""

DESCRIPTION = """Submit a kernel, follow its grading live, climb.

Log in with `POST /api/v1/tokens` and send the token as `Authorization: Bearer …`. Every error is
`{"error", "message", "field"}`."""


def create_app(config: Config) -> FastAPI:
    """The web tier for this configuration."""
    app = FastAPI(
        title="Kernel Ladder",
        version="1",
        description=DESCRIPTION,
        openapi_url=f"{API}/openapi.json",
        # Their scripts come from another host, which our own policy forbids.
        docs_url=None,
        redoc_url=None,
        dependencies=[Depends(limited), Depends(guard)],
        form_limits={"max_part_size": MAX_BODY_BYTES, "max_files": 2, "max_fields": 100},
        lifespan=_lifespan,
    )
    database = Database(config.database_url, statement_timeout_s=config.statement_timeout_s)
    app.state.config = config
    app.state.database = database
    app.state.live = Live(database, config.poll_s)
    app.state.snapshots = Snapshots()
    app.state.outside = relying_parties(load_providers(config.oidc), config.public_url)
    app.state.outside_slots = CapacityLimiter(MAX_OUTSIDE)
    app.state.writers = asyncio.Semaphore(MAX_WRITERS)
    app.state.turns = Turns()
    app.state.persons = for_persons(config)
    app.state.too_fast = TooFast()
    app.state.health_slots = CapacityLimiter(health.AT_ONCE)
    app.state.seen_slots = threading.BoundedSemaphore(1)
    app.add_middleware(BodyLimit, max_bytes=MAX_BODY_BYTES)
    app.add_middleware(Networks, config=config)
    app.add_middleware(Edge, config=config)
    error_responses.install(app)
    for module in (accounts, courses, submissions, drafts, quizzes, gradebook, receipts, leaderboard, nodes, artefacts):
        app.include_router(module.router, prefix=API, responses=described(429))
    for module in (regrades, regrade_requests, staff, fleet):
        app.include_router(module.router, prefix=API, responses=described(429))
    app.include_router(health.router)
    metrics.install(app)
    pages.install(app)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    alive = Beating(Presence(app.state.database, "web"))
    alive.start()
    yield
    alive.stop()
    app.state.database.dispose()
