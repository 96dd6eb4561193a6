"""A course and its assignments in numbers, and the failures that one announcement would answer; for staff."""

from __future__ import annotations

from urllib.parse import quote, urlencode

from fastapi import APIRouter, Request
from sqlalchemy.orm import Session
from starlette.responses import Response

from server import csv_io, db
from server.courses import courses
from server.courses.courses import AssignmentDetail, Membership
from server.http.attachments import attachment
from server.http.identity import Someone
from server.http.work import Work
from server.models import User, Verdict
from server.pages import bars, labels
from server.pages.rendering import render
from server.statistics import clusters, statistics
from server.statistics.clusters import Cluster
from server.statistics.parts import MOST_ATTEMPTS
from server.statistics.statistics import AssignmentStatistics

router = APIRouter(include_in_schema=False)
HOME = "/courses/{course}/statistics"


@router.get(HOME)
def course_page(request: Request, course: str, who: Someone, work: Work) -> Response:
    """Every assignment in a line."""
    member = courses.membership(work, who.user, course)
    found = statistics.of_course(work, member)
    return render(
        request,
        "statistics.html",
        member=member,
        course=member.course,
        found=found,
        chart=bars.of_points("Students by total course points", found.totals) if found.totals else None,
    )


@router.get(HOME + "/{slug}")
def assignment_page(request: Request, course: str, slug: str, who: Someone, work: Work) -> Response:
    """One assignment."""
    member, detail = _detail(work, who.user, course, slug)
    found = statistics.of_assignment(work, member, detail)
    return render(
        request,
        "assignment_statistics.html",
        member=member,
        course=member.course,
        detail=detail,
        found=found,
        charts=_charts(found, member, detail),
        most_attempts=MOST_ATTEMPTS,
    )


@router.get(HOME + "/{slug}/students.csv")
def export(course: str, slug: str, who: Someone, work: Work) -> Response:
    """What the statistics are made of, a line for each student."""
    member, detail = _detail(work, who.user, course, slug)
    text = csv_io.write(statistics.EXPORT_COLUMNS, statistics.export(work, member, detail))
    name = f"statistics-{member.course.slug}-{detail.slug}.csv"
    return Response(
        text,
        media_type="text/csv; charset=utf-8",
        headers={**attachment(name), "cache-control": "private, no-store"},
    )


@router.get(HOME + "/{slug}/failures")
def failures_page(request: Request, course: str, slug: str, who: Someone, work: Work) -> Response:
    """Failures that are the same, with examples."""
    member, detail = _detail(work, who.user, course, slug)
    found = clusters.clusters_of(work, member, detail)
    return render(
        request,
        "clusters.html",
        member=member,
        course=member.course,
        detail=detail,
        found=found,
        said=[headline(one) for one in found.clusters],
        announce=[_announce(member, detail, one) for one in found.clusters],
    )


def headline(one: Cluster) -> str:
    """`41 students: wrong only in the tail`, for everybody's eyes."""
    found = one.signature
    students = f"{one.count} student{'' if one.count == 1 else 's'}"
    what = labels.VERDICTS[found.verdict].word.lower()
    if found.pattern:
        what = clusters.PATTERNS.get(found.pattern, found.pattern)
    elif found.error:
        # Where a case is blamed, the file loaded.
        is_not_loaded = found.verdict is Verdict.compile_error and not found.category
        what = f"does not load: {found.error}" if is_not_loaded else f"{found.error} ({what})"
    where = " in a hidden case" if found.hidden else ""
    about = f", {found.category}" if found.category else ""
    return f"{students}: {what}{where}{about}"


def _announce(member: Membership, detail: AssignmentDetail, one: Cluster) -> str:
    """The address of an announcement that is begun for them; it names nobody."""
    _, _, what = headline(one).partition(": ")
    body = f"Some of you see this in {detail.title}: {what}.\n\n"
    asked = {"title": f"{detail.title}: {what}"[:150], "text": body}
    return f"/courses/{quote(member.course.slug)}/announcements/new?{urlencode(asked)}"


def _charts(found: AssignmentStatistics, member: Membership, detail: AssignmentDetail) -> list[bars.Bars]:
    charts = []
    if found.points and found.point_summary:
        charts.append(bars.of_points("Students by points", found.points))
    charts += [
        bars.of_ratios(f"Students by their best ratio, {labels.LANES[lane.lane]}", lane.ratios) for lane in found.lanes
    ]
    if found.attempts:
        charts.append(bars.of_counts("Students by number of their first passing submission", _by_number(found)))
    if found.hours:
        due_at = detail.row.due_at
        charts.append(bars.of_hours("Submissions and runs by hour", found.hours, member.course.timezone, due_at))
    return charts


def _by_number(found: AssignmentStatistics) -> list[tuple[str, int]]:
    last = MOST_ATTEMPTS
    return [(f"{number}+" if number == last else str(number), count) for number, count in found.attempts.items()]


def _detail(session: Session, user: User, course: str, slug: str) -> tuple[Membership, AssignmentDetail]:
    member = courses.staff_of(session, user, course)
    return member, courses.assignment_of(session, member, slug, db.now(session))
