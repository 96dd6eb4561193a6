"""Which submissions a proposal is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Select, func, or_, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from autograder.contract import Lane, Mode, State, Verdict
from server.errors import InvalidInputError
from server.grading.ranking import standing
from server.models import Grade, Submission

MOST = 20_000
MOST_PICKED = 500


class Which(StrEnum):
    """How submissions are chosen."""

    latest = "latest"
    """Of each student and lane, the newest."""
    best = "best"
    """Of each student and lane, the one with the most points."""
    counting = "counting"
    """Those that the gradebook counts, and those that a leaderboard shows."""
    all = "all"
    verdict = "verdict"
    """All with certain verdicts."""
    picked = "picked"


@dataclass(frozen=True)
class Selection:
    """A choice among the submissions of an assignment; practice runs and what was cancelled are never in it.

    Attributes:
        lane: of this lane only.
        picked: receipt numbers.
    """

    which: Which = Which.latest
    lane: Lane | None = None
    verdicts: tuple[Verdict, ...] = ()
    picked: tuple[str, ...] = ()


def chosen(session: Session, assignment_id: int, selection: Selection) -> Sequence[tuple[int, int]]:
    """Ids of the submissions and of who handed them in, oldest first.

    Raises:
        InvalidInputError: it is none, or too many, or something picked is not among them.
    """
    if selection.which is Which.verdict and not selection.verdicts:
        raise InvalidInputError("Choose at least one verdict.", field="verdicts")
    if selection.which is Which.picked:
        _check_picked(session, assignment_id, selection)
    rows = session.execute(_query(assignment_id, selection).limit(MOST + 1)).all()
    if not rows:
        raise InvalidInputError("This selects no submission of the assignment.", field="which")
    if len(rows) > MOST:
        raise InvalidInputError(
            f"This selects more than {MOST:,} submissions; narrow it by lane or verdict.", field="which"
        )
    return [(row.id, row.user_id) for row in rows]


def _check_picked(session: Session, assignment_id: int, selection: Selection) -> None:
    if not selection.picked:
        raise InvalidInputError("Name at least one submission by its receipt number.", field="picked")
    if len(selection.picked) > MOST_PICKED:
        raise InvalidInputError(f"At most {MOST_PICKED} submissions can be picked one by one.", field="picked")
    known = set(session.scalars(select(Submission.public_id).where(*_of(assignment_id, selection))))
    if strange := [name for name in selection.picked if name not in known]:
        raise InvalidInputError(f"{strange[0][:40]} is not a submission of this assignment.", field="picked")


def _of(assignment_id: int, selection: Selection) -> list[ColumnElement[bool]]:
    where = [
        Submission.assignment_id == assignment_id,
        Submission.mode == Mode.submission,
        Submission.state != State.cancelled,
    ]
    if selection.lane is not None:
        where.append(Submission.lane == selection.lane)
    if selection.picked:
        where.append(Submission.public_id.in_(selection.picked))
    return where


def _query(assignment_id: int, selection: Selection) -> Select[int, int]:
    where = _of(assignment_id, selection)
    query = select(Submission.id, Submission.user_id).where(*where).order_by(Submission.id)
    match selection.which:
        case Which.latest:
            return query.where(Submission.id.in_(_first(where, Submission.number.desc())))
        case Which.best:
            points = func.coalesce(Submission.points, -1.0).desc()
            return query.where(Submission.id.in_(_first(where, points, Submission.number)))
        case Which.counting:
            counts = select(Grade.submission_id).where(Grade.assignment_id == assignment_id)
            counted = Submission.id.in_(counts.where(Grade.submission_id.is_not(None)))
            return query.where(or_(counted, Submission.id.in_(standing(assignment_id))))
        case Which.verdict:
            return query.where(Submission.verdict.in_(selection.verdicts))
        case _:
            return query


def _first(
    where: Sequence[ColumnElement[bool]], *order: ColumnElement[Any] | InstrumentedAttribute[Any]
) -> Select[int]:
    """Of each student and lane, the first in this order."""
    place = func.row_number().over(partition_by=(Submission.user_id, Submission.lane), order_by=order)
    ranked = select(Submission.id, place.label("place")).where(*where).subquery()
    return select(ranked.c.id).where(ranked.c.place == 1)
