"""What a proposal does to the assignment's leaderboards, before it is applied and after. It changes nothing.

A board shows results that were graded the same way (`AssignmentVersion.grading_hash`), those of the assignment's
current version. So whoever is not graded by it leaves the board, however good the result was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Row, func, select, true
from sqlalchemy.orm import Session

from autograder.contract import Lane, Verdict
from server.grading.leaderboard_entries import judged
from server.grading.ranking import enrolled, may_stand, ranks
from server.models import (
    Assignment,
    AssignmentVersion,
    Enrolment,
    Regrade,
    RegradeItem,
    RegradeItemState,
    RegradeKind,
    Result,
    Submission,
    User,
)

_Known = Row[*tuple[Any, ...]]


class Standing(NamedTuple):
    """One valid result: whose, when it was handed in, and how fast it is."""

    user_id: int
    submission_id: int
    uploaded_at: datetime
    ratio: float
    low: float
    high: float


@dataclass(frozen=True)
class Moved:
    """A student whose place on a board changes.

    Attributes:
        before, after: ranks; `None`: not on the board.
        records_lost: results of theirs that are a step of the board's record now and would be none.
    """

    name: str
    before: int | None
    after: int | None
    records_lost: int


@dataclass(frozen=True)
class Outlook:
    """One board, if the proposal is applied now.

    Attributes:
        other_version: the board shows results of another version after it than those that were graded before.
        moved: who leaves it or loses a record first, then who loses places.
    """

    lane: Lane
    other_version: bool
    moved: tuple[Moved, ...]

    @property
    def leave(self) -> int:
        """How many students leave the board."""
        return sum(one.before is not None and one.after is None for one in self.moved)

    @property
    def lose_records(self) -> int:
        """How many students lose a record."""
        return sum(one.records_lost > 0 for one in self.moved)


def outlook(session: Session, regrade: Regrade) -> tuple[Outlook, ...]:
    """Every board of the assignment on which something changes; places as they would be without what is not known yet.

    Boards are compared with what the proposal's submissions were graded by before, where that is not what boards show
    by now: a version that grades otherwise empties them until everybody is graded again.
    """
    version_id = session.get_one(Assignment, regrade.assignment_id).version_id
    if version_id is None:
        return ()
    shown = session.get_one(AssignmentVersion, version_id).grading_hash
    by = session.get_one(AssignmentVersion, regrade.version_id).grading_hash
    found = _found(session, regrade)
    known = _mostly(one.graded_by for one in found) or shown
    changes = []
    for lane in sorted({one.lane for one in found}):
        items = [one for one in found if one.lane is lane]
        before = _valid(session, regrade.assignment_id, lane, known)
        staying = before if shown == known else _valid(session, regrade.assignment_id, lane, shown)
        # By another formula the same tests are worth something else.
        after = _after(
            staying, items, lambda one: shown == (by if regrade.kind is RegradeKind.rerun else one.graded_by)
        )
        names = _names(session, {one.user_id for one in (*before, *after)})
        if moved := _moved(before, after, names):
            changes.append(Outlook(lane, shown != known, moved))
    return tuple(changes)


def _found(session: Session, regrade: Regrade) -> Sequence[_Known]:
    """What is known of submissions of people who may stand on a board."""
    query = (
        select(
            RegradeItem.moves, RegradeItem.new_verdict, RegradeItem.new_ratio, RegradeItem.new_low,
            RegradeItem.new_high, Submission.id, Submission.user_id, Submission.lane, Submission.uploaded_at,
            AssignmentVersion.grading_hash.label("graded_by"), func.coalesce(Result.settled, true()).label("settled"),
        )
        .join(Submission, Submission.id == RegradeItem.submission_id)
        .join(AssignmentVersion, AssignmentVersion.id == Submission.version_id)
        .outerjoin(Result, Result.id == RegradeItem.result_id)
        .join(User, User.id == Submission.user_id)
        .join(Enrolment, enrolled())
        .where(RegradeItem.regrade_id == regrade.id, RegradeItem.state == RegradeItemState.found, *may_stand())
    )  # fmt: skip
    return session.execute(query).all()


def _mostly(hashes: Iterable[str]) -> str | None:
    seen = list(hashes)
    return max(sorted(set(seen)), key=seen.count, default=None)


def _valid(session: Session, assignment_id: int, lane: Lane, grading_hash: str) -> list[Standing]:
    """Everything that was graded so and may stand on the board."""
    speed = (Result.ratio, Result.ratio_low, Result.ratio_high)
    query = (
        judged(select(Submission.user_id, Submission.id, Submission.uploaded_at, *speed))
        .join(User, User.id == Submission.user_id)
        .join(Enrolment, enrolled())
        .where(
            Submission.assignment_id == assignment_id,
            Submission.lane == lane,
            AssignmentVersion.grading_hash == grading_hash,
            *may_stand(),
        )
    )
    return [Standing(*row) for row in session.execute(query)]


def _after(staying: Sequence[Standing], items: Sequence[_Known], is_shown: Callable[[_Known], bool]) -> list[Standing]:
    """What would be valid then: what the proposal does not move, and what it found."""
    moving = {one.id for one in items if one.moves}
    kept = [one for one in staying if one.submission_id not in moving]
    return kept + [
        Standing(one.user_id, one.id, one.uploaded_at, one.new_ratio, one.new_low, one.new_high)
        for one in items
        if one.moves and is_shown(one) and _is_valid(one)
    ]


def _is_valid(one: _Known) -> bool:
    """Whether what was found has a speed that nobody doubts."""
    return one.new_verdict is Verdict.passed and one.new_ratio is not None and bool(one.settled)


def _moved(before: Sequence[Standing], after: Sequence[Standing], names: Mapping[int, str]) -> tuple[Moved, ...]:
    old, new = _places(before), _places(after)
    gone = _records(before) - _records(after)
    lost = [one.user_id for one in before if one.submission_id in gone]
    moved = [
        Moved(names[user], old.get(user), new.get(user), lost.count(user))
        for user in old.keys() | new.keys()
        if old.get(user) != new.get(user) or user in lost
    ]
    return tuple(sorted(moved, key=_gravity))


def _gravity(one: Moved) -> tuple[bool, bool, int, str]:
    """Who leaves first, then who loses a record, then who loses places."""
    places = (one.after or 0) - (one.before or 0) if one.before and one.after else 0
    return one.before is None or one.after is not None, not one.records_lost, -places, one.name


def _places(valid: Iterable[Standing]) -> dict[int, int]:
    """Each student's rank, by the best of theirs."""
    order = sorted(valid, key=lambda one: (one.ratio, one.uploaded_at, one.submission_id))
    best = {one.user_id: one for one in reversed(order)}
    entries = [one for one in order if best[one.user_id] is one]
    return {one.user_id: rank for one, rank in zip(entries, ranks([(e.low, e.high) for e in entries]), strict=True)}


def _records(valid: Iterable[Standing]) -> set[int]:
    """The submissions that were faster than every one handed in before."""
    found, least = set(), float("inf")
    for one in sorted(valid, key=lambda one: (one.uploaded_at, one.submission_id)):
        if one.ratio < least:
            least = one.ratio
            found.add(one.submission_id)
    return found


def _names(session: Session, ids: Iterable[int]) -> Mapping[int, str]:
    rows = session.execute(select(User.id, User.name).where(User.id.in_(sorted(ids))))
    return {row.id: row.name for row in rows}
