"""What is done for a proposal bit by bit: put into the queue, compared, applied, rolled back.

Every bit is one transaction that holds the proposal's row, and what is left to do stands in the items: whoever comes
next goes on, in whichever process. So a class is never half forgotten, and no transaction holds a whole class.

Lock order: the proposal's row, then submissions in the order of their ids. Whoever records or claims holds a submission
and waits for no proposal.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import exists, func, select
from sqlalchemy.orm import Session, undefer

from autograder import codec
from autograder.contract import GradeResult, State
from autograder.scores import FORMULA_VERSION, Score, score
from server.courses import courses
from server.grading.compare import Stand
from server.grading.lock import lock_submission
from server.grading.pool_names import pool_by, pool_for
from server.grading.regrade_attempts import compare_result, compare_with, place_of, target_of
from server.grading.requeue import back_in_line, first_work
from server.grading.sample_sets import Pool, let_follow, read_pool, read_pools, update_pool, with_pool
from server.models import (
    Assignment,
    Line,
    Regrade,
    RegradeItem,
    RegradeItemState,
    RegradeKind,
    RegradeState,
    Result,
    Submission,
)
from server.regrades.moving import apply_item, roll_back_item
from server.regrades.news import tell_students

FEED = 20
"""So many of a proposal stand in the queue at once: the queue stays short, and a pause is heard soon."""
BATCH = 50
"""So many are compared, applied or rolled back in one transaction."""
ACTIVE = (RegradeState.running, RegradeState.applying, RegradeState.rolling_back)
OPEN = (RegradeItemState.waiting, RegradeItemState.queued)


def active_ids(session: Session) -> Sequence[int]:
    """Proposals for which there may be something to do."""
    return session.scalars(select(Regrade.id).where(Regrade.state.in_(ACTIVE)).order_by(Regrade.id)).all()


def step_one(session: Session, regrade_id: int, *, now: datetime) -> int:
    """Do the next bit for a proposal, unless somebody else does something to it; how many submissions."""
    query = select(Regrade).where(Regrade.id == regrade_id, Regrade.state.in_(ACTIVE))
    regrade = session.scalar(query.with_for_update(skip_locked=True).execution_options(populate_existing=True))
    return step(session, regrade, now=now) if regrade is not None else 0


def step(session: Session, regrade: Regrade, *, now: datetime) -> int:
    """Do the next bit; the proposal's row is locked. How many submissions it was about."""
    match regrade.state:
        case RegradeState.running:
            return _run(session, regrade, now)
        case RegradeState.applying:
            return _apply(session, regrade, now)
        case RegradeState.rolling_back:
            return _roll_back(session, regrade, now)
        case _:
            return 0


def step_through(session: Session, regrade: Regrade, *, now: datetime) -> None:
    """Do all that can be done at once, in this transaction; for the console."""
    while step(session, regrade, now=now):
        session.flush()


def count(session: Session, regrade: Regrade, *states: RegradeItemState) -> int:
    """How many of its items are in these states."""
    query = select(func.count()).select_from(RegradeItem)
    return session.scalars(query.where(RegradeItem.regrade_id == regrade.id, RegradeItem.state.in_(states))).one()


def _run(session: Session, regrade: Regrade, now: datetime) -> int:
    done = _feed(session, regrade, now) if regrade.kind is RegradeKind.rerun else _score(session, regrade, now)
    session.flush()
    left = exists().where(RegradeItem.regrade_id == regrade.id, RegradeItem.state.in_(OPEN))
    if not session.scalar(select(left)):
        _agree_on_pools(session, regrade)
        regrade.state, regrade.ready_at = RegradeState.ready, now
    return done


# --- by grading again ------------------------------------------------------------------------------------------------


def _feed(session: Session, regrade: Regrade, now: datetime) -> int:
    """Put the next ones into the queue; what waits or runs for something else has its turn when that is over."""
    room = FEED - count(session, regrade, RegradeItemState.queued)
    if room <= 0:
        return 0
    query = (
        select(RegradeItem)
        .join(Submission, Submission.id == RegradeItem.submission_id)
        .where(
            RegradeItem.regrade_id == regrade.id,
            RegradeItem.state == RegradeItemState.waiting,
            Submission.state.in_((State.done, State.failed, State.cancelled)),
        )
        .order_by(RegradeItem.submission_id)
        .limit(room)
    )
    return sum(_begin(session, item, now) for item in session.scalars(query).all())


def _begin(session: Session, item: RegradeItem, now: datetime) -> bool:
    submission = lock_submission(session, item.submission_id, skip_locked=True)
    if submission is None or submission.state not in {State.done, State.failed, State.cancelled}:
        return False
    manifest = courses.spec_of(target_of(session, item))
    if submission.state is State.cancelled:
        item.state, item.note = RegradeItemState.withdrawn, "Its student has cancelled it."
    elif manifest.policy(submission.lane) is None or submission.language not in manifest.languages:
        item.state = RegradeItemState.failed
        item.note = f"This version is not graded in {submission.language} on {submission.lane}."
    else:
        item.queue, item.stopped = place_of(submission), False
        item.state = RegradeItemState.queued
        submission.work = first_work(manifest, submission.lane, submission.mode)
        submission.avoid_node_id = None
        back_in_line(submission, Line.regrade, now=now)
    return True


