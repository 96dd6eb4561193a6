"""Say who does an assignment together. Where nobody formed a group, everybody is on their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from server.models import Group as GroupRow
from server.models import GroupMember


@dataclass(frozen=True)
class Group:
    """A group of one assignment; `member_ids` in the order in which they joined."""

    id: int
    assignment_id: int
    member_ids: tuple[int, ...]


def group_of(session: Session, assignment_id: int, user_id: int) -> Group | None:
    """The group in which this person does the assignment; `None` where they are on their own."""
    mine = select(GroupMember.group_id).where(
        GroupMember.assignment_id == assignment_id, GroupMember.user_id == user_id
    )
    rows = session.execute(
        select(GroupMember.group_id, GroupMember.user_id)
        .where(GroupMember.group_id == mine.scalar_subquery())
        .order_by(GroupMember.id)
    ).all()
    return Group(rows[0][0], assignment_id, tuple(user for _, user in rows)) if rows else None


def together(session: Session, assignment_id: int, user_id: int) -> tuple[int, ...]:
    """Everybody for whom a submission of this person counts there; themselves alone where they have no group."""
    group = group_of(session, assignment_id, user_id)
    return group.member_ids if group else (user_id,)


def groups_in(
    session: Session, course_id: int, user_ids: Sequence[int] | None = None
) -> Mapping[tuple[int, int], Group]:
    """Every group of a course by each member and assignment, `(user id, assignment id)`; of these people only."""
    query = (
        select(GroupMember.group_id, GroupMember.assignment_id, GroupMember.user_id)
        .join(GroupRow, GroupRow.id == GroupMember.group_id)
        .where(GroupRow.course_id == course_id)
        .order_by(GroupMember.id)
    )
    if user_ids is not None:
        theirs = select(GroupMember.group_id).where(GroupMember.user_id.in_(user_ids))
        query = query.where(GroupMember.group_id.in_(theirs))
    members: dict[tuple[int, int], list[int]] = {}
    for group_id, assignment_id, user_id in session.execute(query):
        members.setdefault((group_id, assignment_id), []).append(user_id)
    return {
        (user_id, assignment_id): Group(group_id, assignment_id, tuple(people))
        for (group_id, assignment_id), people in members.items()
        for user_id in people
    }
