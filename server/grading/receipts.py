"""The receipt of a submission's grade as it is now, from what is stored (`autograder.receipts` says what is in it)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session, undefer

from autograder import codec
from autograder.assignment import Assignment as Manifest
from autograder.assignment import LanePolicy
from autograder.contract import GpuFacts, GradeResult, Measurement, Mode, Verdict
from autograder.receipts import AttemptFacts, Change, Copy, Formula, Grade, Group, Receipt, Sampled
from autograder.scores import group_results
from server.courses.deadlines import deadlines_of
from server.errors import ConflictError
from server.grading.pool_names import pool_for
from server.grading.results import manifest_of
from server.grading.sample_sets import speed_in
from server.models import (
    Assignment,
    AssignmentVersion,
    Attempt,
    Course,
    GradeChange,
    Node,
    Result,
    Sampling,
    Submission,
)


def receipt_of(session: Session, submission: Submission, *, now: datetime) -> Receipt:
    """The staff's copy.

    Raises:
        ConflictError: it has no grade: a practice run, or nothing was found yet.
    """
    if submission.mode is not Mode.submission:
        raise ConflictError(f"A {submission.mode.noun} has no grade and so no receipt.")
    if submission.result_id is None:
        raise ConflictError("There is no grade yet. The receipt number on its page shows that it was received.")
    query = select(Result).where(Result.id == submission.result_id).options(undefer(Result.payload))
    result = session.scalars(query).one()
    found = codec.from_json(GradeResult, result.payload)
    version = session.get_one(AssignmentVersion, submission.version_id)
    assignment = session.get_one(Assignment, submission.assignment_id)
    manifest = manifest_of(session.get_one(AssignmentVersion, result.scored_version_id or submission.version_id))
    samples = _samples(session, submission, result, found)
    return Receipt(
        number=submission.public_id,
        copy=Copy.staff,
        made_at=now.isoformat(),
        course=session.get_one(Course, submission.course_id).slug,
        assignment=assignment.slug,
        version=version.number,
        bundle=version.bundle_hash,
        grading_hash=version.grading_hash,
        lane=submission.lane,
        language=submission.language,
        submission=submission.number,
        source_hash=submission.source_hash,
        uploaded_at=submission.uploaded_at.isoformat(),
        days_late=deadlines_of(session, assignment, submission.user_id).days_late(submission.uploaded_at),
        formula=_formula(manifest, submission, result),
        groups=tuple(Group(name, ok) for name, ok in group_results(manifest, found, submission.lane).items()),
        cases=found.cases,
        ranked=tuple(case.name for case in found.cases if case.ranked),
        attempts=tuple(_attempts(session, [result.attempt_id, *(attempt_id for attempt_id, _ in samples)])),
        samples=tuple(item for _, item in samples),
        grade=_grade(submission, result),
        changes=tuple(_changes(session, submission)),
        findings=found.findings,
        held_reason=found.held_reason,
        requirements=found.requirements,
    )


def _samples(session: Session, submission: Submission, result: Result, found: GradeResult) -> list[tuple[int, Sampled]]:
    """Attempts with what they sampled: the pool's; of a result from before there were pools, its own.

    What passed and has no speed, such as a check whose times our side could not take, follows from none of them.
    """
    if result.verdict is Verdict.passed and result.ratio is None:
        return []
    query = (
        select(Attempt.id, Attempt.public_id, Sampling.measurement)
        .join(Attempt, Attempt.id == Sampling.attempt_id)
        .order_by(Sampling.id)
    )
    pool = pool_for(submission, submission.pool) if submission.pool is not None else None
    rows = session.execute(query.where(Sampling.pool == pool)).all() if pool is not None else []
    if rows:
        return [(row.id, Sampled(row.public_id, codec.from_json(Measurement, row.measurement))) for row in rows]
    name = session.scalars(select(Attempt.public_id).where(Attempt.id == result.attempt_id)).one()
    return [(result.attempt_id, Sampled(name, item)) for item in found.measurements]


def _formula(manifest: Manifest, submission: Submission, result: Result) -> Formula:
    policy = manifest.policy(submission.lane) or LanePolicy(ranks=False)
    return Formula(
        version=result.formula_version,
        correctness=manifest.points.correctness,
        speed=manifest.points.speed,
        speed_points=policy.speed_points,
        r_full=policy.r_full,
        r_zero=policy.r_zero,
        # As it was scored: what lanes a course offers may have changed since.
        counted=result.speed_points > 0 and not policy.speed_points,
    )


def _grade(submission: Submission, result: Result) -> Grade:
    return Grade(
        verdict=result.verdict,
        review=submission.review,
        settled=result.settled,
        # As it was written down with the points. The intervals of a full pool take seconds, and whoever checks the
        # receipt works them out from its samples.
        speed=speed_in(result),
        correctness_points=result.correctness_points,
        speed_points=result.speed_points,
        points=submission.points,
        confirmations=submission.confirmations,
        speed_floor=result.speed_floor or 0.0,
    )


def _attempts(session: Session, ids: Sequence[int]) -> Iterable[AttemptFacts]:
    """What is known of these attempts, oldest first; of one that found nothing only where it was."""
    query = (
        select(Attempt, Node.name, Submission.public_id, Result.payload)
        .join(Node, Node.id == Attempt.node_id)
        .join(Submission, Submission.id == Attempt.submission_id)
        .outerjoin(Result, Result.attempt_id == Attempt.id)
        .where(Attempt.id.in_(set(ids)))
        .order_by(Attempt.id)
    )
    for attempt, node, submission, payload in session.execute(query):
        found = _Told.of(payload)
        yield AttemptFacts(
            attempt=attempt.public_id,
            submission=submission,
            node=node,
            work=attempt.work,
            finished_at=attempt.finished_at.isoformat() if attempt.finished_at else "",
            environment=found.environment,
            promises=found.promises,
            gpu=found.gpu,
        )


@dataclass(frozen=True)
class _Told:
    """What an attempt's result says of where it was made; nothing else of it is read, as it holds every sample."""

    environment: dict[str, str] = field(default_factory=dict)
    promises: tuple[str, ...] = ()
    gpu: GpuFacts | None = None

    @classmethod
    def of(cls, payload: Mapping[str, Any] | None) -> _Told:
        """Of a result as it is stored; of none nothing is known."""
        names = {item.name for item in fields(cls)}
        return codec.from_json(cls, {name: item for name, item in (payload or {}).items() if name in names})


def _changes(session: Session, submission: Submission) -> Iterable[Change]:
    query = select(GradeChange).where(GradeChange.submission_id == submission.id).order_by(GradeChange.id)
    for row in session.scalars(query):
        yield Change(row.at.isoformat(), row.reason.value, row.before, row.after, row.formula_version)
