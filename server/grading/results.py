"""Writing a result, once, and what a submission is worth by it."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session, joinedload, undefer

from autograder import codec
from autograder.assignment import Assignment as Manifest
from autograder.contract import GradeResult, Measurement
from server.grading.scores import Score, score
from server.grading.states import attempt_moves, submission_moves
from server.models import (
    Assignment,
    AssignmentVersion,
    Attempt,
    AttemptState,
    CaseRow,
    Mode,
    Result,
    Review,
    State,
    Submission,
)

NAME_CHARS = 120
GROUP_CHARS = 60


def write_result(
    session: Session, submission: Submission, attempt: Attempt, result: GradeResult, *, now: datetime
) -> Result:
    """Write what an attempt found and let it count; the submission's row has to be locked.

    Raises:
        ContractError: a number in it is none that a measurement can have; nothing was changed.
    """
    manifest = manifest_of(session.get_one(AssignmentVersion, submission.version_id))
    scored = score(manifest, result, submission.lane)
    row = _row(submission, attempt, result, scored, now)
    session.add(row)
    session.flush()  # The submission points at it by id.
    attempt.state = attempt_moves(attempt.state, AttemptState.finished)
    attempt.finished_at = now
    attempt.live_cases = []
    if result.phases:
        attempt.phases = [{"phase": item.phase.value, "at": item.started_at} for item in result.phases]
    _let_count(submission, row, now)
    return row


def manifest_of(version: AssignmentVersion) -> Manifest:
    """The assignment as its files said it in this version."""
    return codec.from_json(Manifest, version.manifest)


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


def _let_count(submission: Submission, row: Result, now: datetime) -> None:
    submission.state = submission_moves(submission.state, State.done)
    submission.phase = None
    submission.verdict = row.verdict
    submission.result_id = row.id
    submission.finished_at = now
    submission.revision += 1
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
