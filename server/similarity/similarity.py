"""Ask for a comparison, read what came of it, and say that somebody looked. A list to look at, never a verdict."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session, joinedload, undefer

from autograder import codec
from server import audit
from server.courses import courses
from server.courses.courses import Membership
from server.errors import ConflictError, InvalidInputError, NotFoundError
from server.gradebook.people import checked_reason
from server.models import (
    Assignment,
    ComparedText,
    Comparison,
    ComparisonState,
    Course,
    PairMark,
    SimilarPair,
    Submission,
)
from server.similarity.engine import Matches
from server.similarity.scope import Scope

PAGE = 50
SHOWN = 20
"""So many comparisons of a course are listed, the newest first."""
REASON_CHARS = 1_000


@dataclass(frozen=True)
class Cohort:
    """Another course that has the assignment, and whose staff the member is."""

    course_id: int
    title: str
    slug: str


@dataclass(frozen=True)
class Results:
    """A page of a comparison's pairs, with submissions and people loaded.

    Attributes:
        closed: ids of pairs whose right side is of a course whose staff the viewer is not.
        to_look_at: pairs that nobody has marked.
    """

    pairs: tuple[SimilarPair, ...]
    closed: frozenset[int]
    to_look_at: int
    count: int
    page: int

    @property
    def pages(self) -> int:
        """How many there are."""
        return max(1, -(-self.count // PAGE))


@dataclass(frozen=True)
class Evidence:
    """Two sources and where they are alike."""

    pair: SimilarPair
    matches: Matches
    left: str
    right: str


def cohorts(session: Session, member: Membership, slug: str) -> tuple[Cohort, ...]:
    """Where else this assignment was given, of the courses whose staff the member is."""
    staffed = {one.course.id for one in courses.courses_of(session, member.user) if one.is_staff}
    rows = session.execute(
        select(Course.id, Course.title, Course.slug)
        .join(Assignment, Assignment.course_id == Course.id)
        .where(Assignment.slug == slug, Course.id.in_(staffed - {member.course.id}))
        .order_by(Course.created_at.desc())
    )
    return tuple(Cohort(*row) for row in rows)


def start(session: Session, member: Membership, assignment: Assignment, scope: Scope, *, now: datetime) -> Comparison:
    """Have it done; a process of the dispatcher's begins with it in a few seconds.

    Raises:
        ForbiddenError: to a student.
        InvalidInputError: a course that does not have the assignment, or whose staff the member is not.
        ConflictError: one of this assignment waits or runs already.
    """
    member.require_staff()
    allowed = {cohort.course_id for cohort in cohorts(session, member, assignment.slug)}
    if not allowed.issuperset(scope.courses):
        raise InvalidInputError("Choose courses that have this assignment and in which you are staff.", field="courses")
    # The assignment's row is locked, so that two who press the button at once start one.
    session.execute(select(Assignment.id).where(Assignment.id == assignment.id).with_for_update())
    under_way = session.scalar(
        select(Comparison.id).where(
            Comparison.assignment_id == assignment.id,
            Comparison.state.in_((ComparisonState.queued, ComparisonState.running)),
        )
    )
    if under_way is not None:
        raise ConflictError("A comparison of this assignment is running already.")
    row = Comparison(
        course_id=member.course.id,
        assignment_id=assignment.id,
        scope=codec.to_json(scope),
        state=ComparisonState.queued,
        created_by_id=member.user.id,
        created_at=now,
    )
    session.add(row)
    session.flush()
    audit.record(
        session,
        action="similarity.started",
        subject=f"assignment:{assignment.id}",
        actor=member.user,
        detail={"comparison": row.id, **codec.to_json(scope)},
    )
    return row


def of_course(session: Session, member: Membership) -> Sequence[Comparison]:
    """The newest comparisons, with their assignments."""
    member.require_staff()
    query = (
        select(Comparison)
        .where(Comparison.course_id == member.course.id)
        .options(joinedload(Comparison.assignment))
        .order_by(Comparison.id.desc())
        .limit(SHOWN)
    )
    return session.scalars(query).all()


def find(session: Session, member: Membership, comparison_id: int) -> Comparison:
    """One of the course's.

    Raises:
        ForbiddenError: to a student.
        NotFoundError: there is none.
    """
    member.require_staff()
    row = session.scalar(
        select(Comparison)
        .where(Comparison.id == comparison_id, Comparison.course_id == member.course.id)
        .options(joinedload(Comparison.assignment))
    )
    if row is None:
        raise NotFoundError("There is no such comparison.")
    return row


def results(
    session: Session, member: Membership, comparison: Comparison, *, page: int = 1, marked: bool | None = None
) -> Results:
    """The most alike first; `marked`: only those that somebody has marked, or nobody has."""
    where = [SimilarPair.comparison_id == comparison.id]
    open_where = [*where, SimilarPair.mark == PairMark.none]
    if marked is not None:
        where.append(SimilarPair.mark != PairMark.none if marked else SimilarPair.mark == PairMark.none)
    count = session.scalar(select(func.count()).select_from(SimilarPair).where(*where)) or 0
    page = max(1, min(page, -(-count // PAGE) or 1))
    rows = session.scalars(
        select(SimilarPair)
        .where(*where)
        .options(
            joinedload(SimilarPair.left).joinedload(Submission.user),
            joinedload(SimilarPair.right).joinedload(Submission.user),
            joinedload(SimilarPair.text).load_only(ComparedText.name, ComparedText.language),
            joinedload(SimilarPair.marked_by),
        )
        .order_by(SimilarPair.share.desc(), SimilarPair.common.desc(), SimilarPair.id)
        .offset((page - 1) * PAGE)
        .limit(PAGE)
    ).all()
    to_look_at = session.scalar(select(func.count()).select_from(SimilarPair).where(*open_where)) or 0
    return Results(tuple(rows), _closed(session, member, rows), to_look_at, count, page)


def evidence(session: Session, member: Membership, pair_id: int) -> Evidence:
    """Both sources of a pair.

    Raises:
        NotFoundError: there is none, or the other source is of a course whose staff the member is not.
    """
    member.require_staff()
    pair = session.scalar(
        select(SimilarPair)
        .join(SimilarPair.comparison)
        .where(SimilarPair.id == pair_id, Comparison.course_id == member.course.id)
        .options(
            undefer(SimilarPair.matches),
            joinedload(SimilarPair.comparison).joinedload(Comparison.assignment),
            joinedload(SimilarPair.left).options(undefer(Submission.source), joinedload(Submission.user)),
            joinedload(SimilarPair.right).options(undefer(Submission.source), joinedload(Submission.user)),
            joinedload(SimilarPair.text),
            joinedload(SimilarPair.marked_by),
        )
    )
    if pair is None or _closed(session, member, [pair]):
        raise NotFoundError("There is no such pair.")
    right = pair.text.source if pair.text else pair.right.source.decode("utf-8", "replace") if pair.right else ""
    return Evidence(pair, codec.from_json(Matches, pair.matches), pair.left.source.decode("utf-8", "replace"), right)


def mark(
    session: Session, member: Membership, pair_id: int, mark: PairMark, *, reason: str, revision: int, now: datetime
) -> SimilarPair:
    """Say what somebody who looked at a pair thinks of it.

    Raises:
        NotFoundError: as `evidence`.
        InvalidInputError: a pair is noted without a reason, or the reason is too long.
        ConflictError: somebody marked it since `revision`.
    """
    evidence(session, member, pair_id)
    # What is nothing, or open again, needs no reason.
    reason = checked_reason(reason) if mark is PairMark.noted or reason.strip() else ""
    row = session.scalars(
        select(SimilarPair).where(SimilarPair.id == pair_id).with_for_update().execution_options(populate_existing=True)
    ).one()
    if row.revision != revision:
        raise ConflictError("Somebody else marked this pair meanwhile. Read their note first.")
    before, row.mark, row.reason = row.mark, mark, reason
    row.marked_by_id, row.marked_at = member.user.id, now
    row.revision += 1
    audit.record(
        session,
        action="similarity.marked",
        subject=f"pair:{row.id}",
        actor=member.user,
        detail={
            "course": member.course.slug,
            "comparison": row.comparison_id,
            "left": row.left_id,
            "right": row.right_id,
            "before": before.value,
            "after": mark.value,
        },
        reason=reason,
    )
    return row


def _closed(session: Session, member: Membership, pairs: Collection[SimilarPair]) -> frozenset[int]:
    elsewhere = {pair.right.course_id for pair in pairs if pair.right} - {member.course.id}
    if not elsewhere:
        return frozenset()
    staffed = {one.course.id for one in courses.courses_of(session, member.user) if one.is_staff}
    return frozenset(pair.id for pair in pairs if pair.right and pair.right.course_id in elsewhere - staffed)
