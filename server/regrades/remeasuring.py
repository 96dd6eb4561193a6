"""Putting a submission in the queue to have its times taken once more (`server.grading.remeasure_requests`)."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from autograder import codec
from autograder.contract import State, Verdict
from server.grading.after_result import measuring_work
from server.grading.remeasure_requests import Retime, speeds_of
from server.grading.requeue import back_in_line
from server.grading.results import manifest_of
from server.models import AssignmentVersion, Attempt, Line, Node, RegradeRequest, Result, Submission


def why_not(session: Session, submission: Submission) -> str:
    """Why its times cannot be taken once more; `""` where they can. Its row is locked."""
    result = session.get(Result, submission.result_id) if submission.result_id is not None else None
    manifest = manifest_of(session.get_one(AssignmentVersion, submission.version_id))
    policy = manifest.policy(submission.lane)
    if policy is None or not policy.speed_points:
        return "Speed earns no points on this lane."
    if result is None or result.verdict is not Verdict.passed or result.ratio is None:
        return "Only passed submissions can be measured."
    if submission.state is not State.done:
        return "It is being graded again already."
    return ""


def begin_retime(session: Session, request: RegradeRequest, submission: Submission, *, now: datetime) -> bool:
    """Put it in the queue, if it has times; whether it is there. Its row is locked."""
    reason = why_not(session, submission)
    if reason:
        request.retime = codec.to_json(Retime(why_not=reason))
        return False
    node_id, name = _last_node(session, submission)
    request.retime = codec.to_json(Retime(before=speeds_of(session, submission), nodes=(name, "")))
    manifest = manifest_of(session.get_one(AssignmentVersion, submission.version_id))
    submission.avoid_node_id = node_id
    submission.work = measuring_work(manifest, submission)
    back_in_line(submission, Line.regrade, now=now)
    request.retiming = True
    return True


def _last_node(session: Session, submission: Submission) -> tuple[int | None, str]:
    query = (
        select(Node.id, Node.name)
        .join(Attempt, Attempt.node_id == Node.id)
        .join(Result, Result.attempt_id == Attempt.id)
        .where(Result.id == submission.result_id)
    )
    row = session.execute(query).one_or_none()
    return (row.id, row.name) if row is not None else (None, "")