def _agree_on_pools(session: Session, regrade: Regrade) -> None:
    """Identical sources of one person were measured one after another: all of them have all of those samples."""
    found = (RegradeItem.regrade_id == regrade.id, RegradeItem.state == RegradeItemState.found)
    shared = select(RegradeItem.pool).where(*found).group_by(RegradeItem.pool).having(func.count() > 1)
    query = select(RegradeItem).where(*found, RegradeItem.pool.in_(shared), RegradeItem.result_id.is_not(None))
    for item in session.scalars(query.order_by(RegradeItem.id)).all():
        _agree(session, item)


def _agree(session: Session, item: RegradeItem) -> None:
    row, submission = session.get_one(Result, item.result_id), session.get_one(Submission, item.submission_id)
    version = target_of(session, item)
    if item.pool is None or row.ratio is None:
        return
    names = (pool_by(session, submission, version), item.pool)
    pool = read_pools(session, [pool_for(submission, name) for name in names])
    if pool.attempts != row.pooled_attempts:
        let_follow(row, courses.spec_of(version), submission.lane, pool)
        compare_result(session, item, submission, row)


# --- by another formula ----------------------------------------------------------------------------------------------


def _score(session: Session, regrade: Regrade, now: datetime) -> int:
    """Work out the next ones from their stored samples."""
    query = (
        select(RegradeItem)
        .where(RegradeItem.regrade_id == regrade.id, RegradeItem.state == RegradeItemState.waiting)
        .order_by(RegradeItem.submission_id)
        .limit(BATCH)
    )
    items = session.scalars(query).all()
    for item in items:
        _score_one(session, item, session.get_one(Submission, item.submission_id), now)
    return len(items)


def _score_one(session: Session, item: RegradeItem, submission: Submission, now: datetime) -> None:
    item.found_at = now
    if submission.result_id is None:
        item.state, item.note = RegradeItemState.withdrawn, "It has no result that could be scored."
        return
    row = session.get_one(Result, submission.result_id, options=[undefer(Result.payload)])
    version = target_of(session, item)
    manifest, pool = courses.spec_of(version), read_pool(session, submission)
    assignment = session.get_one(Assignment, submission.assignment_id)
    counted = courses.is_counted(assignment, version, submission.lane)
    whole = with_pool(codec.from_json(GradeResult, row.payload), pool)
    scored = score(manifest, whole, submission.lane, counted=counted)
    most = manifest.points.correctness
    share = scored.correctness_points / most if most else 1.0
    found = Stand(row.verdict, share, scored.correctness_points, scored.speed_points, scored.speed)
    compare_with(session, item, submission, found, same_samples=True)
    scored_by = version.id if version.id != submission.version_id else None
    item.scores = _scores(scored, pool, scored_by)


def _scores(scored: Score, pool: Pool, scored_by: int | None) -> dict[str, object]:
    speed = scored.speed
    return {
        "correctness_points": scored.correctness_points,
        "speed_points": scored.speed_points,
        "speed_floor": None,
        "ratio": speed.ratio if speed else None,
        "ratio_low": speed.low if speed else None,
        "ratio_high": speed.high if speed else None,
        "time_us": speed.time_us if speed else None,
        "pooled": [codec.to_json(case) for case in pool.cases.values()],
        "pooled_attempts": pool.attempts,
        "formula_version": FORMULA_VERSION,
        "scored_version_id": scored_by,
    }


# --- applied and rolled back -----------------------------------------------------------------------------------------


def _apply(session: Session, regrade: Regrade, now: datetime) -> int:
    batch = _batch(session, regrade, RegradeItemState.found)
    for item, submission in batch:
        apply_item(session, item, submission, regrade.kind, now=now)
    session.flush()
    tell_students(session, regrade, [one for one in batch if one[0].state is RegradeItemState.applied], back=False)
    if len(batch) < BATCH:
        regrade.state, regrade.ended_at = RegradeState.applied, now
    return len(batch)


def _roll_back(session: Session, regrade: Regrade, now: datetime) -> int:
    batch = _batch(session, regrade, RegradeItemState.applied)
    left = [roll_back_item(session, item, submission, now=now) for item, submission in batch]
    session.flush()
    for pool in sorted({name for name in left if name is not None}):
        update_pool(session, pool, now=now)
    tell_students(session, regrade, [one for one in batch if one[0].state is RegradeItemState.rolled_back], back=True)
    if len(batch) < BATCH:
        regrade.state, regrade.ended_at = RegradeState.rolled_back, now
    return len(batch)


def _batch(session: Session, regrade: Regrade, state: RegradeItemState) -> Sequence[tuple[RegradeItem, Submission]]:
    """The next items in this state with their submissions, all of these locked before anything is changed."""
    query = select(RegradeItem).where(RegradeItem.regrade_id == regrade.id, RegradeItem.state == state)
    items = session.scalars(query.order_by(RegradeItem.submission_id).limit(BATCH)).all()
    locked = session.scalars(
        select(Submission)
        .where(Submission.id.in_([item.submission_id for item in items]))
        .order_by(Submission.id)
        .with_for_update()
        .execution_options(populate_existing=True)
    ).all()
    by_id = {submission.id: submission for submission in locked}
    return [(item, by_id[item.submission_id]) for item in items]
