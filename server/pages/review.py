"""What waits for a person, the evidence, and the decision; for students, the decision and their appeal."""

from __future__ import annotations

from enum import StrEnum
from http import HTTPStatus
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse
from sqlalchemy.orm import Session
from starlette.responses import Response

from server import db
from server.courses import courses
from server.errors import ConflictError, ForbiddenError, InvalidInputError, LadderError
from server.gradebook.people import checked_reason
from server.grading import appeals, findings, review_queue
from server.http.identity import Someone
from server.http.turns import Turn
from server.http.work import Work, database_of
from server.models import Review, Submission, User
from server.pages import forms
from server.pages.highlight import listing
from server.pages.rendering import Slot, render, write
from server.submissions import board_inspections, submissions
from server.submissions.evidence import evidence_of

router = APIRouter(include_in_schema=False)
REASON_CHARS = 2_000
DONE = {
    "cleared": "Decided: its speed counts. The student was told.",
    "rejected": "Decided: its speed does not count. The student was told.",
    "held": "It is held.",
    "looked_at": "Reviewed: no problem.",
}


class Action(StrEnum):
    """What staff do about a submission that waits for them."""

    cleared = "cleared"
    rejected = "rejected"
    held = "held"
    looked_at = "looked_at"
    """Nothing to it: no decision is changed."""


@router.get("/courses/{course}/review")
def queue_page(request: Request, course: str, who: Someone, work: Work, done: forms.WhatWasDone) -> Response:
    """Everything that waits."""
    member = courses.membership(work, who.user, course)
    found = review_queue.waiting(work, member)
    return render(
        request, "review.html", member=member, course=member.course, found=found, shown=review_queue.SHOWN,
        done=done.said(DONE),
    )  # fmt: skip


@router.get("/submissions/{public_id}/evidence", dependencies=[Turn])
def evidence_page(request: Request, public_id: str, who: Someone, work: Work) -> Response:
    """Everything that there is to decide by; its course's staff only."""
    return _evidence(request, work, who.user, public_id)


@router.post("/submissions/{public_id}/evidence", dependencies=[Slot])
def decide_page(
    *,
    request: Request,
    public_id: str,
    who: Someone,
    action: Annotated[Action, Form()],
    seen: Annotated[Review, Form()],
    reason: Annotated[str, Form()] = "",
    appeal: Annotated[bool, Form()] = False,
) -> Response:
    """Decide, with a reason that the student reads; or note that somebody looked."""

    def act(session: Session) -> str:
        submission = submissions.find_as_staff(session, who.user, public_id)
        # Deciding locks the row and loads it anew, without what stands around it.
        slug = submission.assignment.course.slug
        _act(session, submission, session.get_one(User, who.user.id), action, reason=reason, seen=seen, appeal=appeal)
        return slug

    try:
        course: str = write(request, act)
    except (ConflictError, InvalidInputError) as error:
        with database_of(request).reading() as session:
            return _evidence(request, session, who.user, public_id, problem=error, reason=reason)
    return forms.back(forms.course_path(course, "/review"), action.value)


def _act(
    session: Session, submission: Submission, actor: User, action: Action, *, reason: str, seen: Review, appeal: bool
) -> None:
    reason, now = checked_reason(reason, most=REASON_CHARS), db.now(session)
    if action is Action.looked_at:
        findings.look(session, submission, actor=actor, reason=reason, now=now)
    else:
        review = Review(action.value)
        appeals.settle(session, submission, review, actor=actor, reason=reason, now=now, seen=seen, read=appeal)


@router.get("/submissions/{public_id}/appeal")
def appeal_page(request: Request, public_id: str, who: Someone, work: Work) -> Response:
    """What was decided about a submission's speed, and what its student says."""
    return _appeal(request, work, who.user, public_id)


@router.post("/submissions/{public_id}/appeal", dependencies=[Slot])
def make_appeal(request: Request, public_id: str, who: Someone, text: Annotated[str, Form()] = "") -> Response:
    """Say why its speed should count."""

    def act(session: Session) -> None:
        submission = submissions.find(session, who.user, public_id)
        appeals.say(session, session.get_one(User, who.user.id), submission, text, now=db.now(session))

    try:
        write(request, act)
    except ForbiddenError:
        raise
    except (ConflictError, InvalidInputError) as error:
        with database_of(request).reading() as session:
            return _appeal(request, session, who.user, public_id, problem=error, text=text)
    return RedirectResponse(f"/submissions/{quote(public_id)}/appeal", status_code=HTTPStatus.SEE_OTHER)


def _evidence(
    request: Request,
    session: Session,
    user: User,
    public_id: str,
    *,
    problem: LadderError | None = None,
    reason: str = "",
) -> Response:
    submission = submissions.find_as_staff(session, user, public_id)
    member = courses.membership(session, user, submission.assignment.course.slug)
    source = submissions.source_of(session, submission).decode("utf-8", "replace")
    return render(
        request,
        "evidence.html",
        status=problem.status if problem else HTTPStatus.OK,
        member=member,
        course=member.course,
        submission=submission,
        evidence=evidence_of(session, submission, source),
        inspected=board_inspections.found_in(session, submission),
        listing=listing(source, submission.language.value),
        problem=problem,
        reason=reason[:REASON_CHARS],
    )


def _appeal(
    request: Request,
    session: Session,
    user: User,
    public_id: str,
    *,
    problem: LadderError | None = None,
    text: str = "",
) -> Response:
    submission = submissions.find(session, user, public_id)
    member = courses.membership(session, user, submission.assignment.course.slug)
    appeal = appeals.of_submission(session, submission)
    return render(
        request,
        "appeal.html",
        status=problem.status if problem else HTTPStatus.OK,
        member=member,
        course=member.course,
        submission=submission,
        appeal=appeal,
        may_appeal=appeals.may_appeal(submission, user, appeal),
        told=appeals.told_reason(session, submission),
        most=appeals.MAX_CHARS,
        problem=problem,
        text=text[: appeals.MAX_CHARS],
    )
