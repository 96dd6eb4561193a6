"""Grading once more what counts, on another node where there is one, when nobody else waits.

Who stands on a leaderboard is confirmed once. Every night there is a round over the leaderboards: whoever stands on
top is graded once more, with fresh seeds, until that has happened often enough. A round is a row of `confirm_nights`;
whom it has queued already says `confirmed_at`, so that one that was broken off goes on where it was. What a node
measured while it was sick is graded once more as well. All of it has its grade meanwhile: the new samples are added to
the pool, and if it does not pass it is held until a person has looked (`server.grading.after_result`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import datetime, timedelta
from itertools import groupby

from sqlalchemy import Select, func, or_, select, tuple_
from sqlalchemy.orm import Session, load_only

from autograder.contract import Lane, State
from server.grading.after_result import measuring_work
from server.grading.lock import lock_submission
from server.grading.ranking import EVERYTHING, Boards, outline, ranks
from server.grading.requeue import back_in_line, first_work
from server.grading.results import manifest_of
from server.grading.states import FINAL
from server.models import Assignment, AssignmentVersion, Attempt, ConfirmNight, Line, Node, Result, Sampling, Submission

CONFIRMED = tuple(lane for lane in Lane if lane is not Lane.cpu)
"""On these lanes. Times of the CPU lane are practice."""
CONFIRM_LIMIT = 20
"""So many at once stand in the queue to be confirmed; the rest is the next look's."""
AGAIN_AFTER = timedelta(hours=20)
"""Between a first confirmation that no node ended and the next try."""
NIGHT_BEGINS = timedelta(hours=2)
"""After midnight, UTC."""
HEARD_AFTER = timedelta(minutes=1)
"""A result counts as finished when it is recorded, a little after its node sent it."""
TOP = 5
TOP_CONFIRMATIONS = 3
"""Who has one of the first ranks of a leaderboard is confirmed so often, once in a night."""
MOST_OF_A_BOARD = 10
"""So many of a board at most in one night: any number may share a rank."""


def confirm_due(session: Session, *, now: datetime) -> int:
    """Put into the queue what is to be confirmed for the first time, then what is tonight's; how many."""
    free = room(session)
    if free <= 0:
        return 0
    boards = confirmed_boards(session)
    found = session.scalars(_due(now, boards).limit(free)).all()
    first = sum(_confirm(session, item, now, check_too=True) for item in found)
    return first + _tonight(session, now, free - first, boards)


def night_of(now: datetime) -> datetime:
    """When the night began whose round is on at this time."""
    shifted = now - NIGHT_BEGINS
    return shifted.replace(hour=0, minute=0, second=0, microsecond=0) + NIGHT_BEGINS


def confirm_top(session: Session, course_id: int, *, now: datetime, top: int = TOP) -> int:
    """Put the first ranks of a course's boards into the queue now, however often they were confirmed; how many."""
    own = session.scalars(select(Assignment.id).where(Assignment.course_id == course_id)).all()
    tops = _tops(session, top, confirmed_boards(session), own)
    return sum(_confirm(session, item, now, check_too=True) for item in tops)


def room(session: Session) -> int:
    """How many more may wait in the line of confirmations."""
    waiting = select(func.count()).where(Submission.line == Line.confirm, Submission.state.not_in(FINAL))
    return CONFIRM_LIMIT - session.scalars(waiting.select_from(Submission)).one()


def _tonight(session: Session, now: datetime, free: int, boards: Collection[tuple[int, Lane]]) -> int:
    """Go on with the night's round, as far as there is room."""
    begins = night_of(now)
    night = session.scalar(select(ConfirmNight).where(ConfirmNight.night_at == begins).with_for_update())
    if night is None:
        night = ConfirmNight(night_at=begins, queued=0)
        session.add(night)
    if night.finished_at is not None or free <= 0:
        return 0
    rested = or_(Submission.confirmed_at.is_(None), Submission.confirmed_at < begins)
    due = session.scalars(
        select(Submission.id).where(
            Submission.id.in_(_tops(session, TOP, boards)),
            Submission.state == State.done,
            Submission.confirmations < TOP_CONFIRMATIONS,
            rested,
        )
    ).all()
    queued = sum(_confirm(session, item, now, check_too=True) for item in due[:free])
    night.queued += queued
    if len(due) <= free:
        night.finished_at = now
    return queued


