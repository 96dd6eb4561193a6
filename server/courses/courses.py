"""Say who somebody is in a course and which assignments they see; make courses and enrol people."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sqlalchemy import Select, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, defer, joinedload
from sqlalchemy.orm.attributes import set_committed_value

from autograder import assignment as rungs
from autograder import codec
from autograder.contract import Lane
from autograder.quiz import Question
from server import audit, db, dirty_grades
from server.accounts import names
from server.courses.deadlines import Deadlines, deadlines_in, deadlines_of, own_dates
from server.courses.kept import Kept
from server.errors import ConflictError, ForbiddenError, InvalidInputError, NotFoundError
from server.models import Assignment, AssignmentVersion, Course, Enrolment, Quiz, Role, User

SLUG = re.compile(r"[a-z0-9][a-z0-9_-]{0,59}")


@dataclass(frozen=True)
class Membership:
    """What one person is in one course. `enrolment` is `None` for an admin, who acts as an instructor everywhere."""

    course: Course
    user: User
    enrolment: Enrolment | None
    role: Role

    @property
    def is_staff(self) -> bool:
        """Whether they see everybody's submissions, hidden cases and findings."""
        return self.role in {Role.ta, Role.instructor}

    @property
    def is_instructor(self) -> bool:
        """Whether they decide about the course itself."""
        return self.role is Role.instructor

    def require_staff(self) -> None:
        """Raise `ForbiddenError` for a student."""
        if not self.is_staff:
            raise ForbiddenError("Only the staff of this course may do that.")

    def require_instructor(self) -> None:
        """Raise `ForbiddenError` for anybody but an instructor or an admin."""
        if not self.is_instructor:
            raise ForbiddenError("Only an instructor of this course may do that.")


_SPECS: Kept[rungs.Assignment] = Kept(1024)
_QUESTIONS: Kept[tuple[Question, ...]] = Kept(256)

_LISTED = (
    joinedload(Assignment.version).options(
        defer(AssignmentVersion.manifest),
        defer(AssignmentVersion.handout),
        defer(AssignmentVersion.starters),
        defer(AssignmentVersion.milestones),
    ),
    joinedload(Assignment.quiz).defer(Quiz.questions),
)
"""How assignments are loaded where many are: without what only their own page needs, or is kept in mind."""


def spec_of(version: AssignmentVersion) -> rungs.Assignment:
    """The assignment as its files said it in this version; every request asks for it, so it is read once."""
    return _SPECS.get(version.bundle_hash, lambda: codec.from_json(rungs.Assignment, version.manifest))


def is_counted(row: Assignment, version: AssignmentVersion, lane: Lane) -> bool:
    """Whether counters give the speed points of a submission to this version on this lane."""
    return lane in AssignmentDetail(row, version).counted_lanes


def _questions(quiz: Quiz) -> tuple[Question, ...]:
    return _QUESTIONS.get(quiz.digest, lambda: tuple(codec.from_json(Question, item) for item in quiz.questions))


