"""Links with which people put themselves into a course: shown once, stored as their hash, with an end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import quote

from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, joinedload

from server import audit, dirty_grades, ids
from server.accounts import accounts, links
from server.accounts.places import network_of
from server.courses.courses import Membership, refuse_archived, refuse_staffs_name
from server.errors import ConflictError, ForbiddenError, InvalidInputError, NotFoundError, TooManyError
from server.messages import messages
from server.models import CourseInvite, Enrolment, LinkRequest, Mail, Role, User
from server.roster import people

PAGE = "/join"
MOST_DAYS, MOST_USES = 365, 5000
_START_CHARS = 8
_HOUR = timedelta(hours=1)
_PER_ADDRESS = 60
"""New accounts from one network address in an hour: a campus may have one for everybody."""
_PER_MAILBOX = 3
"""Mails in an hour to whoever has an account already, however many links and network addresses ask for them."""
_JOIN = "Join"
"""A mail's subject begins so, with which somebody who has an account is led into a course."""
_GONE = (
    "This invitation is no longer valid: it was used up, withdrawn, or has expired. Ask the staff of your course for a "
    "new one."
)


@dataclass(frozen=True)
class Made:
    """A new link, and its path on our host, which stands nowhere else."""

    row: CourseInvite
    path: str


def create(
    session: Session, member: Membership, *, role: Role, section: str, days: int, most_uses: int | None, now: datetime
) -> Made:
    """Make a link into the course.

    Args:
        days: after which it ends.
        most_uses: how many people it lets in; `None`: any number until then.

    Raises:
        ForbiddenError: the member is no staff, or a TA invites staff.
        InvalidInputError: section, days or uses cannot be taken.
    """
    member.require_staff()
    if role is not Role.student and not member.is_instructor:
        raise ForbiddenError(people.STAFF_ONLY_BY_INSTRUCTORS)
    if not 1 <= days <= MOST_DAYS:
        raise InvalidInputError(f"An invitation lasts 1 to {MOST_DAYS} days.", field="days")
    if most_uses is not None and not 1 <= most_uses <= MOST_USES:
        raise InvalidInputError(
            f"An invitation is for 1 to {MOST_USES:,} people; empty means no limit.", field="most_uses"
        )
    token = ids.session_token()
    row = CourseInvite(
        course_id=member.course.id,
        token_hash=ids.token_hash(token),
        start=token[:_START_CHARS],
        role=role,
        section=people.checked_section(section),
        most_uses=most_uses,
        created_by_id=member.user.id,
        created_at=now,
        expires_at=now + timedelta(days=days),
    )
    session.add(row)
    session.flush()
    _record(session, member, row, "invite.created", {"days": days, "most_uses": most_uses})
    return Made(row, f"{PAGE}?token={quote(token)}")


def revoke(session: Session, member: Membership, invite_id: int, *, now: datetime) -> None:
    """Take a link back; who came by it stays.

    Raises:
        ForbiddenError: the member is no staff.
        NotFoundError: it is not of this course, or was taken back.
    """
    member.require_staff()
    query = select(CourseInvite).where(CourseInvite.id == invite_id, CourseInvite.course_id == member.course.id)
    row = session.scalar(query.with_for_update())
    if row is None or row.revoked_at is not None:
        raise NotFoundError("There is no such invitation.")
    row.revoked_at = now
    _record(session, member, row, "invite.revoked", {})


def of_course(session: Session, member: Membership, *, now: datetime) -> Sequence[CourseInvite]:
    """The links that still let somebody in, newest first.

    Raises:
        ForbiddenError: the member is no staff.
    """
    member.require_staff()
    query = select(CourseInvite).where(
        CourseInvite.course_id == member.course.id, CourseInvite.revoked_at.is_(None), CourseInvite.expires_at > now
    )
    rows = session.scalars(query.order_by(CourseInvite.id.desc()))
    return [row for row in rows if row.most_uses is None or row.uses < row.most_uses]


