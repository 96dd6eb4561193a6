"""End a course, open it again, and begin the next one from it."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session, joinedload

from server import audit
from server.courses import clock, courses
from server.courses.courses import Membership
from server.errors import ConflictError, ForbiddenError, InvalidInputError
from server.models import Assignment, AssignmentVersion, Course, Quiz, Role, User
from server.terms.course_settings import lock

MOST_WEEKS = 520
_COPIED = (
    "timezone", "locks_rungs", "accepts_unserved_lanes", "public_leaderboards", "public_handouts", "source_sharing",
    "keeps_erased_work", "retained_days", "late_days", "late_days_per_assignment", "late_penalty", "slack_s",
)  # fmt: skip
_DECIDED = ("published", "weight", "submissions_per_day", "runs_per_hour", "lanes", "group_size")
_DATES = ("open_at", "due_at", "late_until", "solutions_released_at", "leaderboard_freeze_at")


def archive(session: Session, member: Membership, *, typed: str, now: datetime) -> None:
    """End a course: it can be read, and nothing in it changes any more. What waits in the queue is still graded.

    Args:
        typed: the course's slug, as who does it typed it.

    Raises:
        ForbiddenError: the member is no instructor.
        InvalidInputError: something else was typed.
        ConflictError: it is archived already.
    """
    member.require_instructor()
    course = lock(session, member)
    check_typed(course, typed)
    if course.archived_at is not None:
        raise ConflictError("This course is archived already.")
    course.archived_at = now
    course.revision += 1
    audit.record(session, action="course.archived", subject=f"course:{course.slug}", actor=member.user)


def open_again(session: Session, member: Membership) -> None:
    """Let a course that was archived be changed again.

    Raises:
        ForbiddenError: the member is no instructor.
        ConflictError: it is not archived, or its people were forgotten.
    """
    member.require_instructor()
    course = lock(session, member)
    if course.archived_at is None:
        raise ConflictError("This course is not archived.")
    if course.purged_at is not None:
        raise ConflictError("The people of this course were erased, so it stays archived. Start a new course from it.")
    course.archived_at = None
    course.revision += 1
    audit.record(session, action="course.opened_again", subject=f"course:{course.slug}", actor=member.user)


def begin(session: Session, user: User, *, slug: str, title: str, timezone: str) -> Course:
    """Begin an empty course.

    Raises:
        ForbiddenError: they are no admin.
        InvalidInputError: slug, title or time zone cannot be taken.
        ConflictError: there is a course with this slug.
    """
    if not user.is_admin:
        raise ForbiddenError("Only an admin may begin an empty course. An instructor begins the next term of a course.")
    actor = session.get_one(User, user.id)
    return courses.create_course(session, slug=slug, title=title, timezone=timezone, actor=actor)


def clone(session: Session, member: Membership, *, slug: str, title: str, weeks: int, now: datetime) -> Course:
    """Begin a new course from this one: its settings and assignments with dates so many weeks later, and no people.

    Who does it is its instructor. Each date keeps weekday and hour on the course's clock. Grades, extensions, groups
    and submissions stay where they are; assignments come with their current files and quiz.

    Raises:
        ForbiddenError: the member is no instructor.
        InvalidInputError: slug, title or weeks cannot be taken.
        ConflictError: there is a course with this slug.
    """
    member.require_instructor()
    if not 0 <= weeks <= MOST_WEEKS:
        raise InvalidInputError(f"Dates move by 0 to {MOST_WEEKS} weeks.", field="weeks")
    old = member.course
    new = courses.create_course(session, slug=slug, title=title, timezone=old.timezone, actor=member.user)
    for name in _COPIED:
        setattr(new, name, getattr(old, name))
    query = select(Assignment).where(Assignment.course_id == old.id).order_by(Assignment.rung, Assignment.id)
    loaded = query.options(joinedload(Assignment.version), joinedload(Assignment.quiz))
    for row in session.scalars(loaded):
        _clone_assignment(session, row, new, weeks=weeks, now=now)
    if member.enrolment is not None:
        courses.enrol(session, course=new, user=member.user, role=Role.instructor, actor=member.user)
    audit.record(
        session,
        action="course.cloned",
        subject=f"course:{new.slug}",
        actor=member.user,
        detail={"from": old.slug, "weeks": weeks},
    )
    return new


def _clone_assignment(session: Session, row: Assignment, course: Course, *, weeks: int, now: datetime) -> None:
    new = Assignment(course_id=course.id, slug=row.slug, rung=row.rung, title=row.title, created_at=now)
    for name in _DECIDED:
        setattr(new, name, getattr(row, name))
    for name in _DATES:
        setattr(new, name, clock.shifted(getattr(row, name), course.timezone, weeks=weeks))
    session.add(new)
    session.flush()
    if row.version is not None:
        new.version_id = _clone_version(session, row.version, new, now)
    if row.quiz is not None:
        new.quiz_id = _clone_quiz(session, row.quiz, new, now)


def _clone_version(session: Session, old: AssignmentVersion, new: Assignment, now: datetime) -> int:
    """The same files: nodes know the bundle already."""
    version = AssignmentVersion(
        assignment_id=new.id,
        number=1,
        bundle_hash=old.bundle_hash,
        grading_hash=old.grading_hash,
        manifest=old.manifest,
        handout=old.handout,
        starters=old.starters,
        milestones=old.milestones,
        created_at=now,
    )
    session.add(version)
    session.flush()
    return version.id


def _clone_quiz(session: Session, old: Quiz, new: Assignment, now: datetime) -> int:
    quiz = Quiz(
        assignment_id=new.id, number=1, digest=old.digest, questions=old.questions, keys=old.keys, created_at=now
    )
    session.add(quiz)
    session.flush()
    return quiz.id


def check_typed(course: Course, typed: str) -> None:
    """See that who does something that hurts means this course.

    Raises:
        InvalidInputError: something else than its slug was typed.
    """
    if typed.strip() != course.slug:
        raise InvalidInputError(f"Type the course's short name, {course.slug}, to confirm.", field="typed")
