"""The installation's nodes, for admins: what each may grade, a code to join by, and the end of a key."""

from __future__ import annotations

from datetime import datetime
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter
from pydantic import AwareDatetime, Field
from sqlalchemy import select
from sqlalchemy.orm import Session

from server.api.responses import errors
from server.api.schemas import Create, Read
from server.db import now
from server.http.identity import Admin
from server.http.work import Settings, Work
from server.models import Course, Lane, Node, User
from server.nodes import nodes
from server.operations import fleet

router = APIRouter(tags=["nodes"])
_Slugs = Annotated[list[str] | None, Field(description="Slugs; null for every course.", max_length=1000)]
_Name = Annotated[str, Field(max_length=60)]


class NodeRead(Read):
    """A node and what it may grade."""

    name: str
    granted_lanes: list[Lane]
    courses: _Slugs
    lanes: Annotated[list[Lane], Field(description="Those of the granted ones that it reports.")]
    has_key: Annotated[bool, Field(description="False where it was revoked, or has to join again.")]
    last_seen_at: datetime | None
    disabled_at: datetime | None

    @classmethod
    def of(cls, session: Session, row: Node) -> NodeRead:
        """One of them."""
        slugs = None
        if row.granted_courses is not None:
            named = select(Course.slug).where(Course.id.in_(row.granted_courses)).order_by(Course.slug)
            slugs = list(session.scalars(named))
        return cls(
            name=row.name, granted_lanes=row.granted_lanes, courses=slugs, lanes=row.lanes,
            has_key=row.public_key is not None, last_seen_at=row.last_seen_at, disabled_at=row.disabled_at,
        )  # fmt: skip


class GrantCreate(Create):
    """What a node may grade."""

    lanes: Annotated[list[Lane], Field(min_length=1, max_length=len(Lane))]
    courses: _Slugs = None


class InviteCreate(GrantCreate):
    """A machine is to become a node of this name."""

    name: _Name


class InviteRead(Read):
    """By what it joins, once, within a day."""

    name: str
    code: Annotated[str, Field(description="Shown this once.")]
    command: Annotated[str, Field(description="What to type on that machine.")]


class RevokeCreate(Create):
    """A key is not trusted any more."""

    since: Annotated[AwareDatetime | None, Field(description="What it measured from then on is measured again.")] = None


@router.get("/nodes", responses=errors(401, 403), summary="All nodes")
def list_nodes(_who: Admin, work: Work) -> list[NodeRead]:
    """By name; admins only, as all of this."""
    return [NodeRead.of(work, row) for row in nodes.all_nodes(work)]


@router.post("/nodes/invites", status_code=HTTPStatus.CREATED, responses=errors(401, 403, 422), summary="Add a node")
def invite(body: InviteCreate, who: Admin, work: Work, config: Settings) -> InviteRead:
    """A code with which one machine joins within a day; one made for this name before is void."""
    grant = nodes.make_grant(work, body.lanes, body.courses)
    actor = work.get_one(User, who.user.id)
    code = fleet.invite(work, name=body.name, grant=grant, actor=actor, now=now(work))
    return InviteRead(name=body.name, code=code, command=fleet.join_command(config, body.name, code))


@router.put("/nodes/{name}/grant", responses=errors(401, 403, 404, 422), summary="Say what a node may grade")
def give(name: str, body: GrantCreate, who: Admin, work: Work) -> NodeRead:
    """This and no more from now on; what it works on may finish."""
    grant = nodes.make_grant(work, body.lanes, body.courses)
    return NodeRead.of(work, fleet.give(work, name=name, grant=grant, actor=work.get_one(User, who.user.id)))


@router.post("/nodes/{name}/revoke", responses=errors(401, 403, 404, 422), summary="End a node's key")
def revoke(name: str, body: RevokeCreate, who: Admin, work: Work, config: Settings) -> NodeRead:
    """At once: nothing that it signs is accepted any more, and what it works on is graded again."""
    actor = work.get_one(User, who.user.id)
    row = fleet.revoke(work, config, name=name, actor=actor, now=now(work), since=body.since)
    return NodeRead.of(work, row)
