"""One kept place per student: a newer submission takes over the place of the older one that still waits.

At the upload, older ones of the same person, assignment, lane and late charge that have no verdict yet are superseded:
the new one gets their place, they are graded later, at the lowest priority. Three rules keep that from hurting anybody.

- A place is kept from the first that plausibly compiles: noise reserves none, and noise takes none from a version that
  can be graded. What turns out not to compile gives back the place that it took.
- A person holds one taken-over place in a lane at a time. Who has one for another assignment keeps both submissions.
- What passed its check and waits for its times is superseded only by a newer one that has passed its check as well.

Lock order: whoever holds the person's row may wait for that person's submissions; whoever holds a submission waits for
no other one, and passes over those that somebody else holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Select, and_, exists, select
from sqlalchemy.orm import Session, undefer

from server.courses.deadlines import Deadlines
from server.grading.states import submission_moves
from server.grading.syntax_check import compiles
from server.models import Line, Mode, State, Submission, Work


@dataclass(frozen=True)
class Older:
    """One that still waits for its verdict, as what it would mean to supersede it."""

    id: int
    place_at: datetime
    compiles: bool


@dataclass(frozen=True)
class Takeover:
    """Who is superseded, and the place that the new one gets; `None`: its own."""

    superseded: frozenset[int]
    place_at: datetime | None


def takeover(older: Sequence[Older], *, new_compiles: bool, holds_another: bool) -> Takeover:
    """Whom a new submission supersedes; pure.

    Args:
        older: of the same person, assignment, lane and late charge, waiting, without a verdict.
        holds_another: the person has a taken-over place for another assignment of the lane.
    """
    good = [item for item in older if item.compiles]
    if good and (holds_another or not new_compiles):
        return Takeover(frozenset(item.id for item in older if not item.compiles), None)
    place = min((item.place_at for item in good), default=None)
    return Takeover(frozenset(item.id for item in older), place)


def supersede_older(
    session: Session, new: Submission, *, entries: Sequence[str], dates: Deadlines
) -> Sequence[Submission]:
    """Let a new submission, just added, supersede what it may; its person's row has to be locked.

    Args:
        entries: names of the functions that the assignment asks for.
        dates: of the assignment, for the person.
    """
    rows = [row for row in _older(session, new) if _same_charge(row, new, dates)]
    if not rows:
        return []
    older = [Older(row.id, row.place_at, compiles(row.source, row.language, *entries)) for row in rows]
    decided = takeover(
        older, new_compiles=compiles(new.source, new.language, *entries), holds_another=_holds_another(session, new)
    )
    if decided.place_at is not None:
        new.place_at = min(new.place_at, decided.place_at)
    superseded = [row for row in rows if row.id in decided.superseded]
    for row in superseded:
        _supersede(row, new)
    return superseded


def supersede_measuring(session: Session, new: Submission, *, dates: Deadlines) -> None:
    """Let one that passed its check take over the place of an older one that waits for its times; its row is locked."""
    if _holds_another(session, new):
        return
    query = _own(new).where(Submission.line == Line.measuring, Submission.id < new.id).order_by(Submission.id)
    for row in session.scalars(query.with_for_update(skip_locked=True).execution_options(populate_existing=True)):
        if _same_charge(row, new, dates):
            new.place_at = min(new.place_at, row.place_at)
            _supersede(row, new)


def give_back(session: Session, gone: Submission, *, skip_locked: bool = False) -> Sequence[Submission]:
    """Give what `gone` superseded its place back, or leave it to whoever superseded `gone`.

    Args:
        skip_locked: leave out what another transaction holds, for callers that hold a submission's row.
    """
    query = (
        select(Submission)
        .where(
            Submission.superseded_by_id == gone.id,
            # What is graded once more has had its turn.
            Submission.line == Line.superseded,
            Submission.state.in_((State.superseded, State.running)),
        )
        .order_by(Submission.id)
        .with_for_update(skip_locked=skip_locked)
        .execution_options(populate_existing=True)
    )
    rows = session.scalars(query).all()
    for row in rows:
        row.superseded_by_id = gone.superseded_by_id
        row.revision += 1
        if gone.superseded_by_id is None:
            _restore(row)
    return rows


def _restore(row: Submission) -> None:
    row.line = Line.measuring if row.work is Work.measure else Line.submission
    if row.state is State.superseded:
        row.state = submission_moves(row.state, State.queued)


def _supersede(row: Submission, new: Submission) -> None:
    row.state = submission_moves(row.state, State.superseded)
    row.line = Line.superseded
    row.superseded_by_id = new.id
    row.revision += 1
    # The same bytes are as suspicious under another number.
    new.suspect = new.suspect or (row.suspect and row.source_hash == new.source_hash)


def _older(session: Session, new: Submission) -> Sequence[Submission]:
    query = _own(new).where(Submission.line == Line.submission, Submission.id != new.id).order_by(Submission.id)
    query = query.options(undefer(Submission.source)).with_for_update()
    return session.scalars(query.execution_options(populate_existing=True)).all()


def _own(new: Submission) -> Select[Submission]:
    return select(Submission).where(
        _same_queue(new), Submission.assignment_id == new.assignment_id, Submission.state == State.queued
    )


def _same_queue(new: Submission) -> ColumnElement[bool]:
    return and_(Submission.user_id == new.user_id, Submission.lane == new.lane, Submission.mode == Mode.submission)


def _same_charge(one: Submission, other: Submission, dates: Deadlines) -> bool:
    return dates.days_late(one.uploaded_at) == dates.days_late(other.uploaded_at)


def _holds_another(session: Session, new: Submission) -> bool:
    """Whether the person has a place that is not their upload's own, for another assignment; running, it may return."""
    held = exists().where(
        _same_queue(new),
        Submission.assignment_id != new.assignment_id,
        Submission.state.in_((State.queued, State.running)),
        Submission.line.in_((Line.submission, Line.measuring)),
        Submission.place_at < Submission.uploaded_at,
    )
    return bool(session.scalar(select(held)))
