"""Take a submission in, find it again, and list what somebody handed in."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, and_, func, or_, select
from sqlalchemy.orm import Session, joinedload, undefer

from autograder import languages
from autograder.assignment import content_hash
from server import db, ids
from server.accounts import accounts
from server.config import Config
from server.courses import courses, quotas
from server.courses.courses import AssignmentDetail, Membership
from server.errors import ConflictError, ForbiddenError, InvalidInputError, NotFoundError, TooManyError
from server.grading.lock import lock_submission
from server.grading.regrade_attempts import open_item
from server.grading.requeue import first_work
from server.grading.states import submission_moves
from server.grading.supersede import give_back, supersede_older
from server.grading.suspects import is_known_suspect
from server.groups import groups
from server.models import Assignment, Enrolment, Lane, Language, Line, Mode, Role, State, Submission, User
from server.nodes import nodes
from server.submissions import inspections, prerequisites, sources
from server.submissions.views import FINAL, WAITING, Score, SubmissionView, view

__all__ = [
    "FINAL",
    "WAITING",
    "Score",
    "SubmissionView",
    "cancel",
    "find",
    "find_as_staff",
    "history",
    "is_staff_of",
    "source_of",
    "submit",
    "view",
]

LINE = {
    Mode.submission: Line.submission,
    Mode.run: Line.run,
    Mode.profile: Line.profile,
    Mode.sanitize: Line.profile,
}
_WHERE = {
    State.running: "is being graded",
    State.done: "is graded",
    State.failed: "has failed on our side",
    State.cancelled: "is cancelled",
}
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
    request_key: str | None = None,
    case: str = "",
) -> Submission:
    """Store a submission and put it in the queue, in the caller's transaction: accepted means this row exists.

    Args:
        assignment: its slug.
        now: the time of the upload; it decides lateness.
        trace: the request's id.
        request_key: the same request again, because its answer was lost, returns what it stored the first time.
        case: of a profile or a sanitizer run, the public case to look at; `""` leaves the choice to the judge.

    Raises:
        ConflictError: another request had this key.
        NotFoundError: no such assignment, or a student may not know of it yet.
        InvalidInputError, TooLargeError: source, language or lane cannot be taken, or the assignment is closed.
        TooManyError: more than a quota of the assignment, or than the one per minute.
    """
    detail = courses.assignment_of(session, membership, assignment, now)
    sources.check_source(source)
    _check_choice(detail, lane, language)
    if mode.inspects:
        inspections.check_case(detail.spec, lane, mode, case)
    user, together = _locked(session, membership.user, detail)
    # Before anything that changes with time: what was accepted stays accepted, however late its answer is asked for.
    if (stored := _stored(session, membership.user, request_key)) is not None:
        return _same(stored, (detail.row.id, mode, lane, language, content_hash(source)))
    _check_may(session, membership, detail, mode, now, lane=lane, language=language, together=together)
    if mode.inspects:
        inspections.check(session, membership, lane, mode, config=config, now=now)
    standing = standing_of(session, membership.user, mode, detail.row.id, now)
    _check_quota(standing, mode, config, now)
    submission = Submission(
        public_id=ids.public_id(),
        number=standing.number,
        course_id=membership.course.id,
        # As objects, which whoever shows it next need not look up again.
        assignment=detail.row,
        version=detail.version,
        user=user,
        mode=mode, lane=lane, language=language, filename=sources.clean_filename(filename, language),
        case=case if mode.inspects else "",
        source=source, source_hash=content_hash(source),
        request_key=request_key, trace=trace, uploaded_at=now, revision=1,
    )  # fmt: skip
    _enter_queue(session, submission, detail, user)
    return submission


def _locked(session: Session, user: User, detail: AssignmentDetail) -> tuple[User, Collection[int]]:
    """The person, whose row is held with those of their group, and everybody in that: they share a quota."""
    together = groups.together(session, detail.row.id, user.id)
    return accounts.lock_user(session, user, beside=together), together


def _enter_queue(session: Session, submission: Submission, detail: AssignmentDetail, user: User) -> None:
    """Give it its line and place: its own, or, in the line of submissions, that of an older one that waits."""
    submission.state = State.queued
    submission.place_at = submission.uploaded_at
    submission.line = LINE[submission.mode]
    submission.work = first_work(detail.spec, submission.lane, submission.mode)
    submission.suspect = is_known_suspect(session, user.id, submission.source_hash)
    session.add(submission)
    session.flush()
    if submission.mode is Mode.submission:
        # For an adapter a source defines no function: it registers something by way of torch.
        entries = ["torch"] if detail.spec.adapter else [part.entry for part in detail.spec.parts]
        supersede_older(session, submission, entries=entries, dates=detail.deadlines)


def cancel(session: Session, user: User, public_id: str, *, now: datetime) -> Submission:
    """Take a waiting submission out of the queue, for good; what it superseded gets its place back.

    Raises:
        NotFoundError: there is none, or `user` may not know of it.
        ForbiddenError: it is somebody else's.
        ConflictError: it runs, is over, has its verdict already, or stands in the queue for a proposal of staff.
    """
    found = find(session, user, public_id)
    if found.user_id != user.id:
        raise ForbiddenError("Only the person who submitted it can cancel it.")
    accounts.lock_user(session, user)
    row = lock_submission(session, found.id)
    if row is None or row.state not in WAITING:
        raise ConflictError(f"There is nothing to cancel: this {_noun(found)} {_WHERE[found.state]}.")
    if row.result_id is not None:
        raise ConflictError(f"This {_noun(row)} has its verdict already; there is nothing left to cancel.")
    if open_item(session, row) is not None:
        raise ConflictError(f"Staff are having this {_noun(row)} graded again; it cannot be cancelled meanwhile.")
    row.state = submission_moves(row.state, State.cancelled)
    row.finished_at = now
    row.revision += 1
    give_back(session, row)
    return row


def _noun(submission: Submission) -> str:
    return submission.mode.noun


def find(session: Session, user: User, public_id: str) -> Submission:
    """A submission that `user` may see: their own while they are in its course, any as its staff.

    Of what others of their group handed in they see submissions; runs are everybody's own.

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
    if row is None or not _may_see(session, row[0], user, row[1]):
        raise NotFoundError("There is no such submission.")
    found: Submission = row[0]
    courses.refuse_archived(session, found.assignment.course)
    return found


