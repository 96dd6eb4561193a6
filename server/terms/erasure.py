"""Forget people: close an account so that nobody can be told from it, and what a course's retention rule asks for.

What stays is under a pseudonym that was never shown before: points, results and measurements, because others' grades
and boards stand on them; and sources, where the course keeps the work of those who leave. Whatever tells who somebody
is goes, the reasons of their extensions too, which may speak of their health, and so may what they appealed or asked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import delete, or_, select, update
from sqlalchemy.orm import Session

from server import audit
from server.accounts import handles
from server.errors import ConflictError, InvalidInputError
from server.models import (
    ERASED_HASH,
    Alert,
    AnnouncementRead,
    ApiToken,
    Appeal,
    Artefact,
    Attempt,
    AuditEntry,
    Base,
    Course,
    DataExport,
    Draft,
    Enrolment,
    Extension,
    FindingLook,
    GradeOverride,
    KnownPlace,
    LateDayGrant,
    LinkRequest,
    LoginAttempt,
    LoginChallenge,
    LoginSession,
    Mail,
    Notification,
    NotificationKind,
    NotificationSetting,
    OutsideIdentity,
    OutsideLogin,
    PasswordLink,
    Preview,
    RecoveryCode,
    Regrade,
    RegradeMessage,
    RegradeRequest,
    Role,
    RosterImport,
    SecondFactor,
    SharedSource,
    SimilarPair,
    Submission,
    User,
    WriteUp,
)

ERASED = "erased"
DOMAIN = "erased.invalid"
THEIRS: tuple[type[Base], ...] = (
    LoginSession, ApiToken, PasswordLink, OutsideIdentity, OutsideLogin, Notification, NotificationSetting, Mail,
    AnnouncementRead, Draft, DataExport, KnownPlace, SecondFactor, RecoveryCode, LoginChallenge,
    SharedSource,
)  # fmt: skip
"""Rows that are about an account alone."""
_NAMING = (
    NotificationKind.group_changed, NotificationKind.group_result, NotificationKind.regrade_request_opened,
)  # fmt: skip
"""Kinds of messages that name somebody else than who reads them."""
_TOLD = frozenset(
    {"email", "name", "from", "address", "filename", "handle", "section", "student_id", "student id", "told", "note"}
)
"""Keys of an audit entry's detail that may tell who somebody is, or what they were told of themselves."""


@dataclass(frozen=True)
class Purged:
    """What a retention rule did to a course: how many accounts are gone, and who stays because of another course."""

    course: str
    erased: int
    kept: int


def erase_account(session: Session, user: User, *, now: datetime, actor: User | None = None, reason: str = "") -> None:
    """Forget a person everywhere; their account is closed, for good.

    Raises:
        ConflictError: they are an admin, or a course would be left without an instructor.
    """
    if user.is_admin:
        raise ConflictError("An admin's account cannot be erased: remove the admin role first.")
    _check_courses(session, user)
    _erase(session, user, now)
    audit.record(session, action="user.erased", subject=f"user:{user.id}", actor=actor, reason=reason)


def check_typed(user: User, typed: str) -> None:
    """See that who erases an account means this one.

    Raises:
        InvalidInputError: something else than its e-mail address was typed.
    """
    if typed.strip().lower() != user.email:
        raise InvalidInputError(f"Type the account's e-mail address, {user.email}, to erase it.", field="typed")


def due(session: Session, now: datetime) -> list[Course]:
    """The archived courses whose retention is over."""
    query = select(Course).where(
        Course.archived_at.is_not(None), Course.retained_days.is_not(None), Course.purged_at.is_(None)
    )
    return [course for course in session.scalars(query.order_by(Course.id)) if _ends(course) <= now]


