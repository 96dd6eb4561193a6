"""What staff reject lends its samples to nobody: they lie apart from its pool, and come back when it counts again.

Its pools keep their names. Where its samples of each lie follows from its review (`pool_names.pool_for`); here they are
moved when the review changes, and whoever is in those pools has the numbers that follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import exists, select, update
from sqlalchemy.orm import Session

from autograder import codec
from autograder.contract import GradeResult, Review
from autograder.samples import pooled
from server.grading.pool_names import lock_pool, pool_apart
from server.grading.sample_sets import Pool, read_pool, update_one, update_pool
from server.models import Attempt, RegradeItem, Result, Sampling, Submission


def follow_review(session: Session, submission: Submission, *, now: datetime) -> None:
    """Let its samples lie where its review says they do; its row is locked, and it has a result."""
    is_out = submission.review is Review.rejected
    for name in _pools(session, submission):
        lock_pool(session, name)
        apart = pool_apart(submission, name)
        moved = _move(session, submission, *((name, apart) if is_out else (apart, name)))
        # Who comes back follows the pool, even one that took none of its samples.
        if moved or not is_out:
            update_pool(session, name, now=now)
    if is_out and submission.pool is not None:
        update_one(session, submission, _own(session, submission), now)


def put_apart(session: Session, *, now: datetime) -> int:
    """Take out of its pool what was rejected before rejecting did so; how many submissions."""
    inside = exists().where(
        Attempt.submission_id == Submission.id, Sampling.attempt_id == Attempt.id, Sampling.pool == Submission.pool
    )
    query = (
        select(Submission)
        .where(Submission.review == Review.rejected, Submission.result_id.is_not(None), inside)
        .order_by(Submission.id)
        .limit(1)
        .with_for_update(skip_locked=True, of=Submission)
    )
    # One in a transaction, as staff decide about one: two would be locked in an order that somebody else has not.
    rows = session.scalars(query.execution_options(populate_existing=True)).all()
    for row in rows:
        follow_review(session, row, now=now)
    return len(rows)


def _pools(session: Session, submission: Submission) -> Sequence[str]:
    """Every pool that it has samples in, or had before a regrade, or would have by one; in the order of locking."""
    query = select(RegradeItem.pool, RegradeItem.before).where(RegradeItem.submission_id == submission.id)
    of_items = ((pool, before.get("pool")) for pool, before in session.execute(query))
    names = {submission.pool, *(name for pair in of_items for name in pair)}
    return sorted(name for name in names if name is not None)


def _move(session: Session, submission: Submission, old: str, new: str) -> int:
    own = select(Attempt.id).where(Attempt.submission_id == submission.id)
    moved = update(Sampling).where(Sampling.pool == old, Sampling.attempt_id.in_(own)).values(pool=new)
    return len(session.scalars(moved.returning(Sampling.id)).all())


def _own(session: Session, submission: Submission) -> Pool:
    """Its own samples as a pool; where its pool was full and took none, those of the result that counts."""
    pool = read_pool(session, submission)
    if pool.attempts:
        return pool
    found = codec.from_json(GradeResult, session.get_one(Result, submission.result_id).payload)
    cases = {item.case: pooled((item,)) for item in found.measurements if item.pairs}
    return Pool(1, cases) if cases else pool
