"""A student says why their speed should count; then staff decide again. Once for each submission."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from server import audit
from server.courses import courses
from server.errors import ConflictError, ForbiddenError, InvalidInputError
from server.gradebook.people import checked_reason
from server.grading.lock import lock_submission
from server.grading.review import decide
from server.groups import groups
from server.messages import messages
from server.models import Appeal, Assignment, AuditEntry, NotificationKind, Review, Submission, User

MAX_CHARS = 4_000
_APPEALABLE = (Review.held, Review.rejected)
_ANSWERS = (Review.cleared, Review.rejected)


def of_submission(session: Session, submission: Submission) -> Appeal | None:
    """What was said about this submission, and what came of it."""
    return session.scalar(select(Appeal).where(Appeal.submission_id == submission.id))


def open_appeal(session: Session, submission: Submission) -> Appeal | None:
    """What was said about it and is not answered yet."""
    appeal = of_submission(session, submission)
    return appeal if appeal is not None and appeal.decided_at is None else None


def may_appeal(submission: Submission, user: User, appeal: Appeal | None) -> bool:
    """Whether this person can say something now: whose it is, once, while a speed that it has does not count."""
    return submission.user_id == user.id and appeal is None and _has_what_is_appealed(submission)


def _has_what_is_appealed(submission: Submission) -> bool:
    """Without a result there is nothing that anybody could decide, and an appeal would wait for ever."""
    return submission.review in _APPEALABLE and submission.result_id is not None


def say(session: Session, user: User, submission: Submission, text: str, *, now: datetime) -> Appeal:
    """Appeal. The course's staff are told.

    Raises:
        ForbiddenError: it is somebody else's submission.
        InvalidInputError: there is no text, or too much of it.
        ConflictError: its speed counts, it has none yet, or there was an appeal already.
    """
    if submission.user_id != user.id:
        raise ForbiddenError("Only the person who submitted it can appeal.")
    text = text.replace("\0", "").strip()
    if not 0 < len(text) <= MAX_CHARS:
        raise InvalidInputError(f"Give a reason of 1 to {MAX_CHARS:,} characters.", field="text")
    row = lock_submission(session, submission.id)
    if row is None or not _has_what_is_appealed(row):
        raise ConflictError("There is nothing to appeal: the speed of this submission was not held or rejected.")
    appeal = Appeal(course_id=row.course_id, submission_id=row.id, text=text, created_at=now)
    try:
        with session.begin_nested():
            session.add(appeal)
    except IntegrityError:
        raise ConflictError("You have appealed already. The staff's next decision is final.") from None
    audit.record(session, action="submission.appealed", subject=f"submission:{row.public_id}", actor=user)
    _tell_staff(session, row)
    return appeal


def settle(
    session: Session,
    submission: Submission,
    review: Review,
    *,
    actor: User,
    reason: str,
    now: datetime,
    seen: Review,
    read: bool,
) -> None:
    """Decide with a reason that the student reads; where an appeal is open, that is its answer.

    Args:
        seen: what was decided when `actor` looked.
        read: an open appeal was shown to them.

    Raises:
        InvalidInputError: no reason, or what answers no appeal.
        ConflictError: somebody decided, answered or appealed meanwhile.
    """
    # An appeal is made under this lock: none comes in after the look.
    lock_submission(session, submission.id)
    if read:
        answer(session, submission, review, actor=actor, reason=reason, now=now, seen=seen)
    elif open_appeal(session, submission) is not None:
        raise ConflictError("The student has appealed meanwhile. Read the appeal, then decide.")
    else:
        decide(session, submission, review, actor=actor, reason=reason, now=now, seen=seen, told=True)


def answer(
    session: Session, submission: Submission, review: Review, *, actor: User, reason: str, now: datetime, seen: Review
) -> Appeal:
    """Decide again, with a reason that the student reads; it may come to what it was.

    Raises:
        InvalidInputError: no reason, or what is no answer.
        ConflictError: there is no open appeal, or somebody decided meanwhile.
    """
    reason = checked_reason(reason, most=MAX_CHARS)
    if review not in _ANSWERS:
        raise InvalidInputError("The student has appealed: accept its speed or reject it.", field="decision")
    row = lock_submission(session, submission.id)
    appeal = session.scalar(select(Appeal).where(Appeal.submission_id == submission.id).with_for_update())
    if row is None or appeal is None or appeal.decided_at is not None or row.review is not seen:
        raise ConflictError("Somebody else answered this appeal meanwhile.")
    if row.review is not review:
        decide(session, row, review, actor=actor, reason=reason, now=now, seen=seen, told=True, tell=False)
    appeal.decided_at, appeal.decided_by_id = now, actor.id
    appeal.decision, appeal.reason = review, reason
    audit.record(
        session,
        action="submission.appeal_answered",
        subject=f"submission:{row.public_id}",
        actor=actor,
        detail={"before": seen.value, "after": review.value},
        reason=reason,
    )
    _tell_student(session, row, appeal)
    return appeal


def told_reason(session: Session, submission: Submission) -> str:
    """What staff told the student when they decided last; `""` where they told nothing."""
    query = (
        select(AuditEntry)
        .where(AuditEntry.subject == f"submission:{submission.public_id}", AuditEntry.action == "submission.reviewed")
        .order_by(AuditEntry.id.desc())
        .limit(1)
    )
    entry = session.scalar(query)
    return str(entry.detail.get("told", "")) if entry else ""


def _tell_student(session: Session, submission: Submission, appeal: Appeal) -> None:
    title = session.get_one(Assignment, submission.assignment_id).title
    counts = "counts" if submission.review is Review.cleared else "does not count"
    messages.notify(
        session,
        groups.together(session, submission.assignment_id, submission.user_id),
        NotificationKind.held_decided,
        course_id=submission.course_id,
        title=f"Your appeal about submission {submission.number} in {title} was answered: its speed {counts}",
        url=f"/submissions/{submission.public_id}/appeal",
        key=f"appeal:{appeal.id}",
    )


def _tell_staff(session: Session, submission: Submission) -> None:
    messages.notify(
        session,
        courses.staff_ids(session, submission.course_id),
        NotificationKind.regrade_request_opened,
        course_id=submission.course_id,
        title=f"An appeal about submission {submission.public_id}",
        url=f"/submissions/{submission.public_id}/evidence",
        key=f"appealed:{submission.public_id}",
    )
