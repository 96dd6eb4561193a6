"""A student asks for a submission to be looked at again: its times are taken once more, then a person answers.

Everything that is said stands in a thread that both sides read. A submission is asked about once; what was answered can
be reopened once.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session, joinedload

from server import audit
from server.accounts import accounts
from server.courses.courses import Membership
from server.errors import ConflictError, ForbiddenError, NotFoundError
from server.grading.lock import lock_submission
from server.models import (
    Assignment,
    RegradeKind,
    RegradeMessage,
    RegradeRequest,
    RequestState,
    Submission,
)
from server.regrades.asking import asking
from server.regrades.proposing import draft
from server.regrades.remeasuring import begin_retime
from server.regrades.selection import Selection, Which
from server.regrades.telling import add_message, checked, tell_other, tell_staff

MOST_MESSAGES = 100


def of_submission(session: Session, submission_id: int) -> RegradeRequest | None:
    """The request about a submission."""
    return session.scalar(select(RegradeRequest).where(RegradeRequest.submission_id == submission_id))


def find(session: Session, member: Membership, request_id: int, *, lock: bool = False) -> RegradeRequest:
    """A request of this course that the member may read: their own, or any for staff.

    Raises:
        NotFoundError: there is none, or they may not know of it.
    """
    query = (
        select(RegradeRequest)
        .where(RegradeRequest.id == request_id, RegradeRequest.course_id == member.course.id)
        .execution_options(populate_existing=True)
    )
    if lock:
        query = query.with_for_update()
    else:
        query = query.options(
            joinedload(RegradeRequest.submission), joinedload(RegradeRequest.assignment),
            joinedload(RegradeRequest.user), joinedload(RegradeRequest.regrade),
        )  # fmt: skip
    row = session.scalar(query)
    if row is None or not (member.is_staff or row.user_id == member.user.id):
        raise NotFoundError("There is no such request.")
    return row


def ask(session: Session, member: Membership, submission: Submission, text: str, *, now: datetime) -> RegradeRequest:
    """Ask for it; its times are taken once more at once, where it has any.

    Raises:
        InvalidInputError: nothing, or too much, is said.
        ConflictError: they may not now (`Asking.why_not`), or asked already.
    """
    said = checked(text)
    accounts.lock_user(session, member.user)
    row = lock_submission(session, submission.id)
    if row is None or of_submission(session, row.id) is not None:
        raise ConflictError("A request about this submission exists already.")
    may = asking(session, member.user, row, now=now)
    if may.why_not:
        raise ConflictError(may.why_not)
    request = RegradeRequest(
        course_id=row.course_id, assignment_id=row.assignment_id, submission_id=row.id, user_id=member.user.id,
        state=RequestState.open, free=may.free, points_before=row.points, created_at=now,
    )  # fmt: skip
    session.add(request)
    session.flush()
    add_message(session, request, member, said, now)
    begin_retime(session, request, row, now=now)
    tell_staff(session, request, row, "asks for a regrade", f"asked:{request.id}")
    return request


def say(session: Session, member: Membership, request_id: int, text: str, *, now: datetime) -> RegradeRequest:
    """Add to the thread.

    Raises:
        InvalidInputError: nothing, or too much, is said.
        ConflictError: the thread is closed, or too long.
    """
    request = find(session, member, request_id, lock=True)
    said = checked(text)
    if request.state is not RequestState.open:
        raise ConflictError("This request has been answered. Reopen it to continue.")
    count = select(func.count()).select_from(RegradeMessage).where(RegradeMessage.request_id == request.id)
    if session.scalars(count).one() >= MOST_MESSAGES:
        raise ConflictError(f"A request has at most {MOST_MESSAGES} messages: decide it, or meet in person.")
    message = add_message(session, request, member, said, now)
    tell_other(session, request, member, "There is a message about your regrade request", f"said:{message.id}")
    return request


def answer(
    session: Session,
    member: Membership,
    request_id: int,
    *,
    outcome: RequestState,
    text: str,
    revision: int,
    now: datetime,
    regrade: bool = True,
) -> RegradeRequest:
    """Accept or decline; accepting drafts a proposal about this one submission, unless an override is to do it.

    Raises:
        ForbiddenError: only staff may, and nobody about a request of their own.
        InvalidInputError: nothing is said: a student who asked is owed a reason.
        ConflictError: it was answered, or something was said, meanwhile.
    """
    member.require_staff()
    # Before the request's own row: the recorder, which writes on it what was measured, holds the submission.
    lock_submission(session, find(session, member, request_id).submission_id)
    said = checked(text)
    request = find(session, member, request_id, lock=True)
    if request.user_id == member.user.id:
        raise ForbiddenError("Your own request has to be answered by somebody else.")
    if request.state is not RequestState.open or outcome is RequestState.open:
        raise ConflictError(f"This request has been {request.state} in the meantime.")
    if request.revision != revision:
        raise ConflictError("There are new messages or measurements since you looked. Read them, then decide.")
    submission = session.get_one(Submission, request.submission_id)
    request.state, request.answered_at, request.answered_by_id = outcome, now, member.user.id
    if outcome is RequestState.accepted and regrade:
        request.regrade_id = _propose(session, member, submission, said, now)
    add_message(session, request, member, said, now, outcome=outcome)
    tell_other(session, request, member, f"Your regrade request was {outcome}", f"answered:{request.revision}")
    audit.record(
        session, action=f"regrade_request.{outcome}", subject=f"submission:{submission.public_id}", actor=member.user,
        detail={"request": request.id, "regrade": request.regrade_id}, reason=said,
    )  # fmt: skip
    return request


def reopen(session: Session, member: Membership, request_id: int, text: str, *, now: datetime) -> RegradeRequest:
    """Ask again after an answer, once.

    Raises:
        ForbiddenError: only who asked may.
        ConflictError: it is open, or was reopened before.
    """
    request = find(session, member, request_id, lock=True)
    said = checked(text)
    if request.user_id != member.user.id:
        raise ForbiddenError("Only the person who asked can reopen a request.")
    if request.state is RequestState.open:
        raise ConflictError("This request is open.")
    if request.reopened_at is not None:
        raise ConflictError("A request can be reopened only once, and this one has been.")
    request.state, request.reopened_at = RequestState.open, now
    add_message(session, request, member, said, now)
    submission = session.get_one(Submission, request.submission_id)
    tell_staff(session, request, submission, "has reopened a regrade request", f"reopened:{request.id}")
    return request


def thread(session: Session, request: RegradeRequest) -> Sequence[RegradeMessage]:
    """What was said, oldest first."""
    query = select(RegradeMessage).where(RegradeMessage.request_id == request.id)
    return session.scalars(query.options(joinedload(RegradeMessage.author)).order_by(RegradeMessage.id)).all()


def _propose(session: Session, member: Membership, submission: Submission, reason: str, now: datetime) -> int:
    assignment = session.get_one(Assignment, submission.assignment_id)
    selection = Selection(Which.picked, picked=(submission.public_id,))
    return draft(
        session, member.user, assignment, kind=RegradeKind.rerun, selection=selection, reason=reason[:2000], now=now
    ).id
