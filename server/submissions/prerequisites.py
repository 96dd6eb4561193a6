"""What stands between a student and a rung: prerequisites that they have not passed.

A handout can always be read and practice runs always work; what is locked takes no submission, where the course says
so (`Course.locks_rungs`). Only what they can still do is asked for: a prerequisite stands in nobody's way while what
they submitted to it waits for its verdict, once it takes no more from them, and as long as they do not see it. Where
they have handed in before, a rung stays open.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from server.courses.courses import AssignmentDetail, Membership
from server.courses.deadlines import deadlines_in, own_dates
from server.groups import groups
from server.models import Assignment, Mode, State, Submission, Verdict

_GIVEN_UP = (State.cancelled, State.failed)


def missing(
    session: Session, member: Membership, details: Sequence[AssignmentDetail], now: datetime
) -> Mapping[int, tuple[Assignment, ...]]:
    """By assignment id what the member has to pass first; what is open to them, as all is to staff, has no entry."""
    asked = {slug for detail in details for slug in detail.spec.prerequisites}
    if member.is_staff or not asked:
        return {}
    rows = _rows(session, member, asked)
    tried, through = _done(session, member, {row.id for row in rows} | {detail.row.id for detail in details})
    extended = deadlines_in(session, member.course.id, [member.user.id])

    def stands(row: Assignment) -> bool:
        dates = extended.get((member.user.id, row.id)) or own_dates(row, member.course.slack_s)
        return row.id not in through and not dates.is_closed(now) and (row.open_at is None or row.open_at <= now)

    in_the_way = {row.slug: row for row in rows if stands(row)}
    found = {
        detail.row.id: tuple(in_the_way[slug] for slug in detail.spec.prerequisites if slug in in_the_way)
        for detail in details
        if detail.row.id not in tried
    }
    return {assignment_id: rows for assignment_id, rows in found.items() if rows}


def _rows(session: Session, member: Membership, slugs: Iterable[str]) -> Sequence[Assignment]:
    query = select(Assignment).where(
        Assignment.course_id == member.course.id, Assignment.slug.in_(slugs), Assignment.published
    )
    return session.scalars(query).all()


def _done(session: Session, member: Membership, assignment_ids: Collection[int]) -> tuple[set[int], set[int]]:
    """Of these the assignments that they, or their group, handed something in for; and those passed, or in grading."""
    together = groups.groups_in(session, member.course.id, [member.user.id])
    people = {member.user.id, *(one for group in together.values() for one in group.member_ids)}
    query = (
        select(
            Submission.assignment_id,
            Submission.user_id,
            or_(
                Submission.verdict == Verdict.passed,
                Submission.verdict.is_(None) & Submission.state.not_in(_GIVEN_UP),
            ),
        )
        .where(
            Submission.user_id.in_(people),
            Submission.assignment_id.in_(sorted(assignment_ids)),
            Submission.mode == Mode.submission,
        )
        .distinct()
    )
    tried, through = set(), set()
    for assignment_id, user_id, is_through in session.execute(query):
        group = together.get((member.user.id, assignment_id))
        if user_id == member.user.id or (group and user_id in group.member_ids):
            tried.add(assignment_id)
            if is_through:
                through.add(assignment_id)
    return tried, through
