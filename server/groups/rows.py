"""The rows of a group: who holds them, who comes in, who goes."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from datetime import datetime

from sqlalchemy import delete, exists, false, or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from server import ids
from server.courses.courses import AssignmentDetail, Membership
from server.errors import ConflictError, InvalidInputError, NotFoundError
from server.messages.messages import notify
from server.models import Enrolment, Group, GroupInvite, GroupMember, Mode, NotificationKind, Role, Submission, User

_CODE_ALPHABET = "23456789ABCDEFGHJKMNPQRSTVWXYZ"
_CODE_CHARS = 8


def check_nothing_handed_in(session: Session, detail: AssignmentDetail, user_ids: Sequence[int]) -> None:
    """Refuse a student's change once one of these people has submitted something."""
    if _settled(session, detail, user_ids):
        raise ConflictError("The group has submitted something already. Only staff can change it now.")


def _settled(session: Session, detail: AssignmentDetail, user_ids: Sequence[int]) -> bool:
    handed_in = exists().where(
        Submission.assignment_id == detail.row.id,
        Submission.user_id.in_(user_ids),
        Submission.mode == Mode.submission,
    )
    return bool(session.scalar(select(handed_in)))


def student(session: Session, member: Membership, who: str) -> User:
    """A student of the course by their e-mail address; for staff also by their handle.

    Raises:
        InvalidInputError: there is none.
    """
    named = who.strip()[:254]
    # A handle stands on the boards instead of a name: whoever could ask by it would learn whose it is.
    handle = User.handle == named if member.is_staff else false()
    query = (
        select(User)
        .join(Enrolment, Enrolment.user_id == User.id)
        .where(
            Enrolment.course_id == member.course.id,
            Enrolment.role == Role.student,
            Enrolment.dropped_at.is_(None),
            User.disabled_at.is_(None),
            or_(User.email == named.lower(), handle),
        )
    )
    found = session.scalars(query).first() if named.isprintable() else None
    if found is None:
        said = "goes by" if member.is_staff else "has the e-mail address"
        raise InvalidInputError(f"No student of this course {said} {named!r}.", field="who")
    return found


def new_group(session: Session, member: Membership, detail: AssignmentDetail, now: datetime) -> Group:
    """A group without members, with a code of its own."""
    code = "".join(secrets.choice(_CODE_ALPHABET) for _ in range(_CODE_CHARS))
    group = Group(course_id=member.course.id, assignment_id=detail.row.id, code=code, created_at=now)
    session.add(group)
    session.flush()
    return group


def group_with(session: Session, detail: AssignmentDetail, group_id: int) -> Group:
    """The group of this assignment with this id; `NotFoundError` where there is none."""
    group = session.get(Group, group_id)
    if group is None or group.assignment_id != detail.row.id:
        raise NotFoundError("There is no such group.")
    return group


def lock(session: Session, user_ids: Iterable[int]) -> None:
    """Hold these people's rows, in one order for everybody, so that nobody hands in or joins meanwhile."""
    query = select(User.id).where(User.id.in_(sorted(user_ids))).order_by(User.id).with_for_update(key_share=True)
    session.scalars(query).all()


def lock_group(session: Session, group_id: int, others: Sequence[int]) -> None:
    """Hold a group's row, then its people's and these others'."""
    session.scalars(select(Group.id).where(Group.id == group_id).with_for_update()).all()
    lock(session, {*member_ids(session, group_id), *others})


def add(session: Session, group: Group, user_id: int, now: datetime) -> None:
    """Put somebody in; what they were offered elsewhere for this assignment is offered no longer."""
    row = GroupMember(group_id=group.id, assignment_id=group.assignment_id, user_id=user_id, joined_at=now)
    try:
        with session.begin_nested():
            session.add(row)
    except IntegrityError:
        raise ConflictError("Somebody is in another group for this assignment already.") from None
    here = select(Group.id).where(Group.assignment_id == group.assignment_id)
    session.execute(delete(GroupInvite).where(GroupInvite.user_id == user_id, GroupInvite.group_id.in_(here)))


def remove(session: Session, group_id: int, user_ids: Sequence[int]) -> None:
    """Take people out; a group that nobody is left in is gone, with the places that it offered."""
    session.execute(delete(GroupMember).where(GroupMember.group_id == group_id, GroupMember.user_id.in_(user_ids)))
    if not member_ids(session, group_id):
        session.execute(delete(GroupInvite).where(GroupInvite.group_id == group_id))
        session.execute(delete(Group).where(Group.id == group_id))


def member_ids(session: Session, group_id: int) -> list[int]:
    """In the order in which they joined."""
    query = select(GroupMember.user_id).where(GroupMember.group_id == group_id).order_by(GroupMember.id)
    return list(session.scalars(query))


def tell(session: Session, member: Membership, detail: AssignmentDetail, user_ids: Sequence[int], title: str) -> None:
    """Tell these people of a change of their group."""
    notify(
        session,
        user_ids,
        NotificationKind.group_changed,
        course_id=member.course.id,
        title=title,
        url=f"/courses/{member.course.slug}/assignments/{detail.slug}/group",
        key=f"group:{detail.row.id}:{ids.public_id()}",
    )
