"""A piece of work as staff grade it by hand: the source with comments between its lines, and the rubric beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse
from sqlalchemy.orm import Session
from starlette.responses import Response

from server import db, writeups
from server.comments import comments
from server.comments.comments import Place
from server.courses import courses
from server.courses.courses import Membership
from server.errors import ConflictError, InvalidInputError
from server.http.identity import Identity, Someone
from server.http.turns import Turn
from server.http.work import RowId, Work, database_of
from server.models import Assignment, Comment, Course, Showing, Submission, User
from server.pages.commented import Typed, page_of, piece_of_submission, piece_of_writeup
from server.pages.rendering import Slot, local_path, write
from server.submissions import submissions

router = APIRouter(include_in_schema=False)
Text = Annotated[str, Form()]


@dataclass(frozen=True)
class Change:
    """What is to become of a comment: `edit`, `withdraw` or `put_back`."""

    action: str
    text: str
    showing: Showing


@router.get("/submissions/{public_id}/comments", dependencies=[Turn])
def submission_page(request: Request, public_id: str, who: Someone, work: Work) -> Response:
    """A submission's source with its comments; `?lines=12-18` begins one on them."""
    return _of_submission(request, work, who.user, public_id, Typed(lines=request.query_params.get("lines", "")[:20]))


@router.post("/submissions/{public_id}/comments", dependencies=[Slot])
def comment_on_submission(
    *,
    request: Request,
    public_id: str,
    who: Someone,
    text: Text = "",
    lines: Text = "",
    showing: Annotated[Showing, Form()] = Showing.with_grades,
    save: Annotated[bool, Form()] = False,
) -> Response:
    """Write one; what cannot be taken comes back with the reason."""

    def act(session: Session) -> int:
        submission = submissions.find(session, who.user, public_id)
        member = _staff(session, who, submission.course_id)
        rows = submissions.source_of(session, submission).decode("utf-8", "replace").splitlines()
        place = comments.read_lines(lines, most=max(1, len(rows)))
        return comments.post(
            session, member, submission, place, text=text, showing=showing, save=save, now=db.now(session)
        ).id

    typed = Typed(lines, "", text, showing, save)
    return _after(request, f"/submissions/{public_id}/comments", act, typed, lambda session, shown: _of_submission(
        request, session, who.user, public_id, shown
    ))  # fmt: skip


@router.get("/writeups/{public_id}/comments", dependencies=[Turn])
def writeup_page(request: Request, public_id: str, who: Someone, work: Work) -> Response:
    """A write-up with its comments."""
    return _of_writeup(request, work, who.user, public_id, Typed())


@router.post("/writeups/{public_id}/comments", dependencies=[Slot])
def comment_on_writeup(
    *,
    request: Request,
    public_id: str,
    who: Someone,
    text: Text = "",
    section: Text = "",
    showing: Annotated[Showing, Form()] = Showing.with_grades,
    save: Annotated[bool, Form()] = False,
) -> Response:
    """Write one on a section or on all of it."""

    def act(session: Session) -> int:
        writeup, _member = writeups.find(session, who.user, public_id)
        member = _staff(session, who, writeup.course_id)
        place = Place(section=" ".join(section.split())[:200])
        return comments.post(
            session, member, writeup, place, text=text, showing=showing, save=save, now=db.now(session)
        ).id

    typed = Typed("", section, text, showing, save)
    return _after(request, f"/writeups/{public_id}/comments", act, typed, lambda session, shown: _of_writeup(
        request, session, who.user, public_id, shown
    ))  # fmt: skip


@router.post("/courses/{course}/comments/{comment_id}", dependencies=[Slot])
def change_comment(
    *,
    request: Request,
    course: str,
    comment_id: RowId,
    who: Someone,
    action: Text,
    revision: Annotated[int, Form(ge=0, le=2**31 - 1)],
    text: Text = "",
    showing: Annotated[Showing, Form()] = Showing.with_grades,
) -> Response:
    """Edit it, withdraw it, or put it back; who was second is told and sees what they typed."""

    def act(session: Session) -> str:
        member = courses.membership(session, _actor(session, who), course)
        return _address(session, _changed(session, member, comment_id, revision, Change(action, text, showing)))

    try:
        url: str = write(request, act)
    except (ConflictError, InvalidInputError) as error:
        with database_of(request).reading() as session:
            member = courses.membership(session, who.user, course)
            return _refused(request, session, member, comment_id, Typed(text=text, showing=showing, problem=error))
    return RedirectResponse(local_path(url), status_code=HTTPStatus.SEE_OTHER)


def _changed(session: Session, member: Membership, comment_id: int, revision: int, change: Change) -> Comment:
    now, asked = db.now(session), change.action
    if asked == "edit":
        return comments.edit(
            session, member, comment_id, revision=revision, text=change.text, showing=change.showing, now=now
        )
    if asked == "withdraw":
        return comments.withdraw(session, member, comment_id, revision=revision, now=now)
    if asked == "put_back":
        return comments.put_back(session, member, comment_id, revision=revision)
    raise InvalidInputError("Edit it, withdraw it or put it back.", field="action")


def _refused(request: Request, session: Session, member: Membership, comment_id: int, typed: Typed) -> Response:
    """The page that the comment is on, as it is now, with what was typed."""
    row = comments.find(session, member, comment_id)
    work = comments.work_of(session, row)
    if isinstance(work, Submission):
        return _of_submission(request, session, member.user, work.public_id, typed)
    return _of_writeup(request, session, member.user, work.public_id, typed)


def _address(session: Session, row: Comment) -> str:
    work = comments.work_of(session, row)
    kind = "submissions" if isinstance(work, Submission) else "writeups"
    return f"/{kind}/{work.public_id}/comments#comment-{row.id}"


def _after(
    request: Request,
    path: str,
    act: Callable[[Session], int],
    typed: Typed,
    shown: Callable[[Session, Typed], Response],
) -> Response:
    """Write, then go to what was written; or show the page again with what was typed."""
    try:
        comment_id: int = write(request, act)
    except (ConflictError, InvalidInputError) as error:
        with database_of(request).reading() as session:
            return shown(session, typed.refused(error))
    return RedirectResponse(f"{path}#comment-{comment_id}", status_code=HTTPStatus.SEE_OTHER)


def _of_submission(request: Request, session: Session, user: User, public_id: str, typed: Typed) -> Response:
    submission = submissions.find(session, user, public_id)
    member = courses.membership(session, user, submission.assignment.course.slug)
    return page_of(request, session, member, piece_of_submission(session, member, submission), typed)


def _of_writeup(request: Request, session: Session, user: User, public_id: str, typed: Typed) -> Response:
    writeup, member = writeups.find(session, user, public_id)
    assignment = session.get_one(Assignment, writeup.assignment_id)
    return page_of(request, session, member, piece_of_writeup(session, member, assignment, writeup), typed)


def _actor(session: Session, who: Identity) -> User:
    return session.get_one(User, who.user.id)


def _staff(session: Session, who: Identity, course_id: int) -> Membership:
    """Who comments; to everybody else there is nothing here to write to."""
    course = session.get_one(Course, course_id)
    return courses.staff_of(session, _actor(session, who), course.slug)
