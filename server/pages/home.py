"""The front page, and the ladder of a course; of a public course there is a page for everybody else."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from time import monotonic
from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse
from markupsafe import Markup
from sqlalchemy.orm import Session
from starlette.responses import Response

from server import db
from server.courses import courses
from server.courses.courses import Membership
from server.errors import ConflictError, InvalidInputError, LadderError
from server.gradebook import queries as gradebook
from server.http.identity import Anyone, Someone
from server.http.work import Settings, Work, database_of
from server.leaderboard.showcase import newest, public_courses, showcases
from server.leaderboard.viewer import looker
from server.models import Course, User
from server.nodes import nodes
from server.pages import forms
from server.pages.navigation import first_page
from server.pages.points_note import course_note
from server.pages.progress import HOLDS, Hold, climb, late_days
from server.pages.rendering import Slot, fragment, render, write
from server.pages.settings import ZONES
from server.pages.svg_geometry import staircase
from server.reconciliation import runs as reconciliation
from server.terms import terms

router = APIRouter(include_in_schema=False)
_CLIMB = 260
"""Units of the highest step, of 960 across."""
LEADS_SHOWN = 6
"""Of one course on the front page; its own page has all."""
PUBLIC_KEPT_S = 30.0
"""So old may what the front page shows of public courses be; which courses are public is looked up each time."""


class PublicCourses:
    """What the front page shows of public courses, which a process makes once for all strangers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._courses: tuple[int, ...] = ()
        self._made_at = float("-inf")
        self._html = Markup()

    def html(self, courses: Sequence[Course], make: Callable[[], Markup]) -> Markup:
        """Of these courses; what `make` makes where they are others than before, or the last time is too long ago."""
        asked = tuple(course.id for course in courses)
        if self._courses == asked and (self._is_fresh() or self._lock.locked()):
            return self._html
        with self._lock:
            if self._courses != asked or not self._is_fresh():
                began, self._html = monotonic(), make()
                self._courses, self._made_at = asked, began
            return self._html

    def _is_fresh(self) -> bool:
        return monotonic() - self._made_at < PUBLIC_KEPT_S


@router.get("/")
def front(request: Request, who: Anyone, work: Work, config: Settings) -> Response:
    """What this is, for a stranger; the course of whoever is in one, for staff its overview; a list for all others."""
    if who is None:
        return render(
            request,
            "front.html",
            courses=_public_courses(request, work),
            docs_url=config.docs_url,
            source_url=config.source_url,
        )
    found = courses.courses_of(work, who.user)
    if len(found) == 1:
        return RedirectResponse(first_page(found[0]), status_code=HTTPStatus.SEE_OTHER)
    return _courses_page(request, found, who.user)


def _public_courses(request: Request, work: Session) -> Markup:
    kept: PublicCourses = request.app.state.public_courses
    found = public_courses(work)

    def make() -> Markup:
        shown = showcases(work, found, db.now(work))
        html = fragment(request, "front_courses.html", courses=shown, leads_shown=LEADS_SHOWN)
        return Markup(html)  # noqa: S704  # a template's

    return kept.html(found, make)


@router.get("/courses")
def courses_page(request: Request, who: Someone, work: Work) -> Response:
    """All courses of whoever asks; admins begin an empty one here."""
    return _courses_page(request, courses.courses_of(work, who.user), who.user)


@router.post("/courses", dependencies=[Slot])
def make_course(
    *,
    request: Request,
    who: Someone,
    slug: Annotated[str, Form()] = "",
    title: Annotated[str, Form()] = "",
    timezone: Annotated[str, Form()] = "",
) -> Response:
    """Begin an empty course; for admins."""
    typed = {"slug": slug[:60], "title": title[:200], "timezone": timezone[:60]}

    def act(session: Session) -> str:
        return terms.begin(session, who.user, slug=slug.strip(), title=title, timezone=timezone.strip()).slug

    try:
        made = write(request, act)
    except (ConflictError, InvalidInputError) as error:
        with database_of(request).reading() as session:
            found = courses.courses_of(session, who.user)
            return _courses_page(request, found, who.user, typed=typed, problem=error)
    return forms.back(forms.course_path(made, "/schedule"))


def _courses_page(
    request: Request,
    found: Sequence[Membership],
    user: User,
    *,
    typed: Mapping[str, str] | None = None,
    problem: LadderError | None = None,
) -> Response:
    # A slug that is taken says no field.
    field = (problem.field if isinstance(problem, InvalidInputError) else "slug") if problem else ""
    return render(
        request,
        "courses.html",
        status=problem.status if problem else HTTPStatus.OK,
        memberships=found,
        may_begin=user.is_admin,
        typed=typed or {"slug": "", "title": "", "timezone": found[0].course.timezone if found else "UTC"},
        problems={field: problem.message} if problem else {},
        zones=ZONES,
    )


@router.get("/courses/{course}")
def course_page(request: Request, course: str, who: Anyone, work: Work) -> Response:
    """The ladder: every rung that the viewer sees, how far they are, and what is due next."""
    now = db.now(work)
    looking = looker(work, who.user if who else None, course)
    if looking.member is None:
        (shown,) = showcases(work, [looking.course], now)
        return render(
            request, "course_public.html", course=looking.course, shown=shown, newest=newest(work, shown.details, now)
        )
    member = looking.member
    standing = gradebook.standing(work, member.course, member.user.id)
    rungs = climb(work, member, courses.assignments_of(work, member, now), now, standing)
    days_left, days_total = late_days(standing)
    in_service = nodes.lanes_in_service(work, now=now, course_id=member.course.id)
    return render(
        request,
        "course.html",
        member=member,
        course=member.course,
        rungs=rungs,
        steps=staircase([rung.share for rung in rungs], height=_CLIMB),
        here=next((place for place, rung in enumerate(rungs) if rung.hold is Hold.open), None),
        words_of=HOLDS,
        points_note=course_note([rung.detail for rung in rungs], in_service),
        total=sum(rung.points * rung.detail.row.weight for rung in rungs),
        maximum=sum(rung.maximum * rung.detail.row.weight for rung in rungs),
        days_left=days_left,
        days_total=days_total,
        accounts=reconciliation.last_check(work, member.course.id),
        reconciliation=reconciliation,
        due_next=min((rung for rung in rungs if rung.is_due(now)), key=lambda rung: rung.due_at, default=None),
    )
