"""Writing a result, once, and what a submission is worth by it.

Where a lane measures apart, a check's result counts at once; if it passed, the submission goes back to the queue to be
measured, and what that attempt finds is written together with the check as a second, whole result. A regrade's check
that passed is written and waits: the result from before counts until there is a whole one.
"""

from __future__ import annotations

import dataclasses
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session, joinedload, undefer

from autograder import codec
from autograder.assignment import Assignment as Manifest
from autograder.contract import GradeResult, Measurement, Verdict
from autograder.errors import ContractError
from autograder.scores import Score, score
from server.courses import service as courses
from server.grading.forecast import verdict_came
from server.grading.halves import merged
from server.grading.states import attempt_moves, submission_moves
from server.grading.supersede import give_back, supersede_measuring
from server.models import (
    Assignment,
    AssignmentVersion,
    Attempt,
    AttemptState,
    CaseRow,
    Line,
    Mode,
    Result,
    Review,
    State,
    Submission,
    Work,
)

NAME_CHARS = 120
GROUP_CHARS = 60


def write_result(
    session: Session, submission: Submission, attempt: Attempt, result: GradeResult, *, now: datetime
) -> Result:
    """Write what an attempt found and let it count; the submission's row has to be locked.

    Raises:
        ContractError: a number in it is none that a measurement can have, or its cases are not those of the check that
            it measures; nothing was changed.
    """
    manifest = manifest_of(session.get_one(AssignmentVersion, submission.version_id))
    whole = _whole(session, submission, attempt, result)
    row = _row(submission, attempt, whole, score(manifest, whole, submission.lane), now)
    session.add(row)
    session.flush()  # The submission points at it by id.
    _finish(attempt, result, now)
    verdict_came(session, submission, now)
    submission.suspect = False
    submission.phase = None
    submission.revision += 1
    if attempt.work is Work.check and _is_measured(manifest, submission, row):
        _queue_for_measuring(session, submission, row)
    else:
        _let_count(submission, row)
        submission.state = submission_moves(submission.state, State.done)
        submission.finished_at = now
    if row.verdict is Verdict.compile_error:
        give_back(session, submission, skip_locked=True)
    return row


def awaits_measuring(session: Session, submission: Submission) -> bool:
    """Whether what counts is a check that passed, whose times are still to come, or could not be measured."""
    if submission.work is not Work.measure or submission.result_id is None:
        return False
    query = select(Attempt.work, Result.verdict).join(Result, Result.attempt_id == Attempt.id)
    counts = session.execute(query.where(Result.id == submission.result_id)).one()
    return counts.work is Work.check and counts.verdict is Verdict.passed


def _finish(attempt: Attempt, result: GradeResult, now: datetime) -> None:
    attempt.state = attempt_moves(attempt.state, AttemptState.finished)
    attempt.finished_at = now
    attempt.live_cases = []
    if result.phases:
        attempt.phases = [{"phase": item.phase.value, "at": item.started_at} for item in result.phases]


def _whole(session: Session, submission: Submission, attempt: Attempt, result: GradeResult) -> GradeResult:
    """What the attempt found; of a measurement, with the check before it."""
    if attempt.work is Work.check:
        return dataclasses.replace(result, measurements=())
    if attempt.work is Work.all:
        return result
    query = (
        select(Result.payload)
        .join(Attempt, Attempt.id == Result.attempt_id)
        .where(Result.submission_id == submission.id, Attempt.work == Work.check)
        .order_by(Attempt.fence.desc())
        .limit(1)
    )
    payload = session.scalar(query)
    if payload is None:
        raise ContractError("it was measured and had never been checked")
    return merged(codec.from_json(GradeResult, payload), result)


def _is_measured(manifest: Manifest, submission: Submission, row: Result) -> bool:
    policy = manifest.policy(submission.lane)
    return row.verdict is Verdict.passed and policy is not None and policy.ranks