@dataclass(frozen=True)
class AssignmentDetail:
    """An assignment in a course together with what its files say in the current version."""

    row: Assignment
    version: AssignmentVersion
    dates: Deadlines | None = None
    """As they are for the person who is asking; `None`: the assignment's own."""

    @property
    def spec(self) -> rungs.Assignment:
        """The manifest."""
        return spec_of(self.version)

    @property
    def slug(self) -> str:
        """Its name in URLs."""
        return self.row.slug

    @property
    def title(self) -> str:
        """Its name for people."""
        return self.row.title

    @property
    def handout(self) -> str:
        """Markdown."""
        return self.version.handout

    @property
    def starters(self) -> dict[str, str]:
        """Language → source of the file to start from."""
        return {language: text for language, text in self.version.starters.items() if language != rungs.READING}

    @property
    def reading(self) -> str:
        """The starter in plain PyTorch, to read; `""` where there is none."""
        return str(self.version.starters.get(rungs.READING, ""))

    @property
    def questions(self) -> tuple[Question, ...]:
        """Of its quiz, without the key; none where it has no quiz."""
        return _questions(self.row.quiz) if self.row.quiz else ()

    @property
    def question_points(self) -> float:
        """What one question of the quiz is worth: they share its points equally."""
        return self.spec.points.quiz / len(self.questions) if self.questions else 0.0

    @property
    def quiz_points(self) -> float:
        """What the quiz is worth; nothing where there are no questions."""
        return self.spec.points.quiz if self.questions else 0.0

    @property
    def speed_lanes(self) -> tuple[Lane, ...]:
        """The lanes that are offered and give speed points."""
        policies = ((lane, self.spec.policy(lane)) for lane in self.lanes)
        return tuple(lane for lane, policy in policies if policy and policy.speed_points)

    @property
    def counted_lanes(self) -> tuple[Lane, ...]:
        """The lanes on which counters give the speed points: none where one that is offered gives them for times."""
        if self.speed_lanes or not any(one.points for one in self.spec.requirements):
            return ()
        return tuple(lane for lane in self.lanes if lane is Lane.cpu)

    @property
    def board_lanes(self) -> tuple[Lane, ...]:
        """The lanes that are offered and have a leaderboard."""
        policies = ((lane, self.spec.policy(lane)) for lane in self.lanes)
        return tuple(lane for lane, policy in policies if policy and policy.ranks)

    @property
    def speed_points(self) -> float:
        """What there is for speed; nothing where no lane that is offered gives speed points, for times or counters."""
        return self.spec.points.speed if self.speed_lanes or self.counted_lanes else 0.0

    @property
    def writeup_points(self) -> float:
        """What its write-up is worth; nothing where it asks for none."""
        return self.spec.writeup.points if self.spec.writeup else 0.0

    @property
    def submission_points(self) -> float:
        """What a submission can give."""
        return self.spec.points.correctness + self.speed_points

    @property
    def maximum_points(self) -> float:
        """What it can give in all."""
        return self.submission_points + self.quiz_points + self.writeup_points

    @property
    def lanes(self) -> tuple[Lane, ...]:
        """Where it is graded, in the order of the enum: what its files have, less what staff do not offer."""
        offered = self.row.lanes
        return tuple(
            lane for lane in Lane if self.spec.policy(lane) is not None and (offered is None or lane.value in offered)
        )

    @property
    def deadlines(self) -> Deadlines:
        """When it opens, is due and closes for the person who is asking."""
        return self.dates or own_dates(self.row, 0)

    @property
    def due_at(self) -> datetime | None:
        """For the person who is asking: their extension applied."""
        return self.deadlines.due_at

    @property
    def late_until(self) -> datetime | None:
        """For the person who is asking: their extension applied."""
        return self.deadlines.late_until

    def is_open(self, now: datetime) -> bool:
        """Whether it has begun."""
        return self.row.open_at is None or self.row.open_at <= now

    def is_late(self, now: datetime) -> bool:
        """Whether a submission uploaded now would be late."""
        return self.deadlines.is_late(now)

    def is_closed(self, now: datetime) -> bool:
        """Whether submissions are over; practice runs go on."""
        return self.deadlines.is_closed(now)

    def is_visible(self, now: datetime, *, staff: bool) -> bool:
        """Staff see everything, students what is published and has begun."""
        return staff or (self.row.published and self.is_open(now))


def membership(session: Session, user: User, course_slug: str, *, even_archived: bool = False) -> Membership:
    """What `user` is in the course.

    Args:
        even_archived: the caller may change an archived course.

    Raises:
        NotFoundError: there is no such course, or they may not know of it (not enrolled, or dropped).
        ConflictError: it is archived, and this is a transaction that may write.
    """
    row = session.execute(
        select(Course, Enrolment)
        .outerjoin(Enrolment, (Enrolment.course_id == Course.id) & (Enrolment.user_id == user.id))
        .where(Course.slug == course_slug)
    ).one_or_none()
    if row is None:
        raise NotFoundError("There is no such course.")
    found = _membership(row[0], user, row[1])
    if found is None:
        raise NotFoundError("There is no such course.")
    if not even_archived:
        refuse_archived(session, found.course)
    return found


def staff_of(session: Session, user: User, course_slug: str) -> Membership:
    """What a member of the staff is in the course.

    Raises:
        NotFoundError, ConflictError: as `membership`.
        ForbiddenError: they are a student of it.
    """
    member = membership(session, user, course_slug)
    member.require_staff()
    return member


def staff_ids(session: Session, course_id: int) -> Sequence[int]:
    """Who is told what the staff of a course should know."""
    query = select(Enrolment.user_id).where(
        Enrolment.course_id == course_id,
        Enrolment.role.in_((Role.ta, Role.instructor)),
        Enrolment.dropped_at.is_(None),
    )
    return session.scalars(query).all()


def refuse_archived(session: Session, course: Course) -> None:
    """Let nobody change what belongs to an archived course.

    Raises:
        ConflictError: it is archived, and this is a transaction that may write.
    """
    if course.archived_at is not None and not db.is_reading(session):
        raise ConflictError(f"{course.title} is archived: it can be read but not changed.")


