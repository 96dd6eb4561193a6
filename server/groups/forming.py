"""Form a group, join and leave it.

Students settle who is in a group before anything is handed in: then a kernel that is there counts for everybody, and
only staff change who that is (`server.groups.staffing`). Whoever changes a group holds the rows of all its people, as
submitting does of one.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Exists, delete, exists, func, select
from sqlalchemy.orm import Session

from server.courses.courses import AssignmentDetail, Membership
from server.errors import ConflictError, InvalidInputError, NotFoundError
from server.groups import rows, views
from server.groups.groups import group_of
from server.models import Group, GroupInvite, User


def start(session: Session, member: Membership, detail: AssignmentDetail, *, now: datetime) -> views.GroupView:
    """Begin a group with oneself in it; others come by its code or are invited.

    Raises:
        ConflictError: one is in a group already, or has handed something in.
        InvalidInputError: this assignment is done alone.
    """
    _check_student(member, detail)
    rows.lock(session, [member.user.id])
    if group_of(session, detail.row.id, member.user.id):
        raise ConflictError("You already have a group for this assignment.")
    rows.check_nothing_handed_in(session, detail, [member.user.id])
    group = rows.new_group(session, member, detail, now)
    rows.add(session, group, member.user.id, now)
    return views.one(session, detail, group.id)


def invite(
    session: Session, member: Membership, detail: AssignmentDetail, *, who: str, now: datetime
) -> views.GroupView:
    """Offer a place in one's group, which is made where there is none; they are told.

    Args:
        who: the e-mail address of a student of the course.

    Raises:
        InvalidInputError: there is no such student, or the assignment is done alone.
        ConflictError: the group is full or settled, or they are in another one.
    """
    guest = rows.student(session, member, who)
    own = views.view(session, detail, member.user)
    if own is None:
        rows.lock(session, {member.user.id, guest.id})
        own = start(session, member, detail, now=now)
    rows.lock_group(session, own.id, [guest.id])
    own = views.one(session, detail, own.id)
    if guest.id in {user.id for user in (*own.members, *own.invited)}:
        return own
    if own.room == 0:
        raise ConflictError(f"The group is full: it has {own.size} places, including invitations.")
    _check_free(session, detail, guest, "They")
    rows.check_nothing_handed_in(session, detail, [*(user.id for user in own.members), guest.id])
    session.add(GroupInvite(group_id=own.id, user_id=guest.id, invited_by_id=member.user.id, created_at=now))
    session.flush()
    rows.tell(session, member, detail, [guest.id], f"{member.user.name} invites you to their group for {detail.title}")
    return views.one(session, detail, own.id)


def take_back(session: Session, member: Membership, detail: AssignmentDetail, *, user_id: int) -> None:
    """Offer a place in one's own group no longer."""
    group = group_of(session, detail.row.id, member.user.id)
    if group is not None:
        gone = delete(GroupInvite).where(GroupInvite.group_id == group.id, GroupInvite.user_id == user_id)
        session.execute(gone)


def accept(session: Session, member: Membership, detail: AssignmentDetail, *, group_id: int, now: datetime) -> None:
    """Take the place that one is offered.

    Raises:
        NotFoundError: it is offered no longer.
        ConflictError: one is in a group, or somebody has handed something in meanwhile.
    """
    rows.lock_group(session, group_id, [member.user.id])
    if not session.scalar(select(_offered(detail, group_id, member.user))):
        raise NotFoundError("This invitation is no longer open.")
    _enter(session, member, detail, group_id, now)


def decline(session: Session, member: Membership, *, group_id: int) -> None:
    """Leave the place to somebody else."""
    session.execute(delete(GroupInvite).where(GroupInvite.group_id == group_id, GroupInvite.user_id == member.user.id))


def join(session: Session, member: Membership, detail: AssignmentDetail, *, code: str, now: datetime) -> None:
    """Enter the group that has this code.

    Raises:
        InvalidInputError: no group of this assignment has it.
        ConflictError: the group is full or settled, or one is in one.
    """
    _check_student(member, detail)
    named = "".join(code.split()).upper().replace("-", "")
    query = select(Group.id).where(Group.assignment_id == detail.row.id, Group.code == named)
    group_id = session.scalar(query) if named.isascii() and named.isprintable() else None
    if group_id is None:
        raise InvalidInputError("No group of this assignment has this code.", field="code")
    rows.lock_group(session, group_id, [member.user.id])
    _enter(session, member, detail, group_id, now)


def leave(session: Session, member: Membership, detail: AssignmentDetail) -> None:
    """Be on one's own again; a group that nobody is left in is gone.

    Raises:
        ConflictError: something was handed in, so that it counts for everybody in it.
    """
    group = group_of(session, detail.row.id, member.user.id)
    if group is None:
        return
    rows.lock_group(session, group.id, [])
    rows.check_nothing_handed_in(session, detail, rows.member_ids(session, group.id))
    rows.remove(session, group.id, [member.user.id])
    others = rows.member_ids(session, group.id)
    rows.tell(session, member, detail, others, f"{member.user.name} left your group for {detail.title}")


def _enter(session: Session, member: Membership, detail: AssignmentDetail, group_id: int, now: datetime) -> None:
    """Become a member of a group whose rows are held."""
    _check_student(member, detail)
    group = rows.group_with(session, detail, group_id)
    members = rows.member_ids(session, group_id)
    if member.user.id in members:
        return
    _check_free(session, detail, member.user, "You")
    invited = exists().where(GroupInvite.group_id == group_id, GroupInvite.user_id == member.user.id)
    others = select(func.count()).where(GroupInvite.group_id == group_id, GroupInvite.user_id != member.user.id)
    taken = len(members) + (0 if session.scalar(select(invited)) else session.scalar(others) or 0)
    if taken >= detail.row.group_size:
        raise ConflictError(f"The group is full: it has {detail.row.group_size} places, including invitations.")
    rows.check_nothing_handed_in(session, detail, [*members, member.user.id])
    rows.add(session, group, member.user.id, now)
    rows.tell(session, member, detail, members, f"{member.user.name} joined your group for {detail.title}")


def _check_student(member: Membership, detail: AssignmentDetail) -> None:
    if detail.row.group_size < 2:  # noqa: PLR2004  # one is no group
        raise InvalidInputError("This assignment is individual.")
    if member.is_staff:
        raise InvalidInputError("Staff cannot be in a group.")


def _check_free(session: Session, detail: AssignmentDetail, user: User, called: str) -> None:
    if group_of(session, detail.row.id, user.id):
        raise ConflictError(f"{called} already have a group for this assignment.")


def _offered(detail: AssignmentDetail, group_id: int, user: User) -> Exists:
    return (
        exists()
        .where(GroupInvite.group_id == group_id, GroupInvite.user_id == user.id)
        .where(Group.id == GroupInvite.group_id, Group.assignment_id == detail.row.id)
    )
