"""Regrade requests: a student asks, both sides write, staff answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import RedirectResponse
from sqlalchemy.orm import Session
from starlette.responses import Response

from server import db
from server.courses import courses
from server.courses.courses import Membership
from server.errors import ConflictError, InvalidInputError, LadderError
from server.grading.remeasure_requests import retime_of
from server.http.identity import Someone
from server.http.work import RowId, Work, database_of
from server.models import RequestState, Submission, User
from server.pages.forms import course_path, whole
from server.pages.regrade_new import problem_of, show_page
from server.pages.rendering import Slot, write
from server.regrades import asking, inbox, requests, rules
from server.regrades.inbox import Box
from server.submissions import submissions

router = APIRouter(include_in_schema=False)
BASE = "/courses/{course}/regrade-requests"
ABOUT = "/submissions/{public_id}/regrade-request"
Text = Annotated[str, Form(max_length=20_000)]


@router.get(BASE)
def inbox_page(
    *,
    request: Request,
    course: str,
    who: Someone,
    work: Work,
    box: Box = Box.open,
    assignment: Annotated[str, Query(max_length=60)] = "",
    page: Annotated[int, Query(ge=1, le=10_000)] = 1,
) -> Response:
    """For staff everybody's, for a student their own."""
    member = courses.membership(work, who.user, course)
    shown = box if member.is_staff else Box.all
    return _inbox(request, work, member, box=shown, assignment=assignment, page=page)


@router.post(f"{BASE}/rules", dependencies=[Slot])
def rules_page(
    *,
    request: Request,
    course: str,
    who: Someone,
    enabled: Annotated[bool, Form()] = False,
    per_assignment: Annotated[str, Form(max_length=10)] = "",
    per_course: Annotated[str, Form(max_length=10)] = "",
    window_days: Annotated[str, Form(max_length=10)] = "",
    cooling_off_h: Annotated[str, Form(max_length=10)] = "",
    revision: Annotated[str, Form(max_length=10)] = "",
) -> Response:
    """Change what the course lets its students ask; an instructor only."""
    typed = {
        "per_assignment": per_assignment, "per_course": per_course, "window_days": window_days,
        "cooling_off_h": cooling_off_h,
    }  # fmt: skip
    numbers = {name: whole(value.strip()) for name, value in typed.items()}

    def act(session: Session) -> None:
        member = courses.membership(session, who.user, course)
        rules.set_rules(session, member, enabled=enabled, numbers=numbers, revision=whole(revision))

    try:
        write(request, act)
    except (ConflictError, InvalidInputError) as error:
        with database_of(request).reading() as session:
            member = courses.membership(session, who.user, course)
            return _inbox(request, session, member, problem=error, typed={**typed, "enabled": enabled})
    return RedirectResponse(f"{course_path(course)}/regrade-requests#rules", status_code=HTTPStatus.SEE_OTHER)


@router.get(f"{BASE}/{{request_id}}")
def thread_page(request: Request, course: str, request_id: RowId, who: Someone, work: Work) -> Response:
    """One request: what was asked and measured, what was said, the answer."""
    return _thread(request, work, courses.membership(work, who.user, course), request_id)


@router.post(f"{BASE}/{{request_id}}/messages", dependencies=[Slot])
def say_page(request: Request, course: str, request_id: RowId, who: Someone, text: Text = "") -> Response:
    """Add to the thread."""

    def act(session: Session, member: Membership) -> None:
        requests.say(session, member, request_id, text, now=db.now(session))

    return _do(request, who.user, course, request_id, act, text=text)


@router.post(f"{BASE}/{{request_id}}/reopen", dependencies=[Slot])
def reopen_page(request: Request, course: str, request_id: RowId, who: Someone, text: Text = "") -> Response:
    """Ask again after an answer."""

    def act(session: Session, member: Membership) -> None:
        requests.reopen(session, member, request_id, text, now=db.now(session))

    return _do(request, who.user, course, request_id, act, text=text)


@router.post(f"{BASE}/{{request_id}}/answer", dependencies=[Slot])
def answer_page(
    *,
    request: Request,
    course: str,
    request_id: RowId,
    who: Someone,
    outcome: Annotated[RequestState, Form()],
    text: Text = "",
    revision: Annotated[str, Form(max_length=10)] = "",
    how: Annotated[str, Form(max_length=10)] = "regrade",
) -> Response:
    """Accept or decline."""

    def act(session: Session, member: Membership) -> None:
        requests.answer(
            session, member, request_id, outcome=outcome, text=text, revision=whole(revision), now=db.now(session),
            regrade=how == "regrade",
        )  # fmt: skip

    return _do(request, who.user, course, request_id, act, text=text, outcome=outcome.value)


