"""Whether the server works."""

from __future__ import annotations

from fastapi import APIRouter
from sqlalchemy import text

from server.api.responses import errors
from server.api.schemas import HealthRead
from server.http.work import Work

router = APIRouter(tags=["health"])


@router.get("/healthz", responses=errors(503), summary="Whether the database answers")
def health(work: Work) -> HealthRead:
    """For a load balancer or a supervisor."""
    work.execute(text("SELECT 1"))
    return HealthRead(status="ok")
