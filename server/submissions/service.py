"""Take a submission in, find it again, and list what somebody handed in."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import func, select
from sqlalchemy.orm import Session, joinedload, undefer

from autograder.assignment import content_hash
from server import ids
from server.config import Config
from server.courses import service as courses
from server.courses.service import AssignmentDetail, Membership
from server.errors import InvalidInputError, NotFoundError, TooManyError
from server.models import Assignment, Enrolment, Lane, Language, Mode, Role, State, Submission, User
from server.submissions import sources
from server.submissions.views import FINAL, WAITING, Score, SubmissionView, view

__all__ = [
    "FINAL",
    "WAITING",
    "Score",
    "SubmissionView",
    "find",
    "history",
    "is_staff_of",
    "source_of",
    "submit",
    "view",
]

PRIORITY = {Mode.submission: 0, Mode.run: 10}
"""Lower goes first."""
MAX_PAGE = 200
_WINDOW = timedelta(minutes=1)


def submit(
    session: Session,
    *,
    membership: Membership,
    assignment: str,
    mode: Mode,
    lane: Lane,
    language: Language,
    filename: str,
    source: bytes,
    config: Config,
    now: datetime,
    trace: str,
) -> Submission:
    """Store a submission and put it in the queue, in the caller's transaction: accepted means this row exists.

    Args:
        assignment: its slug.
        now: the time of the upload; it decides lateness.
        trace: the request's id.

    Raises:
        NotFoundError: no such assignment, or a student may not know of it yet.
        InvalidInputError, TooLargeError: source, language or lane cannot be taken, or the assignment is closed.
        TooManyError: more than the quota per minute.
    """
    detail = courses.assignment_of(session, membership, assignment, now)
    sources.check_source(source)
    _check_choice(detail, lane, language)
    _check_time(detail, membership, mode, now)
    _lock(session, membership.user)
    _check_quota(session, membership.user, mode, config, now)
    submission = Submission(
        public_id=ids.public_id(),
        number=_next_number(session, detail, membership.user, mode),
        course_id=membership.course.id,
        assignment_id=detail.row.id,
        version_id=detail.version.id,
        user_id=membership.user.id,
        mode=mode,
        lane=lane,
        language=language,
        filename=sources.clean_filename(filename, language),
        source=source,
        source_hash=content_hash(source),
        trace=trace,
        uploaded_at=now,
        state=State.queued,
        priority=PRIORITY[mode],
        place_at=now,
        revision=1,
    )
    session.add(submission)
    session.flush()
    return submission


def find(session: Session, user: User, public_id: str) -> Submission:
    """A submission that `user` may see: their own while they are in its course, or any where they are staff.

    Raises:
        NotFoundError: there is none, or they may not know of it.
    """
    row = session.execute(
        select(Submission, Enrolment.role)
        .outerjoin(
            Enrolment,
            (Enrolment.course_id == Submission.course_id)
            & (Enrolment.user_id == user.id)
            & Enrolment.dropped_at.is_(None),
        )
        .where(Submission.public_id == public_id)
        .options(joinedload(Submission.assignment).joinedload(Assignment.course), joinedload(Submission.user))
    ).one_or_none()
    if row is None or not _may_see(row[0], user, row[1]):
        raise NotFoundError("There is no such submission.")
    found: Submission = row[0]
    return found


def is_staff_of(session: Session, user: User, submission: Submission) -> bool:
    """Whether `user` sees this submission as staff do, hidden cases included."""
    if user.is_admin:
        return True
    role = session.scalar(
        select(Enrolment.role).where(
            Enrolment.course_id == submission.course_id, Enrolment.user_id == user.id, Enrolment.dropped_at.is_(None)
        )
    )
    return role in {Role.ta, Role.instructor}


def source_of(session: Session, submission: Submission) -> bytes:
    """The bytes as uploaded."""
    query = select(Submission).where(Submission.id == submission.id).options(undefer(Submission.source))
    return session.scalars(query.execution_options(populate_existing=True)).one().source


def history(
    session: Session,
    membership: Membership,
    *,
    assignment: str | None = None,
    mode: Mode | None = None,
    user: User | None = None,
    before: str | None = None,
    limit: int = 50,
) -> list[Submission]:
    """Submissions in the course, newest first, with `assignment`, `user` and `result` loaded.

    Args:
        assignment: only of this slug.
        user: whose; students always get their own, staff without it everybody's.
        before: older than the submission with this public id.
        limit: at most `MAX_PAGE`.
    """
    query = (
        select(Submission)
        .join(Submission.assignment)
        .where(Submission.course_id == membership.course.id)
        .options(joinedload(Submission.assignment), joinedload(Submission.user), joinedload(Submission.result))
        .order_by(Submission.id.desc())
        .limit(max(1, min(limit, MAX_PAGE)))
    )
    owner = user if membership.is_staff else membership.user
    if owner is not None:
        query = query.where(Submission.user_id == owner.id)
    if assignment is not None:
        query = query.where(Assignment.slug == assignment)
    if mode is not None:
        query = query.where(Submission.mode == mode)
    if before is not None:
        start = select(Submission.id).where(Submission.public_id == before).scalar_subquery()
        query = query.where(Submission.id < start)
    return list(session.scalars(query))


def _check_choice(detail: AssignmentDetail, lane: Lane, language: Language) -> None:
    if language not in detail.spec.languages:
        offered = ", ".join(detail.spec.languages)
        raise InvalidInputError(f"{detail.title} is not taken in {language}; it is in {offered}.", field="language")
    if lane not in detail.lanes:
        offered = ", ".join(detail.lanes) or "none"
        raise InvalidInputError(f"{detail.title} is not graded on {lane}; it is on {offered}.", field="lane")


def _check_time(detail: AssignmentDetail, membership: Membership, mode: Mode, now: datetime) -> None:
    if membership.is_staff or mode is Mode.run or not detail.is_closed(now):
        return
    closed = detail.row.late_until
    raise InvalidInputError(
        f"{detail.title} closed on {closed:%d %B %Y at %H:%M} UTC. Practice runs still work.", field="mode"
    )


def _lock(session: Session, user: User) -> None:
    """Let a person's submissions in one by one, so that numbers and quotas hold; on SQLite all writers queue anyway."""
    session.execute(select(User.id).where(User.id == user.id).with_for_update(key_share=True))


def _check_quota(session: Session, user: User, mode: Mode, config: Config, now: datetime) -> None:
    most = config.submit_quota_per_minute if mode is Mode.submission else config.run_quota_per_minute
    count, oldest = session.execute(
        select(func.count(), func.min(Submission.uploaded_at)).where(
            Submission.user_id == user.id, Submission.mode == mode, Submission.uploaded_at > now - _WINDOW
        )
    ).one()
    if count >= most:
        wait_s = max(1.0, (oldest + _WINDOW - now).total_seconds())
        word = "submissions" if mode is Mode.submission else "runs"
        raise TooManyError(
            f"You made {count} {word} in the last minute; the next is possible in {wait_s:.0f} s.", retry_after_s=wait_s
        )


def _next_number(session: Session, detail: AssignmentDetail, user: User, mode: Mode) -> int:
    query = select(func.max(Submission.number)).where(
        Submission.assignment_id == detail.row.id, Submission.user_id == user.id, Submission.mode == mode
    )
    return (session.scalar(query) or 0) + 1


def _may_see(submission: Submission, user: User, role: Role | None) -> bool:
    if user.is_admin or role in {Role.ta, Role.instructor}:
        return True
    return submission.user_id == user.id and role is not None
