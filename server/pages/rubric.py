"""An assignment's rubric: its items, who was graded by it, and applying it to a student."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse
from sqlalchemy import select
from sqlalchemy.orm import Session
from starlette.responses import Response

from server import db, writeups
from server.comments import rubrics, saved, sheets
from server.courses import courses
from server.courses.courses import Membership
from server.errors import ConflictError, InvalidInputError, LadderError, NotFoundError
from server.http.identity import Identity, Someone
from server.http.work import RowId, Work, database_of
from server.models import Assignment, Submission, User
from server.pages import forms
from server.pages.commented import Piece, Ticks, Typed, page_of, piece_of_submission, piece_of_writeup
from server.pages.rendering import Slot, local_path, render, write
from server.submissions import submissions

router = APIRouter(include_in_schema=False)
PATH = "/courses/{course}/assignments/{slug}/rubric"
Text = Annotated[str, Form()]
Revision = Annotated[int, Form(ge=0, le=2**31 - 1)]


@router.get(PATH)
def rubric_page(request: Request, course: str, slug: str, who: Someone, work: Work) -> Response:
    """The rubric and everybody it is for."""
    return _page(request, work, who.user, course, slug)


@router.post(PATH, dependencies=[Slot])
def add_item(
    *, request: Request, course: str, slug: str, who: Someone, text: Text = "", group: Text = "", points: Text = ""
) -> Response:
    """Add an item."""

    def act(session: Session) -> None:
        member = courses.staff_of(session, session.get_one(User, who.user.id), course)
        row = courses.assignment_of(session, member, slug).row
        rubrics.add_item(session, member, row, group=group, text=text, points=_number(points))

    typed = {"text": text[:600], "group": group[:100], "points": points[:20]}
    return _done(request, who, (course, slug), act, typed)


@router.post(PATH + "/items/{item_id}", dependencies=[Slot])
def change_item(
    *,
    request: Request,
    course: str,
    slug: str,
    item_id: RowId,
    who: Someone,
    action: Text,
    revision: Revision,
    text: Text = "",
    group: Text = "",
    points: Text = "",
    position: Annotated[int, Form(ge=0, le=10_000)] = 1,
) -> Response:
    """Change an item, or offer it no more, or again."""

    def act(session: Session) -> None:
        member = courses.staff_of(session, session.get_one(User, who.user.id), course)
        if action == "change":
            rubrics.change_item(
                session, member, item_id,
                revision=revision, group=group, text=text, points=_number(points), position=position,
            )  # fmt: skip
        elif action in {"retire", "offer"}:
            rubrics.retire_item(
                session, member, item_id, revision=revision, retired=action == "retire", now=db.now(session)
            )
        else:
            raise InvalidInputError("Change it, retire it or offer it again.", field="action")

    typed = {"item": item_id, "text": text[:600], "group": group[:100], "points": points[:20]}
    return _done(request, who, (course, slug), act, typed)


@router.post(PATH + "/students/{user_id}", dependencies=[Slot])
def apply_rubric(
    *,
    request: Request,
    course: str,
    slug: str,
    user_id: RowId,
    who: Someone,
    revision: Revision,
    item: Annotated[list[int], Form()] = [],  # noqa: B006  # FastAPI copies a form's default
    seen: Text = "",
    submission: Text = "",
    writeup: Text = "",
    back: Text = "",
    then: Text = "stay",
) -> Response:
    """Let the items that were ticked apply; then stay, or go to the next student.

    What cannot be taken comes back with the ticks, where `submission` or `writeup` says what was looked at.
    """

    def act(session: Session) -> str:
        member = courses.staff_of(session, session.get_one(User, who.user.id), course)
        row = courses.assignment_of(session, member, slug).row
        rubrics.apply(
            session, member, row, user_id,
            item_ids=item, revision=revision, submission_id=_looked_at(session, row, submission), now=db.now(session),
        )  # fmt: skip
        session.flush()
        upcoming = sheets.next_turn(sheets.turns(session, row), user_id) if then == "next" else None
        return upcoming.path if upcoming else back

    try:
        url: str = write(request, act)
    except (ConflictError, InvalidInputError) as error:
        ticks = Ticks(frozenset(item), frozenset(_whole_numbers(seen)), error)
        with database_of(request).reading() as session:
            graded = (courses.staff_of(session, who.user, course), slug, user_id)
            piece = _piece(session, *graded, submission=submission, writeup=writeup)
            if piece is not None:
                return page_of(request, session, graded[0], piece, Typed(), refused=ticks)
            return _page(request, session, who.user, course, slug, problem=error)
    return RedirectResponse(local_path(url) if url else _path(course, slug), status_code=HTTPStatus.SEE_OTHER)


@router.post("/courses/{course}/saved-comments/{saved_id}/forget", dependencies=[Slot])
def forget_saved(request: Request, course: str, saved_id: RowId, who: Someone, back: Text = "") -> Response:
    """Offer a kept comment no more."""

    def act(session: Session) -> None:
        saved.forget(session, courses.staff_of(session, session.get_one(User, who.user.id), course), saved_id)

    write(request, act)
    return RedirectResponse(local_path(back or f"/courses/{quote(course)}"), status_code=HTTPStatus.SEE_OTHER)


def _done(
    request: Request,
    who: Identity,
    at: tuple[str, str],
    act: Callable[[Session], None],
    typed: Mapping[str, object],
) -> Response:
    """Write and show the rubric; `at` is the course's and the assignment's slug."""
    try:
        write(request, act)
    except (ConflictError, InvalidInputError) as error:
        with database_of(request).reading() as session:
            return _page(request, session, who.user, *at, problem=error, typed=typed)
    return RedirectResponse(_path(*at), status_code=HTTPStatus.SEE_OTHER)


def _page(
    request: Request,
    session: Session,
    user: User,
    course: str,
    slug: str,
    *,
    problem: LadderError | None = None,
    typed: Mapping[str, object] | None = None,
) -> Response:
    member = courses.staff_of(session, user, course)
    detail = courses.assignment_of(session, member, slug)
    return render(
        request,
        "rubric.html",
        status=problem.status if problem else HTTPStatus.OK,
        member=member,
        course=member.course,
        detail=detail,
        items=rubrics.items_of(session, detail.row.id, retired=True),
        turns=sheets.turns(session, detail.row),
        problem=problem,
        typed=typed or {},
    )


def _piece(
    session: Session, member: Membership, slug: str, user_id: int, *, submission: str, writeup: str
) -> Piece | None:
    """The student's work that was looked at; `None` where the form names none of theirs for this assignment."""
    assignment = courses.assignment_of(session, member, slug).row
    theirs = (assignment.id, user_id)
    try:
        if submission:
            work = submissions.find(session, member.user, submission)
            return piece_of_submission(session, member, work) if (work.assignment_id, work.user_id) == theirs else None
        text, _member = writeups.find(session, member.user, writeup)
    except NotFoundError:
        return None
    is_theirs = (text.assignment_id, text.user_id) == theirs
    return piece_of_writeup(session, member, assignment, text) if is_theirs else None


def _whole_numbers(text: str) -> list[int]:
    return [forms.whole(word) for word in text[:4000].split()]


def _looked_at(session: Session, assignment: Assignment, public_id: str) -> int | None:
    query = select(Submission.id).where(
        Submission.public_id == public_id[:26], Submission.assignment_id == assignment.id
    )
    return session.scalar(query)


def _number(text: str) -> float:
    try:
        return float(text.strip().replace(",", ".").replace("\u2212", "-"))
    except ValueError:
        raise InvalidInputError("Points are a number, such as 2, 0.5 or -1.", field="points") from None


def _path(course: str, slug: str) -> str:
    return f"/courses/{quote(course)}/assignments/{quote(slug)}/rubric"
