"""What a TA or an instructor sees first: what waits for them, what is due next, and how the grading is."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from fastapi import APIRouter, Request
from sqlalchemy.orm import Session
from starlette.responses import Response

from server import announcements, db
from server.courses import courses
from server.courses.courses import AssignmentDetail
from server.http.identity import Someone
from server.http.waits import snapshots_of
from server.http.work import Work
from server.models import Lane
from server.operations import overview
from server.pages.labels import LANES
from server.pages.rendering import render
from server.statistics.waiting import waiting
from server.surge import surge

router = APIRouter(include_in_schema=False)


@router.get("/courses/{course}/staff")
def staff_home(request: Request, course: str, who: Someone, work: Work) -> Response:
    """The page; every number on it leads to the page that lists what it counts."""
    now = db.now(work)
    member = courses.staff_of(work, who.user, course)
    details = courses.details_of(work, member.course.id)
    due_next = _due_next(details, now)
    lanes = [lane for lane in Lane if any(lane in detail.lanes for detail in details)]
    looks = [snapshots_of(request).newest(work, lane) for lane in lanes]
    return render(
        request,
        "staff_home.html",
        member=member,
        course=member.course,
        waiting=waiting(work, member),
        students=surge.students_of(work, member.course.id),
        alerts=len(overview.alerts_of(work, [member.course.id])),
        due_next=due_next,
        forecast=_forecast(work, due_next, now),
        queues=[seen for seen in looks if seen.nodes or seen.queue or seen.running],
        unserved=[seen.lane for seen in looks if not (seen.nodes or seen.queue or seen.running)],
        announcement=announcements.newest(work, member),
    )


def _due_next(details: Sequence[AssignmentDetail], now: datetime) -> AssignmentDetail | None:
    """The visible assignment whose due date comes first; of several with one date the lowest rung."""
    dated = {detail.row.due_at: detail for detail in reversed(details) if detail.row.due_at and detail.row.published}
    ahead = [at for at in dated if at > now]
    return dated[min(ahead)] if ahead else None


def _forecast(session: Session, detail: AssignmentDetail | None, now: datetime) -> Sequence[str]:
    """How long the queue would be when the assignment is due."""
    if detail is None:
        return []
    return [found.sentence(LANES[lane]) for lane, found in surge.expectations(session, detail.row, now=now)]
