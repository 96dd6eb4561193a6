"""An assignment's rubric: what its items are worth, and what they come to for a student.

Items add points or take them away. What applies to a student is their sheet; its total is a part of their grade, which
is worked out anew in the transaction that changes it. A group is graded as one: every member gets the same sheet.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, joinedload, selectinload

from server import audit
from server.courses.courses import Membership
from server.errors import ConflictError, InvalidInputError, NotFoundError
from server.gradebook import queries as gradebook
from server.groups import groups
from server.models import Assignment, Enrolment, Role, RubricItem, RubricMark, RubricSheet

MAX_ITEMS = 100
MAX_POINTS = 1000.0
TEXT_CHARS, GROUP_CHARS = 500, 80


def items_of(session: Session, assignment_id: int, *, retired: bool = False) -> Sequence[RubricItem]:
    """The items in their order; with those that are applied no more where they are asked for."""
    query = select(RubricItem).where(RubricItem.assignment_id == assignment_id)
    if not retired:
        query = query.where(RubricItem.retired_at.is_(None))
    return session.scalars(query.order_by(RubricItem.position, RubricItem.id)).all()


def add_item(
    session: Session, member: Membership, assignment: Assignment, *, group: str, text: str, points: float
) -> RubricItem:
    """Put an item at the end of the rubric.

    Raises:
        InvalidInputError: text, group or points cannot be taken.
        ConflictError: there are too many.
    """
    member.require_staff()
    count, last = session.execute(
        select(func.count(), func.max(RubricItem.position)).where(RubricItem.assignment_id == assignment.id)
    ).one()
    if count >= MAX_ITEMS:
        raise ConflictError(f"A rubric has at most {MAX_ITEMS} items.")
    item = RubricItem(
        assignment_id=assignment.id,
        group=_line(group, GROUP_CHARS, "group", empty=True),
        text=_line(text, TEXT_CHARS, "text"),
        points=_points(points),
        position=(last or 0) + 1,
        revision=1,
    )
    session.add(item)
    session.flush()
    _note(session, member, assignment, "rubric.item_added", {"item": item.id, "text": item.text, "points": item.points})
    return item


def change_item(
    session: Session,
    member: Membership,
    item_id: int,
    *,
    revision: int,
    group: str,
    text: str,
    points: float,
    position: int,
) -> RubricItem:
    """Say it otherwise or let it be worth something else; the grades that it is in follow.

    Raises:
        NotFoundError: there is none in this course.
        InvalidInputError: text, group or points cannot be taken.
        ConflictError: somebody changed it since `revision`.
    """
    item, assignment = _locked_item(session, member, item_id, revision)
    before = item.points
    item.group = _line(group, GROUP_CHARS, "group", empty=True)
    item.text, item.points = _line(text, TEXT_CHARS, "text"), _points(points)
    item.position = max(1, min(position, MAX_ITEMS * 10))
    item.revision += 1
    session.flush()
    detail = {"item": item.id, "text": item.text, "before": before, "after": item.points}
    _note(session, member, assignment, "rubric.item_changed", detail)
    if item.points != before:
        _add_up(session, assignment, item)
    return item


def retire_item(
    session: Session, member: Membership, item_id: int, *, revision: int, retired: bool, now: datetime
) -> RubricItem:
    """Offer it no more, or again. Sheets that have it keep it: their points change only where somebody changes them.

    Raises:
        NotFoundError, ConflictError: as `change_item`.
    """
    item, assignment = _locked_item(session, member, item_id, revision)
    item.retired_at = now if retired else None
    item.revision += 1
    _note(session, member, assignment, "rubric.item_retired" if retired else "rubric.item_offered", {"item": item.id})
    return item


def sheet_of(session: Session, assignment_id: int, user_id: int) -> RubricSheet | None:
    """What applies to this student, with who said so; `None` before anybody did."""
    query = (
        select(RubricSheet)
        .where(RubricSheet.assignment_id == assignment_id, RubricSheet.user_id == user_id)
        .options(selectinload(RubricSheet.marks), joinedload(RubricSheet.graded_by))
    )
    return session.scalar(query)


def apply(
    session: Session,
    member: Membership,
    assignment: Assignment,
    user_id: int,
    *,
    item_ids: Collection[int],
    revision: int,
    submission_id: int | None,
    now: datetime,
) -> RubricSheet:
    """Let these items apply to a student and their group, and no others.

    Args:
        revision: of the sheet that was seen; 0 where there was none.
        submission_id: what was looked at, if it was a submission.

    Raises:
        NotFoundError: there is no such student in the course.
        InvalidInputError: one of the items is not of this rubric.
        ConflictError: somebody graded them meanwhile.
    """
    member.require_staff()
    _require_student(session, assignment, user_id)
    items = _chosen(session, assignment, item_ids)
    # In one order everywhere, so that two who grade one group wait for each other and not in a circle.
    people = sorted({user_id, *groups.together(session, assignment.id, user_id)})
    held = {one: _locked_sheet(session, assignment, one) for one in people}
    own = held[user_id]
    if (own.revision if own else 0) != revision:
        raise ConflictError("Somebody else graded this student meanwhile. See what applies now, then change it.")
    sheets = {
        one: _write(
            session,
            member,
            held[one] or RubricSheet(assignment_id=assignment.id, user_id=one, revision=0, marks=[]),
            items,
            submission_id=submission_id if one == user_id else None,
            now=now,
        )
        for one in people
    }
    for one in people:
        gradebook.refresh(session, assignment.course_id, one)
    return sheets[user_id]


def _write(
    session: Session,
    member: Membership,
    sheet: RubricSheet,
    items: Sequence[RubricItem],
    *,
    submission_id: int | None,
    now: datetime,
) -> RubricSheet:
    before = sheet.points or 0.0
    sheet.points = math.fsum(item.points for item in items)
    sheet.submission_id = submission_id or sheet.submission_id
    sheet.graded_by_id, sheet.graded_at = member.user.id, now
    sheet.revision += 1
    kept = {mark.item_id: mark for mark in sheet.marks}
    sheet.marks = [kept.get(item.id) or RubricMark(item_id=item.id) for item in items]
    try:
        with session.begin_nested():
            session.add(sheet)
    except IntegrityError:
        raise ConflictError("Somebody else graded this student at the same moment. See what applies now.") from None
    audit.record(
        session,
        action="rubric.applied",
        subject=f"user:{sheet.user_id}",
        actor=member.user,
        detail={
            "assignment": sheet.assignment_id,
            "items": [item.id for item in items],
            "before": before,
            "after": sheet.points,
        },
    )
    return sheet


def _chosen(session: Session, assignment: Assignment, item_ids: Collection[int]) -> Sequence[RubricItem]:
    """What is applied: worth what it is worth until this is committed."""
    found = session.scalars(
        select(RubricItem)
        .where(RubricItem.assignment_id == assignment.id, RubricItem.id.in_(item_ids))
        .order_by(RubricItem.position, RubricItem.id)
        .with_for_update(read=True)
        .execution_options(populate_existing=True)
    ).all()
    if len(found) != len(set(item_ids)):
        raise InvalidInputError("One of these items is not in the rubric of this assignment.", field="item")
    return found


def _require_student(session: Session, assignment: Assignment, user_id: int) -> None:
    student = session.scalar(
        select(Enrolment.id).where(
            Enrolment.course_id == assignment.course_id, Enrolment.user_id == user_id, Enrolment.role == Role.student
        )
    )
    if student is None:
        raise NotFoundError("There is no such student in this course.")


def _locked_sheet(session: Session, assignment: Assignment, user_id: int) -> RubricSheet | None:
    query = (
        select(RubricSheet)
        .where(RubricSheet.assignment_id == assignment.id, RubricSheet.user_id == user_id)
        .options(selectinload(RubricSheet.marks))
        .with_for_update()
        .execution_options(populate_existing=True)
    )
    return session.scalar(query)


def _locked_item(session: Session, member: Membership, item_id: int, revision: int) -> tuple[RubricItem, Assignment]:
    member.require_staff()
    row = session.execute(
        select(RubricItem, Assignment)
        .join(Assignment, Assignment.id == RubricItem.assignment_id)
        .where(RubricItem.id == item_id, Assignment.course_id == member.course.id)
        .with_for_update(of=RubricItem)
        .execution_options(populate_existing=True)
    ).one_or_none()
    if row is None:
        raise NotFoundError("There is no such item.")
    item, assignment = row
    if item.revision != revision:
        raise ConflictError(
            "Somebody else changed this item meanwhile. See how it is now, then make your change again."
        )
    return item, assignment


def _add_up(session: Session, assignment: Assignment, item: RubricItem) -> None:
    """Work out the sheets that have this item again, and the grades of their students."""
    having = select(RubricMark.sheet_id).where(RubricMark.item_id == item.id)
    sheets = session.scalars(
        select(RubricSheet)
        .where(RubricSheet.id.in_(having))
        .order_by(RubricSheet.user_id)
        .with_for_update()
        .execution_options(populate_existing=True)
    ).all()
    # Not before they are locked: whoever held one may have given it other items.
    totals = _totals(session, [sheet.id for sheet in sheets])
    for sheet in sheets:
        sheet.points = totals.get(sheet.id, 0.0)
        sheet.revision += 1
    session.flush()
    for sheet in sheets:
        gradebook.refresh(session, assignment.course_id, sheet.user_id)


def _totals(session: Session, sheet_ids: Sequence[int]) -> Mapping[int, float]:
    """What each comes to, of those that have any item."""
    sums = session.execute(
        select(RubricMark.sheet_id, func.sum(RubricItem.points))
        .join(RubricItem, RubricItem.id == RubricMark.item_id)
        .where(RubricMark.sheet_id.in_(sheet_ids))
        .group_by(RubricMark.sheet_id)
    )
    return {sheet_id: float(total) for sheet_id, total in sums}


def _line(text: str, most: int, field: str, *, empty: bool = False) -> str:
    text = " ".join(text.replace("\0", "").split())
    if not (text or empty) or len(text) > most:
        raise InvalidInputError(
            f"It has {'' if empty else '1 to '}{most} characters{' at most' if empty else ''}.", field=field
        )
    return text


def _points(value: float) -> float:
    if not math.isfinite(value) or abs(value) > MAX_POINTS:
        raise InvalidInputError(f"Points are a number from -{MAX_POINTS:g} to {MAX_POINTS:g}.", field="points")
    return round(value, 4)


def _note(session: Session, member: Membership, assignment: Assignment, action: str, detail: dict[str, object]) -> None:
    audit.record(session, action=action, subject=f"assignment:{assignment.id}", actor=member.user, detail=detail)
