"""One's own grades and late days, and what they would be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fastapi import APIRouter, Request
from sqlalchemy.orm import Session
from starlette.datastructures import QueryParams
from starlette.responses import Response

from autograder.contract import Mode
from server import db
from server.courses import clock, courses
from server.courses.courses import AssignmentDetail, Membership
from server.errors import InvalidInputError
from server.gradebook import queries as gradebook
from server.gradebook.queries import Line, Standing
from server.gradebook.whatif import Upload, what_if
from server.http.identity import Someone
from server.http.work import Work
from server.models import Role
from server.nodes import nodes
from server.pages.points_note import course_note
from server.pages.rendering import render

router = APIRouter(include_in_schema=False)
PATH = "/courses/{course}/grades"
MOST_TYPED = 40


@dataclass(frozen=True)
class Asked:
    """One line of the form: what was typed, and why it cannot be taken."""

    at: str = ""
    points: str = ""
    problem: str = ""


@router.get(PATH)
def grades_page(request: Request, course: str, who: Someone, work: Work) -> Response:
    """One line per assignment; with an upload in the address also what it would come to."""
    member = courses.membership(work, who.user, course)
    if member.enrolment is None or member.role is not Role.student:
        return render(request, "grades.html", member=member, course=member.course, standing=None)
    standing = gradebook.standing(work, member.course, member.user.id)
    asked, uploads = _asked(request.query_params, standing, member.course.timezone)
    supposed = _supposed(work, member, uploads, asked) if uploads else None
    at = db.now(work)
    in_service = nodes.lanes_in_service(work, now=at, course_id=member.course.id)
    return render(
        request,
        "grades.html",
        member=member,
        course=member.course,
        standing=standing,
        modes=Mode,
        points_note=course_note([line.detail for line in standing.lines], in_service),
        asked=asked,
        supposed=_by_slug(supposed),
        would=supposed,
        open_lines=[line for line in standing.lines if not line.dates.is_closed(at)],
        earliest=clock.typed(at, member.course.timezone),
    )


def _by_slug(standing: Standing | None) -> Mapping[str, Line]:
    return {line.detail.slug: line for line in standing.lines} if standing else {}


def _supposed(
    session: Session, member: Membership, uploads: Mapping[str, Upload], asked: dict[str, Asked]
) -> Standing | None:
    try:
        return what_if(session, member.course, member.user.id, uploads)
    except InvalidInputError as error:
        typed = asked[error.field]
        asked[error.field] = Asked(typed.at, typed.points, error.message)
        return None


def _asked(params: QueryParams, standing: Standing, zone: str) -> tuple[dict[str, Asked], dict[str, Upload]]:
    """What was typed for every assignment, and the uploads that can be made of it."""
    asked, uploads = {}, {}
    for line in standing.lines:
        slug = line.detail.slug
        at, points = (params.get(f"{name}-{slug}", "").strip()[:MOST_TYPED] for name in ("at", "points"))
        problem = ""
        if at:
            try:
                uploads[slug] = _upload(line.detail, at, points, zone)
            except InvalidInputError as error:
                problem = error.message
        asked[slug] = Asked(at, points, problem)
    return asked, uploads


def _upload(detail: AssignmentDetail, at: str, points: str, zone: str) -> Upload:
    """One upload; without points it has all that there are."""
    moment = clock.read(at, zone, field=detail.slug)
    assert moment is not None  # noqa: S101  # something was typed
    try:
        return Upload(moment, float(points.replace(",", ".")) if points else detail.submission_points)
    except ValueError:
        raise InvalidInputError("Points are a number, such as 42.5.", field=detail.slug) from None
