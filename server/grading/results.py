"""Writing a result, once, and working out again what it is worth.

Where a lane measures apart, a check's result counts at once; if it passed, the submission goes back to the queue to be
measured, and what that attempt finds is written together with the check as a second, whole result. A regrade's check
that passed is written and waits: the result from before counts until there is a whole one.

What was measured is added to the pool of its source (`server.grading.sample_sets`). A measurement that says of itself
that it has to be taken again keeps its verdict and its points for correctness; its speed waits until it was taken
again, on another node where there is one, and after two such measurements for a person
(`server.grading.after_result`).
"""

from __future__ import annotations

import dataclasses
from datetime import datetime

from sqlalchemy import ColumnElement, or_, select
from sqlalchemy.orm import Session

from autograder import codec
from autograder.assignment import Assignment as Manifest
from autograder.contract import GradeResult, Measurement, Verdict
from autograder.counters import doubt_of
from autograder.errors import ContractError
from autograder.scores import score
from server.config import Config
from server.courses import courses
from server.grading import findings
from server.grading.after_result import Graded, Next, asks_again, go_on, next_after
from server.grading.forecast import verdict_came
from server.grading.merge_results import merged
from server.grading.news import tell_group
from server.grading.pool_names import pool_by, pool_for
from server.grading.regrade_attempts import item_of, pool_of_item, target_of
from server.grading.remeasure_requests import open_request
from server.grading.sample_sets import (
    Pool,
    keep_samples,
    let_have_speed,
    note_pool,
    read_pool,
    read_pools,
    update_others,
    with_pool,
)
from server.grading.states import attempt_moves
from server.grading.supersede import give_back
from server.models import AssignmentVersion, Attempt, AttemptState, CaseRow, Mode, Result, Submission, Trial, Work

__all__ = ["manifest_of", "write_result"]

NAME_CHARS = 120
GROUP_CHARS = 60


def write_result(
    session: Session,
    submission: Submission,
    attempt: Attempt,
    result: GradeResult,
    *,
    now: datetime,
    max_attempts: int = Config.max_attempts,
) -> Result:
    """Write what an attempt found and let it count; the submission's row has to be locked.

    Raises:
        ContractError: a number in it is none that a measurement can have, or its cases are not those of the check that
            it measures; nothing was changed.
    """
    graded = _graded(session, submission, attempt, now)
    whole = _whole(graded, result)
    apart = pool_of_item(session, graded.item, submission) if graded.item is not None else None
    if attempt.work is not Work.check and graded.is_ranked:
        keep_samples(session, submission, attempt, result.measurements, now=now, apart=apart)
    pool = _pool(graded, apart)
    row = _row(graded, whole, with_pool(whole, pool))
    note_pool(row, pool)
    after = next_after(graded, result, whole, max_attempts)
    row.settled = after not in {Next.again, Next.failed}
    asks = after is Next.over and asks_again(graded, result, whole)
    row.held = whole.held or asks or _is_doubted(graded, row, whole)
    session.add(row)
    session.flush()  # The submission points at it by id.
    findings.note(session, submission, row, whole)
    _finish(attempt, result, now)
    verdict_came(session, submission, now)
    submission.suspect = False
    submission.phase = None
    submission.revision += 1
    go_on(graded, row, after, result)
    if graded.item is None:
        update_others(session, submission, pool, now=now)
        tell_group(session, submission)
        if row.verdict is Verdict.compile_error:
            give_back(session, submission, skip_locked=True)
    return row


def _graded(session: Session, submission: Submission, attempt: Attempt, now: datetime) -> Graded:
    """The attempt with what it was made for."""
    item = item_of(session, attempt)
    version_id = item.version_id if item is not None else submission.version_id
    request = open_request(session, submission) if item is None else None
    manifest = manifest_of(session.get_one(AssignmentVersion, version_id))
    return Graded(session, submission, attempt, manifest, now, item, request)


def _pool(graded: Graded, apart: str | None) -> Pool:
    """What its numbers are worked out from; of a trial with its own samples, which do not count yet."""
    if graded.item is None or apart is None:
        return read_pool(graded.session, graded.submission)
    counts = pool_by(graded.session, graded.submission, target_of(graded.session, graded.item))
    return read_pools(graded.session, (pool_for(graded.submission, counts), apart))


def manifest_of(version: AssignmentVersion) -> Manifest:
    """The assignment as its files said it in this version."""
    return courses.spec_of(version)


def _finish(attempt: Attempt, result: GradeResult, now: datetime) -> None:
    attempt.state = attempt_moves(attempt.state, AttemptState.finished)
    attempt.finished_at = now
    attempt.live_cases = []
    if result.phases:
        attempt.phases = [{"phase": item.phase.value, "at": item.started_at} for item in result.phases]


def _whole(graded: Graded, result: GradeResult) -> GradeResult:
    """What the attempt found; of a measurement, with the check before it, which was made for the same."""
    if graded.attempt.work is Work.check:
        return dataclasses.replace(result, measurements=())
    if graded.attempt.work in {Work.all, Work.profile, Work.sanitize}:
        return result
    same = Trial.item_id == graded.item.id if graded.item is not None else _is_no_proposal(graded.submission)
    query = (
        select(Result.payload)
        .join(Attempt, Attempt.id == Result.attempt_id)
        .outerjoin(Trial, Trial.attempt_id == Attempt.id)
        .where(Result.submission_id == graded.submission.id, Attempt.work == Work.check, same)
        .order_by(Attempt.fence.desc())
        .limit(1)
    )
    payload = graded.session.scalar(query)
    if payload is None:
        raise ContractError("it was measured and had never been checked")
    return merged(codec.from_json(GradeResult, payload), result)


def _is_no_proposal(submission: Submission) -> ColumnElement[bool]:
    """An attempt's: it was made for none, or for the one whose result counts now."""
    counts = select(Trial.item_id).join(Result, Result.attempt_id == Trial.attempt_id)
    return or_(Trial.item_id.is_(None), Trial.item_id.in_(counts.where(Result.id == submission.result_id)))


def _row(graded: Graded, whole: GradeResult, counted: GradeResult) -> Result:
    """The row: the payload as the judge said it, points and speed by what counts."""
    scored = score(graded.manifest, counted, graded.submission.lane, counted=graded.is_counted)
    counts = graded.submission.mode is Mode.submission
    row = Result(
        attempt_id=graded.attempt.id,
        submission_id=graded.submission.id,
        verdict=whole.verdict,
        explanation=whole.explanation,
        payload=codec.to_json(whole),
        correctness_points=scored.correctness_points if counts else 0.0,
        speed_points=scored.speed_points if counts else 0.0,
        created_at=graded.now,
        cases=_case_rows(counted),
    )
    let_have_speed(row, scored.speed)
    return row


def _is_doubted(graded: Graded, row: Result, whole: GradeResult) -> bool:
    """Whether its counters give points that a person has to look at first."""
    return graded.is_counted and row.speed_points > 0 and bool(doubt_of(whole))


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
