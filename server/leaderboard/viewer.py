"""Who looks at the boards of a course, and what of them they see.

A member sees the boards of the assignments that they see. Where the course's boards are public, everybody else sees
those that its students see, and nothing else of the course: no submission, no section, no name but by its owner's
choice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from autograder.contract import Lane, Language
from server.courses import courses
from server.courses.courses import AssignmentDetail, Membership
from server.errors import InvalidInputError, NotFoundError, UnauthenticatedError
from server.leaderboard.board import (
    Board,
    Selection,
    board,
    chief_lane,
    crowds_of,
    frozen_at,
    practice_language,
    sections_of,
)
from server.models import Course, User


@dataclass(frozen=True)
class Looker:
    """Somebody who looks. `member` is `None` for the public."""

    course: Course
    member: Membership | None

    @property
    def is_staff(self) -> bool:
        """Whether they see behind pseudonyms to submissions, and past a freeze."""
        return self.member is not None and self.member.is_staff

    @property
    def user_id(self) -> int | None:
        """Whose row is theirs."""
        return self.member.user.id if self.member else None

    @property
    def section(self) -> str:
        """A student's own section."""
        return self.member.enrolment.section if self.member and self.member.enrolment else ""


@dataclass(frozen=True)
class Wish:
    """What of a board is asked for.

    Attributes:
        lane: `None`: the one that is used and gives points, or else one that ranks.
        language: `None`: all of them; on a practice board the one with most entries.
        frozen: staff want to see what a freeze leaves students.
    """

    lane: Lane | None = None
    language: Language | None = None
    section: str | None = None
    frozen: bool = False


@dataclass(frozen=True)
class Shown:
    """A board as somebody sees it.

    Attributes:
        frozen_since: students see what it was then; `None` while they see all of it.
        sections: those that the looker may choose among.
        entries: how many there are on each lane in each language.
    """

    detail: AssignmentDetail
    lanes: tuple[Lane, ...]
    board: Board
    frozen_since: datetime | None
    sections: tuple[str, ...]
    entries: Mapping[Lane, Mapping[Language, int]]

    @property
    def is_frozen(self) -> bool:
        """Whether what is shown is what it was."""
        return self.board.selection.as_of is not None


def looker(session: Session, user: User | None, course: str) -> Looker:
    """Whoever asks, as they look at this course's boards.

    Raises:
        UnauthenticatedError: nobody is logged in, and there is no such course with public boards.
        NotFoundError: they are not in it, and its boards are not public, or there is no such course.
    """
    if user is not None:
        try:
            member = courses.membership(session, user, course)
        except NotFoundError:
            return Looker(_public(session, course, NotFoundError("There is no such course.")), None)
        return Looker(member.course, member)
    return Looker(_public(session, course, UnauthenticatedError("Log in first.")), None)


def public_course(session: Session, slug: str) -> Course:
    """A course whose boards are public.

    Raises:
        NotFoundError: there is none with this slug.
    """
    return _public(session, slug, NotFoundError("There is no such leaderboard."))


def details(session: Session, who: Looker, now: datetime) -> list[AssignmentDetail]:
    """The assignments whose boards they see, by rung."""
    if who.member is not None:
        return courses.assignments_of(session, who.member, now)
    return [item for item in courses.details_of(session, who.course.id) if item.is_visible(now, staff=False)]


def detail_of(session: Session, who: Looker, slug: str, now: datetime) -> AssignmentDetail:
    """One of them.

    Raises:
        NotFoundError: there is none with this slug that they may know of.
    """
    if who.member is not None:
        return courses.assignment_of(session, who.member, slug, now)
    return courses.assignment_for_anyone(session, who.course, slug, now)


def shown(session: Session, who: Looker, slug: str, wish: Wish, now: datetime) -> Shown:
    """The board that they asked for, as they see it.

    Raises:
        NotFoundError: they may not know of the assignment, or it is not graded on the lane.
        InvalidInputError: a section that is not theirs to look at, or a language that the assignment is not in.
    """
    detail = detail_of(session, who, slug, now)
    lane = _lane(session, detail, wish.lane)
    sections = sections_of(session, who.course.id) if who.is_staff else (who.section,) if who.section else ()
    _check(detail, wish, sections)
    since = frozen_at(detail.row, now)
    as_of = since if not who.is_staff or wish.frozen else None
    selection = Selection(section=wish.section or None, as_of=as_of)
    entries = crowds_of(session, [detail.row.id], selection)
    language = wish.language or practice_language([detail], lane, entries.get(lane, {}))
    selection = replace(selection, language=language)
    found = board(session, assignment=detail.row, lane=lane, viewer_id=who.user_id, selection=selection)
    return Shown(detail, detail.board_lanes, found, since, sections, entries)


def _lane(session: Session, detail: AssignmentDetail, wish: Lane | None) -> Lane:
    lane = wish or chief_lane(session, [detail]) or next(iter(detail.lanes), None)
    if lane is None or lane not in detail.lanes:
        raise NotFoundError(f"{detail.title} is not graded on that lane.")
    return lane


def _check(detail: AssignmentDetail, wish: Wish, sections: tuple[str, ...]) -> None:
    if wish.language is not None and wish.language not in detail.spec.languages:
        raise InvalidInputError(f"{detail.title} does not accept {wish.language}.", field="language")
    if wish.section and wish.section not in sections:
        raise InvalidInputError("There is no such section, or you may not see it.", field="section")


def _public(session: Session, slug: str, refusal: Exception) -> Course:
    course = session.scalar(select(Course).where(Course.slug == slug, Course.public_leaderboards))
    if course is None:
        raise refusal
    return course