def _tops(
    session: Session, top: int, boards: Collection[tuple[int, Lane]], assignment_ids: Collection[int] | None = None
) -> list[int]:
    """Ids of the submissions with the first ranks of every board that is confirmed, as readers see those ranks."""
    rows = session.execute(outline(EVERYTHING, Boards(assignment_ids, CONFIRMED))).all()
    return [number for place, board in groupby(rows, key=lambda row: (row.assignment_id, Lane(row.lane)))
            if place in boards
            for number in _firsts([(row.id, row.ratio_low, row.ratio_high) for row in board], top)]  # fmt: skip


def confirmed_boards(session: Session) -> set[tuple[int, Lane]]:
    """Assignment and lane of every board that is confirmed: times that give no points nobody takes once more."""
    current = (
        select(Assignment.id, AssignmentVersion)
        .join(AssignmentVersion, AssignmentVersion.id == Assignment.version_id)
        .options(load_only(AssignmentVersion.bundle_hash))
    )
    return {
        (assignment_id, lane)
        for assignment_id, version in session.execute(current)
        for lane in CONFIRMED
        if (policy := manifest_of(version).policy(lane)) is not None and policy.speed_points
    }


def _firsts(board: list[tuple[int, float, float]], top: int) -> Iterator[int]:
    places = ranks([(low, high) for _, low, high in board])
    first = [number for (number, _, _), rank in zip(board, places, strict=True) if rank <= top]
    yield from first[:MOST_OF_A_BOARD]


def measure_suspects_again(session: Session, *, now: datetime) -> int:
    """Put into the queue what nodes measured while they were sick, by what they said of themselves; how many."""
    sick = session.scalars(select(Node).where(Node.suspect_handled.is_(False)).with_for_update(skip_locked=True)).all()
    count = 0
    for node in sick:
        count += sum(_confirm(session, item, now, check_too=False) for item in _measured_by(session, node))
        node.suspect_handled = True
    return count


def standing_on(boards: Collection[tuple[int, Lane]]) -> Select[Submission]:
    """Submissions that are over and stand on one of these boards, the oldest first."""
    standing = outline(EVERYTHING, Boards(lanes=CONFIRMED)).subquery()
    return (
        select(Submission)
        .join(standing, standing.c.id == Submission.id)
        # Before it is cut to the room there is: what cannot be confirmed would fill that for ever.
        .where(tuple_(Submission.assignment_id, Submission.lane).in_(boards), Submission.state == State.done)
        .order_by(Submission.id)
    )


def _due(now: datetime, boards: Collection[tuple[int, Lane]]) -> Select[int]:
    """Ids of submissions that stand on a board that is confirmed and never were."""
    rested = or_(Submission.confirmed_at.is_(None), Submission.confirmed_at < now - AGAIN_AFTER)
    return standing_on(boards).with_only_columns(Submission.id).where(Submission.confirmations == 0, rested)


def _measured_by(session: Session, node: Node) -> Iterable[int]:
    if node.suspect_since_at is None or node.suspect_until_at is None:
        return []
    measured = (
        select(Attempt.submission_id)
        .join(Sampling, Sampling.attempt_id == Attempt.id)
        .where(
            Attempt.node_id == node.id,
            Attempt.finished_at >= node.suspect_since_at,
            Attempt.finished_at <= node.suspect_until_at + HEARD_AFTER,
        )
        .distinct()
    )
    return session.scalars(measured.order_by(Attempt.submission_id)).all()


def _confirm(session: Session, submission_id: int, now: datetime, *, check_too: bool) -> bool:
    """Queue it, if it is still over; one that waits or runs gets new samples anyway."""
    row = lock_submission(session, submission_id, skip_locked=True)
    if row is None or row.state is not State.done:
        return False
    manifest = manifest_of(session.get_one(AssignmentVersion, row.version_id))
    policy = manifest.policy(row.lane)
    if policy is None or not policy.speed_points:
        return False
    last = select(Attempt.node_id).join(Result, Result.attempt_id == Attempt.id).where(Result.id == row.result_id)
    row.avoid_node_id = session.scalar(last)
    row.work = first_work(manifest, row.lane, row.mode) if check_too else measuring_work(manifest, row)
    row.confirmed_at = now
    back_in_line(row, Line.confirm, now=now)
    return True
