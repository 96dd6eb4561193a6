"""Attempts that are made for a proposal: what they find is written down, and counts for nothing until staff apply it.

A submission of a proposal stands in the queue like any other, in the line of regrades, with the result that it has; the
open item of the proposal says what for. Each of its attempts is a *trial*: it grades by the proposal's version, its
samples go into a pool apart, its result is what the item points at. Then the submission stands again where it stood.

Whoever changes an item in the queue holds its submission's row; the proposal's own row is never waited for here.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from autograder.assignment import Assignment as Manifest
from autograder.assignment import content_hash
from autograder.contract import Review, State, Verdict, Work
from autograder.scores import Speed, speed_fraction
from server.courses import courses
from server.grading.compare import Decision, Stand, Terms, decide
from server.grading.pool_names import pool_by, pool_for
from server.grading.sample_sets import speed_in
from server.grading.states import submission_moves
from server.models import (
    AssignmentVersion,
    Attempt,
    Line,
    Regrade,
    RegradeItem,
    RegradeItemState,
    Result,
    Submission,
    Trial,
)

RESULT_FIELDS = (
    "correctness_points", "speed_points", "speed_floor", "ratio", "ratio_low", "ratio_high", "time_us", "pooled",
    "pooled_attempts", "formula_version", "scored_version_id",
)  # fmt: skip
"""What is worked out of a result's payload and pool, and changes with them."""


def open_item(session: Session, submission: Submission) -> RegradeItem | None:
    """What a submission stands in the queue for, or runs for; `None` where it is nothing of a proposal."""
    if submission.line is not Line.regrade:
        return None
    query = select(RegradeItem).where(
        RegradeItem.submission_id == submission.id, RegradeItem.state == RegradeItemState.queued
    )
    return session.scalar(query.execution_options(populate_existing=True))


def item_of(session: Session, attempt: Attempt) -> RegradeItem | None:
    """The item that an attempt was made for."""
    if attempt.line is not Line.regrade:
        return None
    query = select(RegradeItem).join(Trial, Trial.item_id == RegradeItem.id).where(Trial.attempt_id == attempt.id)
    return session.scalar(query.execution_options(populate_existing=True))


def target_of(session: Session, item: RegradeItem) -> AssignmentVersion:
    """By what it is graded or scored."""
    return session.get_one(AssignmentVersion, item.version_id)


def pool_of_item(session: Session, item: RegradeItem, submission: Submission) -> str:
    """Where the samples of its attempts are until they count: identical sources of one proposal share it."""
    if item.pool is None:
        name = pool_by(session, submission, target_of(session, item))
        item.pool = content_hash(f"{name}\0regrade {item.regrade_id}".encode())
    return pool_for(submission, item.pool)


def place_of(submission: Submission) -> dict[str, Any]:
    """Where a submission stands, as JSON."""
    return {
        "state": submission.state.value,
        "line": submission.line.value,
        "work": submission.work.value,
        "place_at": submission.place_at.isoformat(),
        "attempts_made": submission.attempts_made,
        "remeasured": submission.remeasured,
        "avoid_node_id": submission.avoid_node_id,
    }


def put_back(submission: Submission, place: Mapping[str, Any]) -> None:
    """Let it stand where it stood; its row is locked, and it waits or runs."""
    submission.state = submission_moves(submission.state, State(place["state"]))
    submission.line = Line(place["line"])
    submission.work = Work(place["work"])
    submission.place_at = datetime.fromisoformat(place["place_at"])
    submission.attempts_made = place["attempts_made"]
    submission.remeasured = place["remeasured"]
    submission.avoid_node_id = place["avoid_node_id"]
    submission.phase = None
    submission.revision += 1


def give_up(item: RegradeItem, submission: Submission, reason: str, *, now: datetime) -> None:
    """No attempt ended in a result, which is ours."""
    put_back(submission, item.queue)
    item.state = RegradeItemState.failed
    item.note, item.found_at = reason, now


def withdraw(item: RegradeItem, submission: Submission, *, now: datetime) -> None:
    """Nobody waits for it any more."""
    put_back(submission, item.queue)
    item.state = RegradeItemState.withdrawn
    item.found_at = now