def courses_of(session: Session, user: User) -> list[Membership]:
    """The courses that `user` is in, newest first; an admin is in all."""
    rows = session.execute(
        select(Course, Enrolment)
        .outerjoin(Enrolment, (Enrolment.course_id == Course.id) & (Enrolment.user_id == user.id))
        .order_by(Course.created_at.desc(), Course.id.desc())
    )
    found = (_membership(course, user, enrolment) for course, enrolment in rows)
    return [item for item in found if item is not None]


def details_of(session: Session, *course_ids: int) -> list[AssignmentDetail]:
    """All assignments of the courses that have files, by rung, without what only their own page needs."""
    rows = session.scalars(
        select(Assignment)
        .where(Assignment.course_id.in_(course_ids))
        .options(*_LISTED)
        .order_by(Assignment.rung, Assignment.slug)
    )
    found = [AssignmentDetail(row, row.version) for row in rows if row.version is not None]
    _load_manifests(session, [detail.version for detail in found])
    return found


def _load_manifests(session: Session, versions: Sequence[AssignmentVersion]) -> None:
    """Those that are not kept in mind, at once; each would be a query of its own when it is asked for."""
    missing = [version.id for version in versions if _SPECS.peek(version.bundle_hash) is None]
    if missing:
        query = select(AssignmentVersion.id, AssignmentVersion.manifest).where(AssignmentVersion.id.in_(missing))
        manifests = {row.id: row.manifest for row in session.execute(query)}
        for version in versions:
            if version.id in manifests:
                set_committed_value(version, "manifest", manifests[version.id])


def assignments_of(session: Session, membership: Membership, now: datetime) -> list[AssignmentDetail]:
    """The assignments that the member sees, by rung: staff all, students those published and open."""
    extended = deadlines_in(session, membership.course.id, [membership.user.id])
    details = (
        replace(detail, dates=_dates(membership, detail.row, extended.get((membership.user.id, detail.row.id))))
        for detail in details_of(session, membership.course.id)
    )
    return [detail for detail in details if detail.is_visible(now, staff=membership.is_staff)]


def assignment_of(session: Session, membership: Membership, slug: str, now: datetime | None = None) -> AssignmentDetail:
    """One assignment that the member sees.

    Raises:
        NotFoundError: there is none with this slug, or a student may not know of it yet.
    """
    found = assignment_for_anyone(session, membership.course, slug, now, staff=membership.is_staff)
    return replace(found, dates=deadlines_of(session, found.row, membership.user.id))


def assignment_for_anyone(
    session: Session, course: Course, slug: str, now: datetime | None = None, *, staff: bool = False
) -> AssignmentDetail:
    """The same with the assignment's own dates, for whoever may look: every student and nobody in particular, or staff.

    Raises:
        NotFoundError: as `assignment_of`.
    """
    row = session.scalar(
        select(Assignment)
        .where(Assignment.course_id == course.id, Assignment.slug == slug)
        .options(joinedload(Assignment.version), joinedload(Assignment.quiz))
    )
    if row is not None and row.version is not None:
        detail = AssignmentDetail(row, row.version)
        if detail.is_visible(now or db.now(session), staff=staff):
            return detail
    raise NotFoundError("There is no such assignment.")


def id_of_assignment(course_id: int, slug: str) -> Select[int]:
    """The id of the course's assignment with this slug, for queries about it, whoever may see it."""
    return select(Assignment.id).where(Assignment.course_id == course_id, Assignment.slug == slug)


def course_by_slug(session: Session, slug: str) -> Course:
    """The course with this slug, for staff commands.

    Raises:
        NotFoundError: there is none.
    """
    course = session.scalar(select(Course).where(Course.slug == slug))
    if course is None:
        raise NotFoundError(f"There is no course {slug!r}.")
    return course


def create_course(
    session: Session, *, slug: str, title: str, timezone: str = "UTC", actor: User | None = None
) -> Course:
    """Make a course.

    Raises:
        InvalidInputError: slug, title or time zone cannot be taken.
        ConflictError: there is a course with this slug.
    """
    if not SLUG.fullmatch(slug):
        raise InvalidInputError(
            "A slug has 1 to 60 of a-z, 0-9, - and _, and starts with one of a-z, 0-9.", field="slug"
        )
    course = Course(
        slug=slug, title=checked_title(title), timezone=checked_zone(timezone), created_at=datetime.now(UTC)
    )
    try:
        with session.begin_nested():
            session.add(course)
    except IntegrityError:
        raise ConflictError(f"A course {slug!r} exists already.") from None
    audit.record(session, action="course.created", subject=f"course:{slug}", actor=actor, detail={"title": title})
    return course