def opened(session: Session, token: str, *, now: datetime, locked: bool = False) -> CourseInvite:
    """A link that still lets somebody in, with its `course`.

    Raises:
        NotFoundError: it does not, or never was.
        ConflictError: the course is archived, and this is a transaction that may write.
    """
    query = (
        select(CourseInvite)
        .where(CourseInvite.token_hash == ids.token_hash(token))
        .options(joinedload(CourseInvite.course, innerjoin=True))
    )
    row = session.scalar(query.with_for_update(of=CourseInvite) if locked else query)
    if row is None or row.revoked_at is not None or row.expires_at <= now:
        raise NotFoundError(_GONE)
    if row.most_uses is not None and row.uses >= row.most_uses:
        raise NotFoundError(_GONE)
    refuse_archived(session, row.course)
    return row


def accept(session: Session, user: User, token: str, *, now: datetime) -> CourseInvite:
    """Let somebody who is logged in into the course; who is in it already stays what they are, and uses nothing up.

    Raises:
        NotFoundError, ConflictError: as `opened`.
        ForbiddenError: they were in the course and were taken out of it.
    """
    row = opened(session, token, now=now, locked=True)
    query = select(Enrolment).where(Enrolment.course_id == row.course_id, Enrolment.user_id == user.id)
    enrolment = session.scalar(query)
    if enrolment is not None and enrolment.dropped_at is not None:
        raise ForbiddenError("You left this course earlier. Its staff can add you again, with your work.")
    if enrolment is None:
        _enrol(session, row, user, now)
    return row


def sign_up(session: Session, token: str, *, email: str, name: str, address: str, now: datetime) -> CourseInvite:
    """Make an account for a stranger and put it into the course; a mail lets whoever reads it choose the password.

    What is answered does not say whether there was an account: its owner gets a mail that says to log in, or none once
    they had enough of those.

    Raises:
        NotFoundError, ConflictError: as `opened`.
        InvalidInputError: the address or the name cannot be taken.
        TooManyError: too many from this network address.
    """
    row = opened(session, token, now=now, locked=True)
    email, name = accounts.checked_email(email), accounts.checked_name(name)
    if row.role is Role.student:
        refuse_staffs_name(session, row.course, name)
    _refuse_too_many(session, address, now)
    # Without the e-mail address: what somebody else types here must not count as its owner's wish for a new password.
    session.add(LinkRequest(address=network_of(address), email="", at=now))
    user = session.scalar(select(User).where(User.email == email))
    if user is None:
        user = accounts.create_user(session, email=email, name=name, password=None)
        _enrol(session, row, user, now)
        links.invite(session, user, to=row.course.title)
    elif user.disabled_at is None and not _has_enough_mail(session, user, now):
        messages.send_mail(
            session,
            user,
            subject=f"{_JOIN} {row.course.title}",
            body="You have an account already. Log in and open this link to join the course. If you did not ask for "
            "this, ignore this mail.",
            url=f"{PAGE}?token={quote(token)}",
        )
    return row


def _enrol(session: Session, row: CourseInvite, user: User, now: datetime) -> None:
    try:
        with session.begin_nested():
            session.add(
                Enrolment(course_id=row.course_id, user_id=user.id, role=row.role, section=row.section, created_at=now)
            )
    except IntegrityError:
        raise ConflictError("You are in this course already. Reload the page.") from None
    row.uses += 1
    dirty_grades.grades(session, row.course_id, user.id)
    audit.record(
        session,
        action="enrolment.joined",
        subject=f"user:{user.id}",
        actor=user,
        detail={"course": row.course.slug, "invite": row.id, "role": row.role.value, "section": row.section},
    )


def _refuse_too_many(session: Session, address: str, now: datetime) -> None:
    query = select(func.count()).where(LinkRequest.address == network_of(address), LinkRequest.at > now - _HOUR)
    if session.scalars(query).one() >= _PER_ADDRESS:
        raise TooManyError(
            "Too many accounts were requested from your network. Try again in an hour.", retry_after_s=3600
        )


def _has_enough_mail(session: Session, user: User, now: datetime) -> bool:
    query = select(func.count()).where(
        Mail.user_id == user.id,
        Mail.kind.is_(None),
        Mail.subject.startswith(f"{_JOIN} "),
        Mail.created_at > now - _HOUR,
    )
    return session.scalars(query).one() >= _PER_MAILBOX


def _record(session: Session, member: Membership, row: CourseInvite, action: str, detail: dict[str, object]) -> None:
    said = {"invite": row.id, "role": row.role.value, "section": row.section, **detail}
    audit.record(session, action=action, subject=f"course:{member.course.slug}", actor=member.user, detail=said)
