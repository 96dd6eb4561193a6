"""The gradebook: students by rungs, each grade in full, and what staff decide about grades."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, NamedTuple
from urllib.parse import quote

from fastapi import APIRouter, Form, Query, Request
from markupsafe import Markup, escape
from sqlalchemy.orm import Session
from starlette.responses import Response

from server import db
from server.courses import courses
from server.courses.courses import Membership
from server.errors import InvalidInputError, LadderError, NotFoundError
from server.gradebook import grade_detail as cells
from server.gradebook import overrides, publishing
from server.gradebook.grid import KEPT_CELLS, Cell, Grid, Row, grid
from server.gradebook.people import REASON_CHARS, checked_reason
from server.http.identity import Someone
from server.http.templates import visible
from server.http.work import RowId, Work, database_of
from server.models import Assignment
from server.pages import formats, forms
from server.pages.audit import sentence_of
from server.pages.rendering import Slot, render, write

router = APIRouter(include_in_schema=False)
PATH = "/courses/{course}/gradebook"
CELL = PATH + "/{user_id}/{slug}"
DONE = {
    "published": "The grades are published; {} students were notified.",
    "withdrawn": "The grades are withdrawn: students see their points so far, not a final grade.",
    "set": "The override is saved.",
    "undone": "The override is undone: the grade is the computed one again.",
    "imported": "{} grades were set.",
}


class Place(NamedTuple):
    """Where a grade stands in the gradebook, as its address says it."""

    course: str
    user_id: int
    slug: str


@dataclass(frozen=True)
class Typed:
    """What was typed into a form that was refused; `None`: into another one."""

    points: str | None = None
    reason: str | None = None
    undo_reason: str | None = None


_ALL = "*"
"""The section's value in the address that stands for every section."""


@router.get(PATH)
def gradebook_page(
    *,
    request: Request,
    course: str,
    who: Someone,
    work: Work,
    done: forms.WhatWasDone,
    q: Annotated[str, Query(max_length=100)] = "",
    section: Annotated[str, Query(max_length=60)] = _ALL,
    sort: Annotated[str, Query(max_length=61)] = "name",
) -> Response:
    """The grid; it can be searched, filtered and sorted without a script."""
    member = courses.staff_of(work, who.user, course)
    found = grid(work, member.course.id, q=q, section=None if section == _ALL else section, sort=sort)
    return render(
        request,
        "gradebook.html",
        member=member,
        course=member.course,
        grid=found,
        body=_body(found, forms.course_path(course, "/gradebook"), forms.course_path(course, "/roster/people")),
        said_of_publishing=_said_of_publishing(found),
        asked={"q": q, "section": section, "sort": sort},
        all_sections=_ALL,
        done=done.said(DONE),
    )


@router.get(PATH + "/publish")
def publish_page(request: Request, course: str, who: Someone, work: Work, done: forms.WhatWasDone) -> Response:
    """What is published, and what is still open where it is not."""
    member = courses.staff_of(work, who.user, course)
    return render(
        request,
        "gradebook_publish.html",
        member=member,
        course=member.course,
        details=courses.details_of(work, member.course.id),
        counts=publishing.counts(work, member.course.id),
        done=done.said(DONE),
    )


@router.get(PATH + "/publish/{slug}")
def confirm_page(request: Request, course: str, slug: str, who: Someone, work: Work) -> Response:
    """What publishing the grades of a rung would do, before anybody is told."""
    member = courses.staff_of(work, who.user, course)
    detail = courses.assignment_of(work, member, slug)
    return render(
        request,
        "gradebook_publish_confirm.html",
        member=member,
        course=member.course,
        detail=detail,
        effect=publishing.effect(work, member, detail.row, now=db.now(work)),
    )


@router.post(PATH + "/publish", dependencies=[Slot])
def publish(
    *,
    request: Request,
    course: str,
    who: Someone,
    slug: Annotated[str, Form()] = "",
    action: Annotated[str, Form()] = "",
    confirmed: Annotated[str, Form()] = "",
) -> Response:
    """Publish the grades of a rung, or withdraw them; nothing is published that was not confirmed."""
    if action not in {"publish", "withdraw"}:
        raise InvalidInputError("Grades are published or withdrawn.", field="action")
    if action == "publish" and not confirmed:
        return forms.back(forms.course_path(course, f"/gradebook/publish/{quote(slug, safe='')}"))

    def act(session: Session) -> int:
        member = courses.staff_of(session, who.user, course)
        row = _assignment(session, member, slug)
        if action == "withdraw":
            publishing.withdraw(session, member, row)
            return 0
        return publishing.publish(session, member, row, now=db.now(session))

    told = write(request, act)
    done = "published" if action == "publish" else "withdrawn"
    return forms.back(forms.course_path(course, "/gradebook/publish"), done, count=told)


@router.get(CELL)
def cell_page(
    *, request: Request, course: str, user_id: RowId, slug: str, who: Someone, work: Work, done: forms.WhatWasDone
) -> Response:
    """One grade in full; the grid shows it beside itself."""
    return _cell(request, work, who, Place(course, user_id, slug), done=done.said(DONE))


@router.post(CELL + "/override", dependencies=[Slot])
def override(
    *,
    request: Request,
    course: str,
    user_id: RowId,
    slug: str,
    who: Someone,
    points: Annotated[str, Form()] = "",
    reason: Annotated[str, Form()] = "",
    revision: Annotated[str, Form()] = "",
    above: Annotated[str, Form()] = "",
) -> Response:
    """Set the points; more than the assignment gives are confirmed by `above`."""

    def act(session: Session, member: Membership, row: Assignment) -> None:
        checked_reason(reason)
        overrides.set_override(
            session, member, row, user_id, points=read_points(points), reason=reason,
            revision=forms.whole(revision), now=db.now(session), above=bool(above),
        )  # fmt: skip

    typed = Typed(points=points[:40], reason=reason[:REASON_CHARS])
    return _decide(request, who, Place(course, user_id, slug), act, done="set", typed=typed)


