"""Grading again as proposals of staff."""

from __future__ import annotations

from datetime import datetime
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from server.api.responses import errors
from server.api.schemas import Create, Read
from server.courses import courses
from server.db import now
from server.http.identity import Someone
from server.http.work import RowId, Work
from server.models import (
    Lane,
    RegradeItemState,
    RegradeKind,
    RegradeState,
    Verdict,
    Why,
)
from server.regrades import lifecycle, proposing, views
from server.regrades.selection import MOST_PICKED, Selection, Which
from server.regrades.steps import Step, take
from server.regrades.views import Line, Listed, Show

router = APIRouter(tags=["regrades"])
_REGRADES = "/courses/{course}/regrades"
Page = Annotated[int, Query(ge=1, le=10_000)]
Revision = Annotated[int, Field(description="As it was seen; 409 if somebody changed it since.")]


class RegradeCreate(Create):
    """A proposal; nothing is graded before it is started, nothing counts before it is applied."""

    kind: RegradeKind = RegradeKind.rerun
    version: Annotated[int | None, Field(description="Of the assignment; the current one where it is left out.")] = None
    which: Which = Which.counting
    lane: Lane | None = None
    verdicts: tuple[Verdict, ...] = ()
    picked: Annotated[tuple[str, ...], Field(max_length=MOST_PICKED, description="Receipt numbers.")] = ()
    reason: Annotated[str, Field(description="Whose points change reads it.")]
    may_lower: Annotated[bool, Field(description="A declared correction; noise lowers nothing even then.")] = False
    tell: bool = True


class StepCreate(Create):
    """Something to be done to a proposal."""

    revision: Revision
    reason: Annotated[str, Field(description="Of a roll-back.")] = ""


class RegradeRead(Read):
    """A proposal and how many of its submissions are where."""

    id: int
    assignment: str
    version: int
    kind: RegradeKind
    state: RegradeState
    reason: str
    may_lower: bool
    revision: int
    created_at: datetime
    started_at: datetime | None
    ready_at: datetime | None
    ended_at: datetime | None
    submissions: int
    done: int
    by_state: dict[RegradeItemState, int]
    by_why: dict[Why, int]
    raised: int
    lowered: int

    @classmethod
    def of(cls, listed: Listed) -> RegradeRead:
        """As it is now."""
        row, counts = listed.row, listed.counts
        return cls(
            id=row.id, assignment=row.assignment.slug, version=row.version.number, kind=row.kind, state=row.state,
            reason=row.reason, may_lower=row.may_lower, revision=row.revision, created_at=row.created_at,
            started_at=row.started_at, ready_at=row.ready_at, ended_at=row.ended_at, submissions=counts.total,
            done=counts.done, by_state=dict(counts.by_state), by_why=dict(counts.by_why),
            raised=counts.by_show.get(Show.raised, 0), lowered=counts.by_show.get(Show.lowered, 0),
        )  # fmt: skip


class RegradeItemRead(Read):
    """One submission of a proposal."""

    submission: str
    student: str
    state: RegradeItemState
    why: Why | None
    moves: Annotated[bool, Field(description="What was found would count, or does.")]
    before_verdict: Verdict | None
    new_verdict: Verdict | None
    before_points: float | None
    new_points: float | None
    before_ratio: float | None
    new_ratio: float | None
    overridden: Annotated[bool, Field(description="The student's grade is set by hand, and stays.")]
    note: str

    @classmethod
    def of(cls, line: Line) -> RegradeItemRead:
        """As staff see it."""
        item = line.item
        return cls(
            submission=item.submission.public_id, student=item.user.name, state=item.state, why=item.why,
            moves=item.moves, before_verdict=item.before_verdict, new_verdict=item.new_verdict,
            before_points=item.before_points, new_points=item.new_points, before_ratio=item.before_ratio,
            new_ratio=item.new_ratio, overridden=line.overridden, note=item.note,
        )  # fmt: skip


@router.get(_REGRADES, responses=errors(401, 403, 404), summary="Proposals of a course")
def read_regrades(course: str, who: Someone, work: Work) -> list[RegradeRead]:
    """The newest first; for staff."""
    member = courses.staff_of(work, who.user, course)
    return [RegradeRead.of(one) for one in views.listed(work, member.course.id)]


@router.post(
    "/courses/{course}/assignments/{slug}/regrades",
    status_code=HTTPStatus.CREATED,
    responses=errors(401, 403, 404, 422),
    summary="Propose a regrade",
)
def propose_regrade(course: str, slug: str, body: RegradeCreate, who: Someone, work: Work) -> RegradeRead:
    """Draft it; for staff."""
    member = courses.staff_of(work, who.user, course)
    at = now(work)
    detail = courses.assignment_of(work, member, slug, at)
    selection = Selection(body.which, body.lane, body.verdicts, body.picked)
    made = proposing.propose(
        work, member, detail.row, kind=body.kind, selection=selection, reason=body.reason, now=at,
        version=body.version, may_lower=body.may_lower, tell=body.tell,
    )  # fmt: skip
    return RegradeRead.of(views.one(work, made))


@router.get(f"{_REGRADES}/{{regrade_id}}", responses=errors(401, 403, 404), summary="A proposal")
def read_regrade(course: str, regrade_id: RowId, who: Someone, work: Work) -> RegradeRead:
    """Where it is; for staff."""
    member = courses.staff_of(work, who.user, course)
    return RegradeRead.of(views.one(work, lifecycle.find(work, member, regrade_id)))


@router.get(f"{_REGRADES}/{{regrade_id}}/items", responses=errors(401, 403, 404), summary="Who changes")
def read_items(
    *, course: str, regrade_id: RowId, who: Someone, work: Work, show: Show = Show.all, page: Page = 1
) -> list[RegradeItemRead]:
    """One page of its submissions, the largest changes first; for staff."""
    member = courses.staff_of(work, who.user, course)
    regrade = lifecycle.find(work, member, regrade_id)
    return [RegradeItemRead.of(line) for line in views.lines(work, regrade, show, page=page)]


@router.post(f"{_REGRADES}/{{regrade_id}}/{{step}}", responses=errors(401, 403, 404, 409, 422), summary="Decide")
def step_regrade(
    *, course: str, regrade_id: RowId, step: Step, body: StepCreate, who: Someone, work: Work
) -> RegradeRead:
    """Start, pause, apply, discard, roll back …; for staff."""
    member = courses.staff_of(work, who.user, course)
    done = take(work, member, regrade_id, step, revision=body.revision, now=now(work), reason=body.reason)
    work.flush()
    return RegradeRead.of(views.one(work, done))