def purge(session: Session, course: Course, *, now: datetime, actor: User | None = None) -> Purged:
    """Forget the students of an archived course; its staff, and admins, stay.

    A student who is in a course that is not purged keeps their account, and is forgotten with that one.

    Raises:
        ConflictError: the course is not archived, or it was done.
    """
    query = select(Course).where(Course.id == course.id).with_for_update().execution_options(populate_existing=True)
    course = session.scalars(query).one()
    if course.archived_at is None or course.purged_at is not None:
        raise ConflictError("Only an archived course can have its people erased, and only once.")
    course.purged_at = now
    course.revision += 1
    people = _students(session, course.id)
    elsewhere = _in_other_courses(session, course.id)
    gone = [user for user in people if user.id not in elsewhere and not user.is_admin]
    for user in gone:
        _erase(session, user, now)
    session.execute(delete(RosterImport).where(RosterImport.course_id == course.id))
    done = Purged(course.slug, len(gone), len(people) - len(gone))
    detail = {"erased": done.erased, "kept": done.kept}
    audit.record(session, action="course.purged", subject=f"course:{course.slug}", actor=actor, detail=detail)
    return done


def _ends(course: Course) -> datetime:
    assert course.archived_at is not None  # noqa: S101  # the query asked for it
    return course.archived_at + timedelta(days=course.retained_days or 0)


def _students(session: Session, course_id: int) -> list[User]:
    query = select(User).join(Enrolment, Enrolment.user_id == User.id)
    return list(session.scalars(query.where(Enrolment.course_id == course_id, Enrolment.role == Role.student)))


def _in_other_courses(session: Session, course_id: int) -> set[int]:
    query = (
        select(Enrolment.user_id)
        .join(Course, Course.id == Enrolment.course_id)
        .where(Enrolment.course_id != course_id, Course.purged_at.is_(None))
    )
    return set(session.scalars(query))


def _check_courses(session: Session, user: User) -> None:
    query = select(Enrolment).where(Enrolment.role == Role.instructor, Enrolment.dropped_at.is_(None))
    instructors: dict[int, set[int]] = {}
    for row in session.scalars(query):
        instructors.setdefault(row.course_id, set()).add(row.user_id)
    if any(people == {user.id} for people in instructors.values()):
        raise ConflictError("They are the only instructor of a course: add another one first.")


def _erase(session: Session, user: User, now: datetime) -> None:
    email = user.email
    for table in THEIRS:
        session.execute(delete(table).where(table.__table__.c.user_id == user.id))
    session.execute(delete(Preview).where(Preview.student_id == user.id))
    session.execute(delete(LoginAttempt).where(LoginAttempt.email == email))
    session.execute(delete(LinkRequest).where(LinkRequest.email == email))
    _forget_imports(session, user)
    _forget_messages(session, user)
    _erase_work(session, user)
    _erase_reasons(session, user)
    _erase_words(session, user)
    about = update(Enrolment).where(Enrolment.user_id == user.id)
    session.execute(about.values(section="", student_number="", show_name=False))
    user.handle = handles.new_handle(session)
    user.email, user.name = f"{user.id}@{DOMAIN}", user.handle
    user.password_hash, user.disabled_at = None, user.disabled_at or now
    session.flush()


def _forget_imports(session: Session, user: User) -> None:
    """Tables that nobody agreed to yet may name them."""
    courses = select(Enrolment.course_id).where(Enrolment.user_id == user.id)
    session.execute(delete(RosterImport).where(RosterImport.course_id.in_(courses), RosterImport.applied_at.is_(None)))
    for row in session.scalars(select(RosterImport).where(RosterImport.course_id.in_(courses))):
        row.troubles = [one for one in row.troubles if user.email not in str(one).lower()]


def _forget_messages(session: Session, user: User) -> None:
    """What others were told of them by name; beside it stands the page of what is under their new pseudonym."""
    others = Notification.title.contains(user.name, autoescape=True)
    session.execute(delete(Notification).where(Notification.kind.in_(_NAMING), others))
    written = Mail.subject.contains(user.name, autoescape=True)
    session.execute(delete(Mail).where(Mail.kind.in_(_NAMING), written))
    # What a mail server said when it refused a mail names its address.
    for alert in session.scalars(select(Alert).where(Alert.message.icontains(user.email, autoescape=True))):
        alert.message = re.sub(re.escape(user.email), ERASED, alert.message, flags=re.IGNORECASE)