@router.get(ABOUT)
def ask_page(request: Request, public_id: str, who: Someone, work: Work) -> Response:
    """The form; where there is a request already, its thread."""
    submission = submissions.find(work, who.user, public_id)
    found = requests.of_submission(work, submission.id)
    if found is not None:
        slug = submission.assignment.course.slug
        return RedirectResponse(_address(slug, found.id), status_code=HTTPStatus.SEE_OTHER)
    return _ask(request, work, who.user, submission)


@router.post(ABOUT, dependencies=[Slot])
def ask(request: Request, public_id: str, who: Someone, text: Text = "") -> Response:
    """Ask."""

    def act(session: Session) -> str:
        submission = submissions.find(session, who.user, public_id)
        slug = submission.assignment.course.slug
        member = courses.membership(session, who.user, slug)
        return _address(slug, requests.ask(session, member, submission, text, now=db.now(session)).id)

    try:
        address: str = write(request, act)
    except (ConflictError, InvalidInputError) as error:
        with database_of(request).reading() as session:
            submission = submissions.find(session, who.user, public_id)
            return _ask(request, session, who.user, submission, problem=error, text=text)
    return RedirectResponse(address, status_code=HTTPStatus.SEE_OTHER)


def _address(course: str, request_id: int) -> str:
    return f"{course_path(course)}/regrade-requests/{request_id}"


def _do(
    request: Request,
    user: User,
    course: str,
    request_id: int,
    act: Callable[[Session, Membership], None],
    **typed: str,
) -> Response:
    """Do it to a request; what cannot be taken comes back with what was typed."""

    def within(session: Session) -> None:
        act(session, courses.membership(session, user, course))

    try:
        write(request, within)
    except (ConflictError, InvalidInputError) as error:
        with database_of(request).reading() as session:
            member = courses.membership(session, user, course)
            return _thread(request, session, member, request_id, problem=error, typed=typed)
    return RedirectResponse(_address(course, request_id), status_code=HTTPStatus.SEE_OTHER)


def _inbox(
    request: Request,
    session: Session,
    member: Membership,
    *,
    box: Box = Box.open,
    assignment: str = "",
    page: int = 1,
    problem: LadderError | None = None,
    typed: Mapping[str, Any] | None = None,
) -> Response:
    return _render(
        request, "regrade_requests.html", member, problem, box=box, boxes=Box, page=page, per=inbox.PAGE,
        wanted=assignment, found=inbox.listed(session, member, box, assignment=assignment, page=page),
        counts=inbox.counts(session, member, assignment=assignment),
        statistics=inbox.statistics(session, member.course.id),
        assignments=inbox.assignments(session, member.course.id) if member.is_staff else (),
        rules=rules.rules_of(session, member.course.id), limits=rules.LIMITS, typed=typed or {},
    )  # fmt: skip


def _thread(
    request: Request,
    session: Session,
    member: Membership,
    request_id: int,
    *,
    problem: LadderError | None = None,
    typed: Mapping[str, str] | None = None,
) -> Response:
    row = requests.find(session, member, request_id)
    return _render(
        request, "regrade_request.html", member, problem, row=row, messages=requests.thread(session, row),
        retime=retime_of(row), typed=typed or {}, mine=row.user_id == member.user.id,
    )  # fmt: skip


def _ask(
    request: Request,
    session: Session,
    user: User,
    submission: Submission,
    *,
    problem: LadderError | None = None,
    text: str = "",
) -> Response:
    member = courses.membership(session, user, submission.assignment.course.slug)
    return _render(
        request, "regrade_ask.html", member, problem, submission=submission, text=text,
        may=asking.asking(session, user, submission, now=db.now(session)),
        rules=rules.rules_of(session, member.course.id), statistics=inbox.statistics(session, member.course.id),
    )  # fmt: skip


def _render(request: Request, name: str, member: Membership, problem: LadderError | None, **context: Any) -> Response:
    status = problem.status if problem is not None else HTTPStatus.OK
    return show_page(request, name, member, status=status, problem=problem_of(problem), **context)
