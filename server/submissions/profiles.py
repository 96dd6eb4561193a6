"""Profiles that were made: what was found, the tool's report, the timeline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from autograder import codec
from autograder.contract import GradeResult
from autograder.profiles import REPORT, Profile, SpanKind, Timeline
from server.errors import NotFoundError
from server.models import Artefact, Attempt, Mode, Result, Submission


def find_profile(session: Session, submission: Submission) -> Profile | None:
    """What was found; `None` where it is no profile, or there is none yet."""
    found = result_of(session, submission)
    return found.profile if found is not None else None


def result_of(session: Session, submission: Submission) -> GradeResult | None:
    """The result of what was handed in; `None` where there is none yet."""
    payload = session.scalar(select(Result.payload).where(Result.id == submission.result_id))
    return codec.from_json(GradeResult, payload) if payload is not None else None


def profile_of(session: Session, submission: Submission) -> Profile:
    """The same where there has to be one.

    Raises:
        NotFoundError: there is none.
    """
    found = find_profile(session, submission)
    if found is None:
        raise NotFoundError("There is no profile here.")
    return found


def report_of(session: Session, submission: Submission) -> bytes:
    """The profiler's own report.

    Raises:
        NotFoundError: there is none, or it was kept long enough.
    """
    data = session.scalar(
        select(Artefact.data)
        .join(Attempt, Attempt.id == Artefact.attempt_id)
        .where(Attempt.submission_id == submission.id, Artefact.name == REPORT)
        .order_by(Artefact.id.desc())
        .limit(1)
    )
    if submission.mode is not Mode.profile or data is None:
        raise NotFoundError("There is no report here; reports are removed after a while.")
    return bytes(data)


def of_source(session: Session, submission: Submission, mode: Mode, *, limit: int = 5) -> list[Submission]:
    """The same person's newest profiles, or sanitizer runs, of the same source, newest first."""
    query = select(Submission).where(
        Submission.user_id == submission.user_id,
        Submission.assignment_id == submission.assignment_id,
        Submission.mode == mode,
        Submission.source_hash == submission.source_hash,
    )
    return list(session.scalars(query.order_by(Submission.id.desc()).limit(limit)))


def perfetto(timeline: Timeline) -> dict[str, Any]:
    """The timeline in the trace-event format, which ui.perfetto.dev opens; microseconds."""
    rows: Sequence[tuple[int, str]] = ((1, "Device"), (2, "Host"))
    named = [{"ph": "M", "pid": 1, "tid": row, "name": "thread_name", "args": {"name": name}} for row, name in rows]
    events = [
        {
            "ph": "X", "pid": 1, "tid": 2 if span.kind is SpanKind.host else 1, "name": span.name,
            "cat": span.kind.value, "ts": span.start_ns / 1e3, "dur": (span.end_ns - span.start_ns) / 1e3,
        }
        for span in timeline.spans
    ]  # fmt: skip
    return {"displayTimeUnit": "ns", "traceEvents": [*named, *events]}
