"""Grading again what was graded, or what has failed."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy.orm import Session

from autograder.assignment import Assignment as Manifest
from server import alerts
from server.errors import ConflictError
from server.grading.after_result import awaits_measuring, measuring_work
from server.grading.lock import lock_submission
from server.grading.results import manifest_of
from server.grading.states import submission_moves
from server.models import AlertKind, AssignmentVersion, Lane, Line, Mode, State, Submission, Work


def first_work(manifest: Manifest, lane: Lane, mode: Mode) -> Work:
    """What the first attempt does: all of it, on a lane that measures apart the check, or to look with a tool."""
    if mode.inspects:
        return Work(mode.value)
    policy = manifest.policy(lane)
    return Work.check if mode is Mode.submission and policy is not None and policy.apart else Work.all


def requeue(session: Session, submission: Submission, *, now: datetime) -> Submission:
    """Put a submission that is done or has failed back in the queue, as a regrade; it keeps the result that it has.

    Raises:
        ConflictError: it waits or runs, or was cancelled.
    """
    row = lock_submission(session, submission.id)
    if row is None or row.state not in {State.done, State.failed}:
        raise ConflictError(
            f"Submission {submission.public_id} is {submission.state}; only finished submissions can be regraded."
        )
    version = session.get_one(AssignmentVersion, row.version_id)
    half = awaits_measuring(session, row)
    manifest = manifest_of(version)
    row.work = measuring_work(manifest, row) if half else first_work(manifest, row.lane, row.mode)
    back_in_line(row, Line.regrade, now=now)
    row.superseded_by_id = None
    row.avoid_node_id = None
    row.verdict = row.verdict if row.result_id is not None else None
    row.finished_at = row.finished_at if row.result_id is not None and not half else None
    for kind in (AlertKind.submission_failed, AlertKind.suspect_held):
        alerts.resolve(session, kind, f"submission:{row.public_id}", now)
    return row


def back_in_line(row: Submission, line: Line, *, now: datetime) -> None:
    """Queue what has ended for new work, with all its attempts."""
    row.state = submission_moves(row.state, State.queued)
    row.line = line
    row.place_at = now
    row.attempts_made = 0
    row.remeasured = 0
    row.phase = None
    row.revision += 1
