"""Whether the server works."""

from __future__ import annotations

from fastapi import APIRouter

from server.api.responses import errors
from server.api.schemas import HealthRead
from server.db import now
from server.http.work import Work
from server.nodes import service as nodes

router = APIRouter(tags=["health"])


@router.get("/healthz", responses=errors(503), summary="Whether the database answers")
def health(work: Work) -> HealthRead:
    """For a load balancer or a supervisor."""
    return HealthRead(status="ok", lanes=sorted(nodes.lanes_in_service(work, now=now(work))))