def set_dates(
    session: Session,
    row: Assignment,
    *,
    open_at: datetime | None,
    due_at: datetime | None,
    late_until: datetime | None,
    actor: User | None = None,
) -> None:
    """Say when an assignment begins, is due, and takes no more submissions; `None` is never.

    Raises:
        InvalidInputError: they are not in this order.
    """
    given = [at for at in (open_at, due_at, late_until) if at is not None]
    if given != sorted(given):
        raise InvalidInputError("An assignment opens before its due date and closes after it.", field="due_at")
    row.open_at, row.due_at, row.late_until = open_at, due_at, late_until
    dirty_grades.grades(session, row.course_id)
    row.revision += 1
    names = {"open_at": open_at, "due_at": due_at, "late_until": late_until}
    audit.record(
        session,
        action="assignment.dates_set",
        subject=f"assignment:{row.id}",
        actor=actor,
        detail={name: at.isoformat() if at else None for name, at in names.items()},
    )


def enrol(
    session: Session, *, course: Course, user: User, role: Role, section: str = "", actor: User | None = None
) -> Enrolment:
    """Put a person in a course in this role; one who dropped it, or had another role, gets this one."""
    enrolment = session.scalar(select(Enrolment).where(Enrolment.course_id == course.id, Enrolment.user_id == user.id))
    if enrolment is None:
        enrolment = Enrolment(course_id=course.id, user_id=user.id, role=role, created_at=datetime.now(UTC))
        session.add(enrolment)
    enrolment.role, enrolment.section, enrolment.dropped_at = role, section[:60], None
    session.flush()
    dirty_grades.grades(session, course.id, user.id)
    audit.record(
        session,
        action="enrolment.set",
        subject=f"course:{course.slug}",
        actor=actor,
        detail={"user": user.id, "role": role.value},
    )
    return enrolment


def set_show_name(session: Session, membership: Membership, *, show: bool) -> None:
    """Let a member stand on the course's leaderboards by name, or by their pseudonym again.

    Raises:
        NotFoundError: they are not enrolled (an admin), so that no board shows them.
        InvalidInputError: a student has the name of one of the staff.
    """
    if membership.enrolment is None:
        raise NotFoundError("You are not enrolled in this course.")
    if show and not membership.is_staff:
        refuse_staffs_name(session, membership.course, membership.user.name)
    session.get_one(Enrolment, membership.enrolment.id).show_name = show


def staff_names(session: Session, course: Course) -> list[str]:
    """What the staff of a course, and admins, are called."""
    of_course = (Enrolment.course_id == course.id, Enrolment.dropped_at.is_(None), Enrolment.role != Role.student)
    staff = select(User.id).join(Enrolment, Enrolment.user_id == User.id).where(*of_course)
    named = select(User.name).where(User.is_admin | User.id.in_(staff), User.disabled_at.is_(None))
    return list(session.scalars(named.order_by(User.id)))


def refuse_staffs_name(session: Session, course: Course, name: str) -> None:
    """See that a student's name cannot be taken for one of the staff's.

    Raises:
        InvalidInputError: it looks the same.
    """
    if taken := names.alike(name, staff_names(session, course)):
        raise InvalidInputError(
            f"This looks like {taken}, a member of staff. Add a middle name or an initial, or ask the staff.",
            field="name",
        )


def _dates(membership: Membership, row: Assignment, extended: Deadlines | None) -> Deadlines:
    return extended or own_dates(row, membership.course.slack_s)


def _membership(course: Course, user: User, enrolment: Enrolment | None) -> Membership | None:
    if user.is_admin and not user.acts_as_student:
        return Membership(course, user, None, Role.instructor)
    if enrolment is None or enrolment.dropped_at is not None:
        return None
    if user.acts_as_student:
        return Membership(course, user, enrolment, Role.student)
    return Membership(course, user, enrolment, enrolment.role)


def checked_title(title: str) -> str:
    """A course's title as it is stored.

    Raises:
        InvalidInputError: it is empty, too long, or has characters that nobody sees.
    """
    title = " ".join(title.split())
    if not title or len(title) > 200 or not title.isprintable():  # noqa: PLR2004  # the column's width
        raise InvalidInputError("A title has 1 to 200 printable characters.", field="title")
    return title


def checked_zone(name: str) -> str:
    """The name of a time zone, if it is one.

    Raises:
        InvalidInputError: it is none.
    """
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidInputError(
            f"{name!r} is not a time zone's IANA name, such as Europe/Berlin.", field="timezone"
        ) from None
    return name
