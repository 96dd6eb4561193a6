"""A group as its members and the staff see it, and the places that somebody is offered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session, joinedload

from server.courses.courses import AssignmentDetail
from server.groups.groups import group_of
from server.models import Group, GroupInvite, GroupMember, Mode, Submission, User


@dataclass(frozen=True)
class Invited:
    """A place that somebody is offered, and by whom."""

    group_id: int
    by: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class GroupView:
    """A group as its members and staff see it.

    Attributes:
        settled: something was handed in, so that only staff can change it.
    """

    id: int
    code: str
    members: tuple[User, ...]
    invited: tuple[User, ...]
    size: int
    settled: bool

    @property
    def room(self) -> int:
        """Places that nobody has or is offered."""
        return max(0, self.size - len(self.members) - len(self.invited))

    @property
    def was(self) -> str:
        """Names this state, so that a change of another one is refused."""
        return ",".join(str(user.id) for user in self.members)


def view(session: Session, detail: AssignmentDetail, user: User) -> GroupView | None:
    """This person's group; `None` where they are on their own."""
    group = group_of(session, detail.row.id, user.id)
    found = _views(session, detail, [group.id]) if group else []
    return found[0] if found else None


def invitations(session: Session, detail: AssignmentDetail, user: User) -> list[Invited]:
    """The places that this person is offered here, oldest first."""
    rows = session.execute(
        select(GroupInvite.group_id, User.name)
        .join(Group, Group.id == GroupInvite.group_id)
        .join(User, User.id == GroupInvite.invited_by_id)
        .where(Group.assignment_id == detail.row.id, GroupInvite.user_id == user.id)
        .order_by(GroupInvite.id)
    ).all()
    members = _members(session, [group_id for group_id, _ in rows])
    return [
        Invited(group_id, by, tuple(one.user.name for one in members if one.group_id == group_id))
        for group_id, by in rows
    ]


def all_groups(session: Session, detail: AssignmentDetail, *, after: int = 0, most: int = 100) -> list[GroupView]:
    """The groups of an assignment, for its staff, oldest first; `most` of them after the first `after`."""
    query = select(Group.id).where(Group.assignment_id == detail.row.id).order_by(Group.id).offset(after).limit(most)
    return _views(session, detail, session.scalars(query).all())


def one(session: Session, detail: AssignmentDetail, group_id: int) -> GroupView:
    """The group with this id."""
    return _views(session, detail, [group_id])[0]


def _views(session: Session, detail: AssignmentDetail, group_ids: Sequence[int]) -> list[GroupView]:
    groups = session.scalars(select(Group).where(Group.id.in_(group_ids)).order_by(Group.id)).all()
    members = _members(session, group_ids)
    invited = session.scalars(
        select(GroupInvite)
        .where(GroupInvite.group_id.in_(group_ids))
        .options(joinedload(GroupInvite.user))
        .order_by(GroupInvite.id)
    ).all()
    handed_in = _handed_in(session, detail, [one.user_id for one in members])
    return [
        GroupView(
            id=group.id,
            code=group.code,
            members=(mine := tuple(one.user for one in members if one.group_id == group.id)),
            invited=tuple(one.user for one in invited if one.group_id == group.id),
            size=detail.row.group_size,
            settled=any(user.id in handed_in for user in mine),
        )
        for group in groups
    ]


def _members(session: Session, group_ids: Sequence[int]) -> Sequence[GroupMember]:
    query = select(GroupMember).where(GroupMember.group_id.in_(group_ids)).order_by(GroupMember.id)
    return session.scalars(query.options(joinedload(GroupMember.user))).all()


def _handed_in(session: Session, detail: AssignmentDetail, user_ids: Sequence[int]) -> set[int]:
    """Those of them who have submitted something."""
    query = select(Submission.user_id).where(
        Submission.assignment_id == detail.row.id,
        Submission.mode == Mode.submission,
        Submission.user_id.in_(user_ids),
    )
    return set(session.scalars(query.distinct()))
