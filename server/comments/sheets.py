"""Whose turn it is to be graded by hand, in an order that favours nobody.

Who is read first or last is graded otherwise than those between. So students stand in an order of chance, another one
for each assignment, and the same for everybody who grades it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from server.models import Assignment, Comment, Enrolment, Mode, Role, RubricSheet, Submission, User, WriteUp


@dataclass(frozen=True)
class Turn:
    """A student and where their work stands.

    Attributes:
        submission, writeup: public ids of what they handed in last, `""` where there is none.
        points: of the rubric; `None` before anybody applied it.
    """

    user_id: int
    name: str
    section: str
    submission: str
    writeup: str
    points: float | None
    comments: int

    @property
    def has_work(self) -> bool:
        """Whether there is something to grade."""
        return bool(self.submission or self.writeup)

    @property
    def path(self) -> str:
        """The page where it is graded: the write-up where there is one."""
        return f"/writeups/{self.writeup}/comments" if self.writeup else f"/submissions/{self.submission}/comments"


def turns(session: Session, assignment: Assignment) -> list[Turn]:
    """All students of the course, in the order of their turns; one query for each kind of thing."""
    people = session.execute(
        select(User.id, User.name, Enrolment.section)
        .join(Enrolment, Enrolment.user_id == User.id)
        .where(
            Enrolment.course_id == assignment.course_id, Enrolment.role == Role.student, Enrolment.dropped_at.is_(None)
        )
    ).all()
    submitted, written = _submitted(session, assignment), _written(session, assignment)
    points, commented = _points(session, assignment), _commented(session, assignment)
    found = [
        Turn(
            user_id, name, section, submitted.get(user_id, ""), written.get(user_id, ""), points.get(user_id),
            commented.get(user_id, 0),
        )
        for user_id, name, section in people
    ]  # fmt: skip
    return sorted(found, key=lambda turn: _chance(assignment.id, turn.user_id))


def next_turn(all_turns: Sequence[Turn], user_id: int) -> Turn | None:
    """The next student after this one, round and round, who handed something in and has no sheet."""
    at = next((index for index, turn in enumerate(all_turns) if turn.user_id == user_id), -1)
    after = [*all_turns[at + 1 :], *all_turns[: at + 1]]
    return next((turn for turn in after if turn.has_work and turn.points is None and turn.user_id != user_id), None)


def _chance(assignment_id: int, user_id: int) -> bytes:
    return hashlib.sha256(f"{assignment_id}:{user_id}".encode()).digest()


def _submitted(session: Session, assignment: Assignment) -> dict[int, str]:
    newest = (
        select(func.max(Submission.id))
        .where(Submission.assignment_id == assignment.id, Submission.mode == Mode.submission)
        .group_by(Submission.user_id)
    )
    rows = session.execute(select(Submission.user_id, Submission.public_id).where(Submission.id.in_(newest)))
    return {row[0]: row[1] for row in rows}


def _written(session: Session, assignment: Assignment) -> dict[int, str]:
    newest = select(func.max(WriteUp.id)).where(WriteUp.assignment_id == assignment.id).group_by(WriteUp.user_id)
    rows = session.execute(select(WriteUp.user_id, WriteUp.public_id).where(WriteUp.id.in_(newest)))
    return {row[0]: row[1] for row in rows}


def _points(session: Session, assignment: Assignment) -> dict[int, float]:
    query = select(RubricSheet.user_id, RubricSheet.points).where(RubricSheet.assignment_id == assignment.id)
    return {row[0]: row[1] for row in session.execute(query)}


def _commented(session: Session, assignment: Assignment) -> dict[int, int]:
    query = (
        select(Comment.user_id, func.count())
        .where(Comment.assignment_id == assignment.id, Comment.withdrawn_at.is_(None))
        .group_by(Comment.user_id)
    )
    return {row[0]: row[1] for row in session.execute(query)}