def settle(session: Session, item: RegradeItem, submission: Submission, row: Result, *, now: datetime) -> None:
    """Its result is there: compare them, and let the submission stand where it stood."""
    put_back(submission, item.queue)
    item.result_id = row.id
    item.found_at = now
    compare_result(session, item, submission, row)


def compare_result(session: Session, item: RegradeItem, submission: Submission, row: Result) -> None:
    """Compare what a trial found with what counts now."""
    manifest = courses.spec_of(target_of(session, item))
    compare_with(session, item, submission, stand_of(row, manifest))
    if (row.held or not row.settled) and submission.result_id is not None:
        item.moves, item.speed_floor, item.new_points = False, None, submission.points
        item.note = "Its measurement needs a person: see its findings. Nothing changes until it is graded again."


def compare_with(
    session: Session, item: RegradeItem, submission: Submission, found: Stand, *, same_samples: bool = False
) -> Decision:
    """Note on the item what it is compared with, why they differ, and what applying it would do."""
    counts = session.get(Result, submission.result_id) if submission.result_id is not None else None
    target = target_of(session, item)
    before = _stand_before(session, submission, counts)
    terms = _terms(session, item, submission, before, target, same_samples=same_samples)
    decision = decide(before, found, terms)
    item.before = facts_of(submission, counts)
    item.before_verdict, item.before_points = submission.verdict, submission.points
    item.before_ratio, item.before_low, item.before_high = _numbers(before.speed if before else None)
    item.state, item.why, item.moves = RegradeItemState.found, decision.why, decision.moves
    item.note, item.speed_floor = "", decision.speed_floor
    item.new_verdict = found.verdict
    item.new_ratio, item.new_low, item.new_high = _numbers(found.speed)
    item.new_points = _at_its_review(submission, found, decision) if decision.moves else submission.points
    return decision


def facts_of(submission: Submission, counts: Result | None) -> dict[str, Any]:
    """What counts of a submission now, as JSON: to see whether it is still so, and to give it back."""
    return {
        "result_id": submission.result_id,
        "version_id": submission.version_id,
        "pool": submission.pool,
        "verdict": submission.verdict.value if submission.verdict else None,
        "review": submission.review.value,
        "points": submission.points,
        "confirmations": submission.confirmations,
        "result": {name: getattr(counts, name) for name in RESULT_FIELDS} if counts is not None else None,
    }


def stand_of(row: Result, manifest: Manifest) -> Stand:
    """A result as it is compared; `manifest` is what it was scored by."""
    most = manifest.points.correctness
    return Stand(
        verdict=row.verdict,
        share=row.correctness_points / most if most else float(row.verdict is Verdict.passed),
        correctness_points=row.correctness_points,
        speed_points=row.speed_points,
        speed=speed_in(row),
    )


def _stand_before(session: Session, submission: Submission, counts: Result | None) -> Stand | None:
    if counts is None:
        return None
    version = session.get_one(AssignmentVersion, counts.scored_version_id or submission.version_id)
    return stand_of(counts, courses.spec_of(version))


def _terms(
    session: Session,
    item: RegradeItem,
    submission: Submission,
    before: Stand | None,
    target: AssignmentVersion,
    *,
    same_samples: bool,
) -> Terms:
    manifest = courses.spec_of(target)
    policy = manifest.policy(submission.lane)
    earns = before is not None and before.speed is not None and before.share == 1.0 and policy is not None
    fraction = speed_fraction(policy, before.speed.ratio) if earns and policy and before and before.speed else 0.0
    # Where times give none, what counters gave follows from no speed: it is worth what it was.
    times_give = policy is not None and policy.speed_points
    now = session.get_one(AssignmentVersion, submission.version_id)
    return Terms(
        same_tests=same_samples or now.grading_hash == target.grading_hash,
        speed_points_now=manifest.points.speed * fraction if times_give else before.speed_points if before else 0.0,
        correctness_points_now=manifest.points.correctness * before.share if before else 0.0,
        may_lower=session.get_one(Regrade, item.regrade_id).may_lower,
        same_samples=same_samples,
    )


def _at_its_review(submission: Submission, found: Stand, decision: Decision) -> float:
    counts = submission.review in {Review.none, Review.cleared}
    return decision.points if counts else found.correctness_points


def _numbers(speed: Speed | None) -> tuple[float | None, float | None, float | None]:
    return (speed.ratio, speed.low, speed.high) if speed is not None else (None, None, None)