def _erase_work(session: Session, user: User) -> None:
    """Sources, write-ups and files that attempts left, in courses that do not keep the work of those who leave.

    A file's name is theirs in any case.
    """
    session.execute(update(Submission).where(Submission.user_id == user.id).values(filename=ERASED, request_key=None))
    session.execute(update(WriteUp).where(WriteUp.user_id == user.id).values(filename=ERASED))
    courses = select(Course.id).where(Course.keeps_erased_work.is_(False))
    theirs = (Submission.user_id == user.id, Submission.course_id.in_(courses))
    attempts = select(Attempt.id).join(Submission, Submission.id == Attempt.submission_id).where(*theirs)
    session.execute(delete(Artefact).where(Artefact.attempt_id.in_(attempts)))
    session.execute(update(Submission).where(*theirs).values(source=b"", source_hash=ERASED_HASH))
    written = update(WriteUp).where(WriteUp.user_id == user.id, WriteUp.course_id.in_(courses))
    session.execute(written.values(data=b"", size=0, sha256=ERASED))


def _erase_reasons(session: Session, user: User) -> None:
    for table in (Extension, LateDayGrant, GradeOverride):
        session.execute(update(table).where(table.user_id == user.id).values(reason=ERASED))
    about = or_(AuditEntry.subject == f"user:{user.id}", AuditEntry.about_id == user.id)
    for entry in session.scalars(select(AuditEntry).where(about)):
        entry.detail = _untold(entry.detail)
        entry.reason = ERASED if entry.reason else ""
    _erase_suspicions(session, user)


def _erase_words(session: Session, user: User) -> None:
    """What they wrote to staff about a grade, and what staff wrote of that."""
    work = select(Submission.id).where(Submission.user_id == user.id)
    appeals = update(Appeal).where(Appeal.submission_id.in_(work))
    session.execute(appeals.values(text=ERASED))
    session.execute(appeals.where(Appeal.reason != "").values(reason=ERASED))
    looks = update(FindingLook).where(FindingLook.submission_id.in_(work), FindingLook.reason != "")
    session.execute(looks.values(reason=ERASED))
    asked = select(RegradeRequest.id).where(RegradeRequest.user_id == user.id)
    session.execute(update(RegradeMessage).where(RegradeMessage.request_id.in_(asked)).values(text=ERASED))
    _erase_answers(session, user)


def _erase_answers(session: Session, user: User) -> None:
    """The reasons of proposals that accepting their requests made: they are the answers; and the trail has them too."""
    accepted = (AuditEntry.action == "regrade_request.accepted", AuditEntry.about_id == user.id)
    details = session.scalars(select(AuditEntry.detail).where(*accepted)).all()
    made = {detail["regrade"] for detail in details if detail.get("regrade") is not None}
    session.execute(update(Regrade).where(Regrade.id.in_(made)).values(reason=ERASED))
    told = select(AuditEntry).where(AuditEntry.action.startswith("regrade."), AuditEntry.reason != "")
    for entry in session.scalars(told) if made else ():
        if entry.detail.get("regrade") in made:
            entry.reason = ERASED


def _erase_suspicions(session: Session, user: User) -> None:
    """What staff wrote where this person's code was like another's."""
    theirs = set(session.scalars(select(Submission.id).where(Submission.user_id == user.id)))
    sides = or_(SimilarPair.left_id.in_(theirs), SimilarPair.right_id.in_(theirs))
    session.execute(update(SimilarPair).where(sides, SimilarPair.reason != "").values(reason=ERASED))
    marked = select(AuditEntry).where(AuditEntry.action == "similarity.marked", AuditEntry.reason != "")
    for entry in session.scalars(marked):
        if theirs & {entry.detail.get("left"), entry.detail.get("right")}:
            entry.reason = ERASED


def _untold(detail: dict[str, Any]) -> dict[str, Any]:
    return {
        key: ERASED if key in _TOLD else _untold(value) if isinstance(value, dict) else value
        for key, value in detail.items()
    }