def find_as_staff(session: Session, user: User, public_id: str) -> Submission:
    """A submission for its course's staff.

    Raises:
        NotFoundError: there is none, or the user is no staff of its course.
    """
    found = find(session, user, public_id)
    if not is_staff_of(session, user, found):
        raise NotFoundError("There is nothing here.")
    return found


def is_staff_of(session: Session, user: User, submission: Submission) -> bool:
    """Whether `user` sees this submission as staff do, hidden cases included."""
    if user.acts_as_student:
        return False
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
    user: User | None = None,
    together: bool = False,
    asked_for: bool = False,
    before: str | None = None,
    limit: int = 50,
) -> list[Submission]:
    """Submissions in the course, newest first, with `assignment`, `user` and `result` loaded.

    Args:
        assignment: only of this slug.
        user: whose; students always get their own, staff without it everybody's.
        together: of `assignment`, also what others of their group handed in; their runs are their own.
        asked_for: only what a person handed in, without what is made of it for a leaderboard.
        before: older than the submission with this public id.
        limit: at most `MAX_PAGE`.
    """
    owner = user if membership.is_staff else membership.user
    wanted = courses.id_of_assignment(membership.course.id, assignment) if assignment is not None else None
    assignment_id = session.scalar(wanted) if wanted is not None else None
    shown = [Submission.course_id == membership.course.id]
    if owner is not None:
        shown.append(_theirs(session, owner, assignment_id if together else None))
    if assignment is not None:
        shown.append(Submission.assignment_id == assignment_id)
    if asked_for:
        shown.append(inspections.ASKED_FOR)
    if before is not None:
        # One that is not among them has no place there, and nothing comes after it.
        start = select(Submission.id).where(Submission.public_id == before, *shown).scalar_subquery()
        shown.append(Submission.id < start)
    query = (
        select(Submission)
        .where(*shown)
        .options(joinedload(Submission.assignment), joinedload(Submission.user), joinedload(Submission.result))
        .order_by(Submission.id.desc())
        .limit(max(1, min(limit, MAX_PAGE)))
    )
    return list(session.scalars(query))


def _theirs(session: Session, owner: User, assignment_id: int | None) -> ColumnElement[bool]:
    """What somebody handed in, and, where a group is asked for, what its other members submitted."""
    own = Submission.user_id == owner.id
    people = {owner.id} if assignment_id is None else {owner.id, *groups.together(session, assignment_id, owner.id)}
    if len(people) == 1:
        return own
    return Submission.user_id.in_(sorted(people)) & or_(own, Submission.mode == Mode.submission)


def _check_choice(detail: AssignmentDetail, lane: Lane, language: Language) -> None:
    if language not in detail.spec.languages:
        offered = ", ".join(detail.spec.languages)
        raise InvalidInputError(f"{detail.title} does not accept {language}; it accepts {offered}.", field="language")
    if refused := languages.of(language).refused(lane):
        raise InvalidInputError(refused, field="lane")
    if lane not in detail.lanes:
        offered = ", ".join(detail.lanes) or "none"
        raise InvalidInputError(f"{detail.title} is not graded on {lane}, only on {offered}.", field="lane")


