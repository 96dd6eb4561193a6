"""What pages, the API and exports show of proposals. It changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy import ColumnElement, Select, and_, case, func, select
from sqlalchemy.orm import Session, joinedload

from autograder import codec
from server.models import (
    AssignmentVersion,
    Grade,
    Regrade,
    RegradeItem,
    RegradeItemState,
    RegradeState,
    Submission,
    Why,
)
from server.regrades.selection import Selection

PAGE = 100
SHOWN = 0.005
"""Points that differ by less look the same."""
FEW = 3
"""From so few nobody can say how long the rest takes."""
_DONE = (
    RegradeItemState.found, RegradeItemState.failed, RegradeItemState.applied, RegradeItemState.kept,
    RegradeItemState.conflict, RegradeItemState.rolled_back, RegradeItemState.withdrawn,
)  # fmt: skip


class Show(StrEnum):
    """Which submissions of a proposal are listed."""

    all = "all"
    raised = "raised"
    lowered = "lowered"
    same = "same"
    """Their points would be as they are."""
    kept = "kept"
    """What was found is worse, and what counts goes on to count."""
    noise = "noise"
    trouble = "trouble"
    """Failed on our side, or in conflict."""
    open = "open"


@dataclass(frozen=True)
class Counts:
    """How many submissions of a proposal are where, and what would become of them.

    Attributes:
        passed_over: by a roll-back: they were applied, and are in conflict now.
    """

    total: int
    done: int
    queued: int
    waiting: int
    passed_over: int
    by_show: Mapping[Show, int]
    by_why: Mapping[Why, int]
    by_state: Mapping[RegradeItemState, int]

    @property
    def failed(self) -> int:
        """Ours."""
        return self.by_state.get(RegradeItemState.failed, 0)

    @property
    def conflicts(self) -> int:
        """Not any more what they were compared with."""
        return self.by_state.get(RegradeItemState.conflict, 0)

    @property
    def applied(self) -> int:
        """What was found of them counts."""
        return self.by_state.get(RegradeItemState.applied, 0)


@dataclass(frozen=True)
class Listed:
    """A proposal in a list, or at the head of its page."""

    row: Regrade
    counts: Counts

    @property
    def selection(self) -> Selection:
        """Which submissions it is about."""
        return codec.from_json(Selection, self.row.selection)

    def left_s(self, now: datetime) -> float | None:
        """About how many seconds until it is ready, at the pace so far; `None` where nobody can say."""
        row, left = self.row, self.counts.queued + self.counts.waiting
        if row.state is not RegradeState.running or row.started_at is None or self.counts.done < FEW or not left:
            return None
        return (now - row.started_at).total_seconds() / self.counts.done * left


@dataclass(frozen=True)
class Line:
    """One submission of a proposal, and whether its student's grade is set by hand anyway."""

    item: RegradeItem
    overridden: bool

    @property
    def change(self) -> float | None:
        """In points; `None` where there is nothing to compare."""
        old, new = self.item.before_points, self.item.new_points
        return None if old is None or new is None else new - old


def listed(session: Session, course_id: int, *, most: int = PAGE) -> list[Listed]:
    """The newest proposals of a course."""
    query = select(Regrade).where(Regrade.course_id == course_id).order_by(Regrade.id.desc()).limit(most)
    rows = session.scalars(_with_names(query)).all()
    counts = _counts(session, [row.id for row in rows])
    return [Listed(row, counts[row.id]) for row in rows]


def one(session: Session, regrade: Regrade) -> Listed:
    """A proposal with its counts."""
    query = _with_names(select(Regrade).where(Regrade.id == regrade.id))
    row = session.scalars(query.execution_options(populate_existing=True)).one()
    return Listed(row, _counts(session, [row.id])[row.id])


def versions(session: Session, assignment_id: int) -> Sequence[AssignmentVersion]:
    """Of an assignment, the newest first."""
    query = select(AssignmentVersion).where(AssignmentVersion.assignment_id == assignment_id)
    return session.scalars(query.order_by(AssignmentVersion.number.desc())).all()


