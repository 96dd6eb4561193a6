"""Courses and their assignments."""

from __future__ import annotations

from fastapi import APIRouter, Response

from server.api.responses import errors
from server.api.schemas import AssignmentRead, AssignmentSummary, CourseRead, StepRead
from server.courses import courses, sync
from server.db import now
from server.http.attachments import attachment
from server.http.identity import Someone
from server.http.work import Work
from server.leaderboard.steps import closed_files, steps

router = APIRouter(tags=["courses"])


@router.get("/courses", responses=errors(401), summary="My courses")
def list_courses(who: Someone, work: Work) -> list[CourseRead]:
    """The courses that the caller is in, newest first; an admin is in all."""
    return [CourseRead.of(item) for item in courses.courses_of(work, who.user)]


@router.get("/courses/{course}/assignments", responses=errors(401, 404), summary="Assignments of a course")
def list_assignments(course: str, who: Someone, work: Work) -> list[AssignmentSummary]:
    """By rung; students see those that are published and open."""
    member = courses.membership(work, who.user, course)
    return [AssignmentSummary.of(detail) for detail in courses.assignments_of(work, member, now(work))]


@router.get("/courses/{course}/assignments/{slug}", responses=errors(401, 404), summary="One assignment")
def read_assignment(course: str, slug: str, who: Someone, work: Work) -> AssignmentRead:
    """The argument table, public cases, handout and starters."""
    member = courses.membership(work, who.user, course)
    return AssignmentRead.of(courses.assignment_of(work, member, slug))


@router.get(
    "/courses/{course}/assignments/{slug}/archive",
    response_class=Response,
    responses={200: {"content": {"application/x-tar": {}}, "description": "A tar."}, **errors(401, 404)},
    summary="An assignment's public files",
)
def read_archive(course: str, slug: str, who: Someone, work: Work) -> Response:
    """A tar of `assignments/<slug>/…`: what a student's machine needs for `ladder check`.

    Of milestones, those that are open to the caller.
    """
    member = courses.membership(work, who.user, course)
    detail = courses.assignment_of(work, member, slug)
    return Response(
        sync.archive(work, detail, without=closed_files(steps(work, member, detail, now(work)))),
        media_type="application/x-tar",
        headers=attachment(f"{detail.slug}.tar"),
    )


@router.get("/courses/{course}/assignments/{slug}/milestones", responses=errors(401, 404), summary="Milestones")
def list_milestones(course: str, slug: str, who: Someone, work: Work) -> list[StepRead]:
    """The steps to the reference kernel, slowest first; a source once the caller has beaten it, or it was due."""
    member = courses.membership(work, who.user, course)
    detail = courses.assignment_of(work, member, slug)
    return [StepRead.of(step) for step in steps(work, member, detail, now(work))]
