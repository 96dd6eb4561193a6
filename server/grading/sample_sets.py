"""Samples of an identical source are one pool: a new attempt's are added, none is ever replaced or left out.

The pool is one person's or one group's, of one assignment as it is graded, one lane and one normal form of a source.
Every submission in it has the pool's numbers, so that handing the same kernel in again moves all of them towards the
truth together and there is no lucky one among them to keep, nor among those of a group's members.

Lock order: whoever adds to a pool holds its submission's row, then the pool's lock; of the pool's other submissions it
waits for none. One that it had to pass over is brought up to date by `refresh_pools`.

Which pool that is says `server.grading.pool_names`; what staff reject is in none (`server.grading.rejected`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import Select, func, or_, select
from sqlalchemy.orm import Session

from autograder import codec
from autograder.assignment import Assignment as Manifest
from autograder.contract import GradeResult, Lane, Measurement, Review, Verdict
from autograder.errors import ContractError
from autograder.samples import PooledCase, counted, pooled
from autograder.scores import FORMULA_VERSION, Speed, speed_fraction, speed_over
from server.courses import courses
from server.grading.grades import set_points
from server.grading.pool_names import lock_pool, pool_for, pool_of
from server.models import AssignmentVersion, Attempt, ChangeReason, Result, Sampling, Submission

MOST_ATTEMPTS = 64
"""A pool of so many attempts is full: its numbers stand, and a new attempt's samples add nothing."""
REFRESH_FOR = timedelta(hours=1)
"""How long after samples came the others of their pool are looked at."""
_NAME_CHARS = 120


@dataclass(frozen=True)
class Pool:
    """What the attempts of a pool found together.

    Attributes:
        cases: the numbers of every case. They are worked out from the samples, those of a single attempt too: so a
            receipt can be checked by whoever has it.
    """

    attempts: int = 0
    cases: Mapping[str, PooledCase] = field(default_factory=dict)


def keep_samples(
    session: Session,
    submission: Submission,
    attempt: Attempt,
    measurements: Iterable[Measurement],
    *,
    now: datetime,
    apart: str | None = None,
) -> None:
    """Add an attempt's samples to its submission's pool, whatever came of the attempt.

    Args:
        apart: another pool to add them to: those of a proposal do not count yet.

    Raises:
        ContractError: a case was measured twice, or a sample is no time.
    """
    taken = [item for item in measurements if item.pairs]
    if len({item.case for item in taken}) != len(taken):
        raise ContractError("a case was measured twice in one attempt")
    name = (apart or pool_of(session, submission)) if taken else None
    if name is None:
        return
    for item in taken:
        pooled((item,))
    lock_pool(session, name)
    if _attempts(session, name) >= MOST_ATTEMPTS:
        return
    session.add_all(
        Sampling(attempt_id=attempt.id, pool=name, case=item.case[:_NAME_CHARS], measurement=codec.to_json(item),
                 created_at=now)
        for item in taken
    )  # fmt: skip
    session.flush()


def read_pool(session: Session, submission: Submission) -> Pool:
    """The pool as it is now; of a rejected submission its own samples."""
    return read_pools(session, [pool_for(submission, submission.pool)] if submission.pool is not None else [])


def read_pools(session: Session, names: Collection[str]) -> Pool:
    """Pools as they are now, as if they were one."""
    attempts = _attempts(session, *names) if names else 0
    if not attempts:
        return Pool()
    cases: dict[str, list[Measurement]] = {}
    for row in session.scalars(select(Sampling).where(Sampling.pool.in_(names)).order_by(Sampling.id)):
        cases.setdefault(row.case, []).append(codec.from_json(Measurement, row.measurement))
    return Pool(attempts, {name: pooled(items) for name, items in cases.items()})


def with_pool(result: GradeResult, pool: Pool) -> GradeResult:
    """A result with the pool's numbers; its own samples stay."""
    found = pool.cases
    measurements = (counted(item, found[item.case]) if item.case in found else item for item in result.measurements)
    return dataclasses.replace(result, measurements=tuple(measurements))


def note_pool(row: Result, pool: Pool) -> None:
    """Write down with a result what its numbers are of."""
    row.pooled = [codec.to_json(item) for item in pool.cases.values()]
    row.pooled_attempts = pool.attempts
    row.formula_version = FORMULA_VERSION