def lines(session: Session, regrade: Regrade, show: Show, *, page: int = 1) -> list[Line]:
    """One page of its submissions, the largest changes first."""
    return [_line(row) for row in session.execute(_lines(regrade, show).limit(PAGE).offset((page - 1) * PAGE))]


def all_lines(session: Session, regrade: Regrade) -> Iterator[Line]:
    """All of them, for a table."""
    for row in session.execute(_lines(regrade, Show.all).execution_options(yield_per=500)):
        yield _line(row)


def _line(row: tuple[RegradeItem, float | None] | object) -> Line:
    item, override = row  # type: ignore[misc]
    return Line(item, override is not None)


def _lines(regrade: Regrade, show: Show) -> Select[RegradeItem, float | None]:
    change = func.abs(func.coalesce(RegradeItem.new_points, 0.0) - func.coalesce(RegradeItem.before_points, 0.0))
    return (
        select(RegradeItem, Grade.override_points)
        .join(Submission, Submission.id == RegradeItem.submission_id)
        .outerjoin(Grade, (Grade.user_id == RegradeItem.user_id) & (Grade.assignment_id == Submission.assignment_id))
        .where(RegradeItem.regrade_id == regrade.id, _shown(show))
        .options(joinedload(RegradeItem.submission), joinedload(RegradeItem.user))
        .order_by(change.desc(), RegradeItem.submission_id)
    )


def _with_names(query: Select[Regrade]) -> Select[Regrade]:
    return query.options(joinedload(Regrade.assignment), joinedload(Regrade.version), joinedload(Regrade.actor))


def _shown(show: Show) -> ColumnElement[bool]:
    change = func.coalesce(RegradeItem.new_points, 0.0) - func.coalesce(RegradeItem.before_points, 0.0)
    known = RegradeItem.why.is_not(None)
    conditions = {
        Show.all: RegradeItem.id.is_not(None),
        Show.raised: and_(known, change >= SHOWN),
        Show.lowered: and_(known, change <= -SHOWN),
        Show.same: and_(known, change > -SHOWN, change < SHOWN),
        Show.kept: and_(known, RegradeItem.moves.is_(False), RegradeItem.why.not_in((Why.unchanged, Why.within_noise))),
        Show.noise: RegradeItem.why == Why.within_noise,
        Show.trouble: RegradeItem.state.in_((RegradeItemState.failed, RegradeItemState.conflict)),
        Show.open: RegradeItem.state.in_((RegradeItemState.waiting, RegradeItemState.queued)),
    }
    return conditions[show]


def _counts(session: Session, ids: Sequence[int]) -> Mapping[int, Counts]:
    """Of several proposals, in two queries."""
    mine = RegradeItem.regrade_id.in_(ids)
    grouped = (RegradeItem.regrade_id, RegradeItem.state, RegradeItem.why, RegradeItem.applied_at.is_not(None))
    rows = session.execute(select(*grouped, func.count()).where(mine).group_by(*grouped)).all()
    sums = [func.sum(case((_shown(show), 1), else_=0)) for show in Show]
    shown = {
        row[0]: {show: int(row[index] or 0) for index, show in enumerate(Show, start=1)}
        for row in session.execute(select(RegradeItem.regrade_id, *sums).where(mine).group_by(RegradeItem.regrade_id))
    }
    return {one: _count([row for row in rows if row[0] == one], shown.get(one, {})) for one in ids}


def _count(rows: Sequence[tuple[int, RegradeItemState, Why | None, bool, int]], shown: Mapping[Show, int]) -> Counts:
    by_state: dict[RegradeItemState, int] = {}
    by_why: dict[Why, int] = {}
    for _, state, why, _, count in rows:
        by_state[state] = by_state.get(state, 0) + count
        if why is not None:
            by_why[why] = by_why.get(why, 0) + count
    return Counts(
        total=sum(by_state.values()),
        done=sum(by_state.get(state, 0) for state in _DONE),
        queued=by_state.get(RegradeItemState.queued, 0),
        waiting=by_state.get(RegradeItemState.waiting, 0),
        passed_over=sum(row[-1] for row in rows if row[1] is RegradeItemState.conflict and row[3]),
        by_show=shown,
        by_why=by_why,
        by_state=by_state,
    )