def _check_may(
    session: Session,
    membership: Membership,
    detail: AssignmentDetail,
    mode: Mode,
    now: datetime,
    *,
    lane: Lane,
    language: Language,
    together: Collection[int],
) -> None:
    """Whether this person may hand this in now; the quota per minute is not looked at."""
    _check_time(detail, membership, mode, now)
    _check_served(session, membership, lane, language)
    _check_unlocked(session, membership, detail, mode, now)
    if not membership.is_staff:
        quotas.check(session, detail.row, membership.user.id, mode, now, together=together)


def _check_time(detail: AssignmentDetail, membership: Membership, mode: Mode, now: datetime) -> None:
    if membership.is_staff or mode is not Mode.submission or not detail.is_closed(now):
        return
    closed = detail.late_until
    raise InvalidInputError(
        f"{detail.title} closed on {closed:%d %B %Y at %H:%M} UTC. Practice runs still work.", field="mode"
    )


def _check_served(session: Session, membership: Membership, lane: Lane, language: Language) -> None:
    """Where nothing is served at all, something is broken that passes: then everything waits."""
    if membership.course.accepts_unserved_lanes:
        return
    now, course_id = db.now(session), membership.course.id
    served = nodes.served_lanes(session, now=now, course_id=course_id)
    if served and lane not in served:
        raise InvalidInputError(
            f"No node serves the lane {lane}, so this would wait forever. Lanes in service: "
            f"{', '.join(sorted(served))}.",
            field="lane",
        )
    spoken = nodes.served_languages(session, lane, now=now, course_id=course_id)
    if served and language not in spoken:
        titles = ", ".join(languages.of(one).title for one in Language if one in spoken) or "none"
        raise InvalidInputError(
            f"No node serves {languages.of(language).title} on {lane}, so this would wait forever. Languages in "
            f"service there: {titles}.",
            field="language",
        )


def _check_unlocked(
    session: Session, membership: Membership, detail: AssignmentDetail, mode: Mode, now: datetime
) -> None:
    if mode is not Mode.submission or not membership.course.locks_rungs:
        return
    found = prerequisites.missing(session, membership, [detail], now).get(detail.row.id)
    if found:
        first = " and ".join(row.title for row in found)
        raise InvalidInputError(
            f"{detail.title} opens for submissions once you have passed {first}. Practice runs work already.",
            field="mode",
        )


def _stored(session: Session, user: User, request_key: str | None) -> Submission | None:
    """What a request with this key stored; the person's row is locked, so that nobody stores it meanwhile."""
    if request_key is None:
        return None
    return session.scalar(
        select(Submission).where(Submission.user_id == user.id, Submission.request_key == request_key)
    )


def _same(stored: Submission, asked: tuple[int, Mode, Lane, Language, str]) -> Submission:
    """The stored one, if this request asks for just that."""
    if asked != (stored.assignment_id, stored.mode, stored.lane, stored.language, stored.source_hash):
        raise ConflictError("Another submission has used this Idempotency-Key; a new submission needs a new key.")
    return stored


@dataclass(frozen=True)
class Standing:
    """What a person handed in so far in one mode: how many in the last minute, since when, and the next number."""

    recent: int
    since: datetime | None
    number: int


def standing_of(session: Session, user: User, mode: Mode, assignment_id: int, now: datetime) -> Standing:
    recent = and_(Submission.uploaded_at > now - _WINDOW, inspections.ASKED_FOR)
    number = func.max(Submission.number).filter(Submission.assignment_id == assignment_id)
    query = select(func.count().filter(recent), func.min(Submission.uploaded_at).filter(recent), number)
    count, since, last = session.execute(query.where(Submission.user_id == user.id, Submission.mode == mode)).one()
    return Standing(count, since, (last or 0) + 1)


def _check_quota(standing: Standing, mode: Mode, config: Config, now: datetime) -> None:
    most = config.submit_quota_per_minute if mode is Mode.submission else config.run_quota_per_minute
    if standing.recent < most:
        return
    wait_s = max(1.0, ((standing.since or now) + _WINDOW - now).total_seconds())
    word = "runs" if mode is Mode.run else f"{mode.noun}s"
    raise TooManyError(
        f"You made {standing.recent} {word} in the last minute; the next is possible in {wait_s:.0f} s.",
        retry_after_s=wait_s,
    )


def _may_see(session: Session, submission: Submission, user: User, role: Role | None) -> bool:
    if not user.acts_as_student and (user.is_admin or role in {Role.ta, Role.instructor}):
        return True
    if role is None or submission.user_id == user.id:
        return role is not None
    together = groups.together(session, submission.assignment_id, submission.user_id)
    return submission.mode is Mode.submission and user.id in together