def _queue_for_measuring(session: Session, submission: Submission, row: Result) -> None:
    """Send it back to the queue with its place, for its times; a new piece of work has all its attempts."""
    if submission.result_id is None:
        _let_count(submission, row)
    superseded = submission.superseded_by_id is not None
    submission.work = Work.measure
    submission.attempts_made = 0
    submission.state = submission_moves(submission.state, State.superseded if superseded else State.queued)
    if submission.line is Line.submission:
        submission.line = Line.measuring
        due_at = session.scalar(select(Assignment.due_at).where(Assignment.id == submission.assignment_id))
        supersede_measuring(session, submission, due_at=due_at)


def manifest_of(version: AssignmentVersion) -> Manifest:
    """The assignment as its files said it in this version."""
    return courses.spec_of(version)


def _row(submission: Submission, attempt: Attempt, result: GradeResult, scored: Score, now: datetime) -> Result:
    speed = scored.speed
    counts = submission.mode is Mode.submission
    return Result(
        attempt_id=attempt.id,
        submission_id=submission.id,
        verdict=result.verdict,
        explanation=result.explanation,
        payload=codec.to_json(result),
        ratio=speed.ratio if speed else None,
        ratio_low=speed.low if speed else None,
        ratio_high=speed.high if speed else None,
        time_us=speed.time_us if speed else None,
        correctness_points=scored.correctness_points if counts else 0.0,
        speed_points=scored.speed_points if counts else 0.0,
        held=result.held,
        created_at=now,
        cases=_case_rows(result),
    )


def _case_rows(result: GradeResult) -> list[CaseRow]:
    measured: dict[str, Measurement] = {item.case: item for item in result.measurements}
    rows = []
    for index, case in enumerate(result.cases):
        item = measured.get(case.name)
        rows.append(
            CaseRow(
                index=index,
                name=case.name[:NAME_CHARS],
                category=case.category[:NAME_CHARS],
                group=case.group[:GROUP_CHARS],
                visibility=case.visibility,
                verdict=case.verdict,
                pattern=case.mismatch.pattern.value if case.mismatch else None,
                ratio=item.ratio if item else None,
                time_us=item.time_us if item else None,
            )
        )
    return rows


def _let_count(submission: Submission, row: Result) -> None:
    submission.verdict = row.verdict
    submission.result_id = row.id
    if row.held and submission.review is Review.none:
        submission.review = Review.held
    submission.points = points_of(submission, row)


def points_of(submission: Submission, result: Result) -> float | None:
    """What counts now: a held submission's speed points wait, a rejected one's are gone; practice earns none."""
    if submission.mode is Mode.run:
        return None
    earned = submission.review in {Review.none, Review.cleared}
    return result.correctness_points + (result.speed_points if earned else 0.0)


def rescore(session: Session, assignment: Assignment) -> int:
    """Recompute every result that counts by the assignment's current formula, without grading; how many changed."""
    if assignment.version_id is None:
        return 0
    manifest = manifest_of(session.get_one(AssignmentVersion, assignment.version_id))
    query = (
        select(Submission)
        .where(Submission.assignment_id == assignment.id, Submission.result_id.is_not(None))
        .where(Submission.mode == Mode.submission)
        .options(joinedload(Submission.result).options(undefer(Result.payload)))
        .order_by(Submission.id)
        .with_for_update(of=Submission)
    )
    return sum(_rescore_one(manifest, submission) for submission in session.scalars(query))


def _rescore_one(manifest: Manifest, submission: Submission) -> bool:
    row = submission.result
    if row is None:
        return False
    scored = score(manifest, codec.from_json(GradeResult, row.payload), submission.lane)
    row.correctness_points = scored.correctness_points
    row.speed_points = scored.speed_points
    before, submission.points = submission.points, points_of(submission, row)
    changed = before != submission.points
    submission.revision += changed
    return changed