def update_others(session: Session, submission: Submission, pool: Pool, *, now: datetime) -> int:
    """Let the pool's other submissions have its numbers; how many points changed by that."""
    if pool.attempts <= 1 or submission.pool is None or submission.review is Review.rejected:
        return 0
    others = _members(submission.pool).where(Submission.id != submission.id)
    return sum(update_one(session, other, pool, now) for other in session.scalars(others).all())


def update_pool(session: Session, name: str, *, now: datetime) -> int:
    """Let all of a pool have its numbers when samples were taken out of it; how many points changed by that."""
    pool = read_pools(session, [name])
    if not pool.attempts:
        return 0
    return sum(update_one(session, each, pool, now) for each in session.scalars(_members(name)).all())


def _members(pool: str) -> Select[Submission]:
    """Whoever is in a pool with a result, and not rejected; whom somebody else holds is passed over."""
    return (
        select(Submission)
        .where(Submission.pool == pool, Submission.result_id.is_not(None), Submission.review != Review.rejected)
        .order_by(Submission.id)
        .with_for_update(skip_locked=True)
    )


def refresh_pools(session: Session, *, now: datetime) -> int:
    """Bring results up to date that were passed over while their pool grew, or what they count was taken out; how many.

    A roll-back takes something out of a pool, and staff do who reject a submission; clearing brings it back.
    """
    lately = select(Sampling.pool).where(Sampling.created_at > now - REFRESH_FOR)
    # Staff decide at any time: pools that they decided about are few, and looked at for ever.
    decided = select(Submission.pool).where(
        Submission.review.in_((Review.cleared, Review.rejected)), Submission.pool.is_not(None)
    )
    grown = (
        select(Sampling.pool, func.count(Sampling.attempt_id.distinct()).label("attempts"))
        .where(or_(Sampling.pool.in_(lately), Sampling.pool.in_(decided)))
        .group_by(Sampling.pool)
        .subquery()
    )
    behind = (
        select(Submission)
        .join(Result, Result.id == Submission.result_id)
        .join(grown, grown.c.pool == Submission.pool)
        .where(
            Result.pooled_attempts != grown.c.attempts,
            Result.ratio.is_not(None),
            Submission.review != Review.rejected,
        )
        .order_by(Submission.id)
        .with_for_update(skip_locked=True, of=Submission)
    )
    rows = session.scalars(behind).all()
    for row in rows:
        update_one(session, row, read_pool(session, row), now)
    return len(rows)


def update_one(session: Session, submission: Submission, pool: Pool, now: datetime) -> bool:
    """The pool's numbers and what they are worth, if the result that counts had a speed."""
    result = session.get_one(Result, submission.result_id)
    if result.verdict is not Verdict.passed or result.ratio is None:
        return False
    spec = courses.spec_of(session.get_one(AssignmentVersion, result.scored_version_id or submission.version_id))
    let_follow(result, spec, submission.lane, pool)
    submission.revision += 1
    return set_points(session, submission, result, ChangeReason.pooled, now=now)


def let_follow(result: Result, spec: Manifest, lane: Lane, pool: Pool) -> None:
    """Write into a result that passed the pool's numbers and what they are worth."""
    speed, policy = speed_over(pool.cases.values()), spec.policy(lane)
    let_have_speed(result, speed)
    # Some were worked out a digit short.
    complete = result.correctness_points > spec.points.correctness - 1e-9
    # Where times give none, samples change none: what there is was given by counters.
    if policy is None or policy.speed_points:
        result.speed_points = spec.points.speed * speed_fraction(policy, speed.ratio) if policy and complete else 0.0
    keep_floor(result)
    note_pool(result, pool)


def keep_floor(result: Result) -> None:
    """Let it have no fewer speed points than a regrade left standing."""
    result.speed_points = max(result.speed_points, result.speed_floor or 0.0)


def let_have_speed(result: Result, speed: Speed | None) -> None:
    """Write a speed into a result."""
    result.ratio = speed.ratio if speed else None
    result.ratio_low = speed.low if speed else None
    result.ratio_high = speed.high if speed else None
    result.time_us = speed.time_us if speed else None


def speed_in(result: Result) -> Speed | None:
    """The speed that is written in a result."""
    if result.ratio is None or result.ratio_low is None or result.ratio_high is None or result.time_us is None:
        return None
    return Speed(result.ratio, result.ratio_low, result.ratio_high, result.time_us)


def _attempts(session: Session, *pools: str) -> int:
    return session.scalars(select(func.count(Sampling.attempt_id.distinct())).where(Sampling.pool.in_(pools))).one()