@router.post(CELL + "/undo", dependencies=[Slot])
def undo(
    *,
    request: Request,
    course: str,
    user_id: RowId,
    slug: str,
    who: Someone,
    reason: Annotated[str, Form()] = "",
    revision: Annotated[str, Form()] = "",
) -> Response:
    """Let the grade be what it comes to again."""

    def act(session: Session, member: Membership, row: Assignment) -> None:
        overrides.undo_override(
            session, member, row, user_id, reason=reason, revision=forms.whole(revision), now=db.now(session)
        )

    return _decide(
        request, who, Place(course, user_id, slug), act, done="undone", typed=Typed(undo_reason=reason[:REASON_CHARS])
    )


def read_points(text: str) -> float:
    """Points as somebody types them, with a point or a comma.

    Raises:
        InvalidInputError: that is no number.
    """
    try:
        return float(text.strip().replace(",", "."))
    except ValueError:
        raise InvalidInputError("Points are a number, such as 42.5.", field="points") from None


def _assignment(session: Session, member: Membership, slug: str) -> Assignment:
    return courses.assignment_of(session, member, slug).row


def _decide(
    request: Request,
    who: Someone,
    place: Place,
    act: Callable[[Session, Membership, Assignment], None],
    *,
    done: str,
    typed: Typed,
) -> Response:
    """Do it and go back to the grade; what cannot be taken comes back with the reason."""

    def decide(session: Session) -> None:
        member = courses.staff_of(session, who.user, place.course)
        act(session, member, _assignment(session, member, place.slug))

    try:
        write(request, decide)
    except NotFoundError:
        raise
    except LadderError as error:
        with database_of(request).reading() as session:
            return _cell(request, session, who, place, refused=error, typed=typed)
    return forms.back(forms.course_path(place.course, f"/gradebook/{place.user_id}/{place.slug}"), done)


def _cell(
    request: Request,
    session: Session,
    who: Someone,
    place: Place,
    *,
    done: str = "",
    refused: LadderError | None = None,
    typed: Typed | None = None,
) -> Response:
    member = courses.staff_of(session, who.user, place.course)
    shown = cells.cell(session, member, place.user_id, place.slug)
    return render(
        request,
        "gradebook_cell.html",
        status=refused.status if refused else 200,
        member=member,
        course=member.course,
        shown=shown,
        why=cells.why_counts(shown),
        sentence_of=sentence_of,
        done=done,
        refused=refused,
        refused_field=refused.field if isinstance(refused, InvalidInputError) else "",
        typed=typed or Typed(),
    )


def _said_of_publishing(found: Grid) -> str:
    """Which grades students see as published, said once for the whole grid."""
    published = [detail.title for detail in found.details if detail.row.grades_published_at]
    if not published:
        return "No grades are published yet."
    if len(published) == len(found.details):
        return "All grades are published."
    return f"Published: {', '.join(published)}. The other grades are not."


def _body(found: Grid, base: str, people: str) -> Markup:
    """The rows. Nine thousand cells are made here in a few milliseconds, in a template in a few hundred."""
    slugs = [str(escape(detail.slug)) for detail in found.details]
    names = Counter(row.student.name.casefold() for row in found.rows)
    rows = (_row(row, slugs, base, people, names[row.student.name.casefold()] > 1) for row in found.rows)
    return Markup("\n".join(rows))  # noqa: S704  # its parts are escaped


def _row(row: Row, slugs: list[str], base: str, people: str, has_namesake: bool) -> str:
    """The e-mail address is there for whoever hears the page, and shown where only it tells two students apart."""
    student = row.student
    known = escape(visible(f"{student.name} {student.email} {student.number}".lower()))
    name, email = escape(visible(student.name)), escape(visible(student.email))
    section = escape(visible(student.section))
    theirs = f"{base}/{student.id}/"
    cells = "".join([_td(cell, theirs, slug) for cell, slug in zip(row.cells, slugs, strict=True)])
    address = f'<span class="{"below gradebook__email" if has_namesake else "visually-hidden"}"> {email}</span>'
    who = f'<a class="gradebook__name" href="{people}/{student.id}">{name}{address}</a>'
    total = f'<td class="number gradebook__total"><strong>{formats.points(row.total)}</strong></td>'
    begin = f'<tr data-known="{known}" data-section="{section}"><th scope="row" title="{email}">{who}</th>{total}'
    return f'{begin}{cells}<td class="number">{row.late_days}</td><td>{section}</td></tr>'


def _td(cell: Cell | None, theirs: str, slug: str) -> str:
    said = "" if cell is None else f'<a href="{theirs}{slug}">{_said(cell)}</a>'
    return f'<td class="number">{said}</td>'


@lru_cache(maxsize=KEPT_CELLS)
def _said(cell: Cell) -> str:
    """What a cell says, as HTML: points, and marks where something is special about them."""
    text = "–" if cell.is_empty else formats.points(cell.points)
    marks = (
        "set" if cell.overridden else "",
        "ext" if cell.extended else "",
        "late" if cell.penalty and not cell.overridden else "",
    )
    said = " ".join(mark for mark in marks if mark) or (f"{cell.late_days}d" if cell.late_days else "")
    return f"{text}<small>{said}</small>" if said else text
