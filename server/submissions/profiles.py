"""Profiles on request: who may ask for one, of what, and which there are.

A profile is handed in like a submission and waits in a line of its own, after gradings. Nothing of it counts. Only a
public case is profiled: counters would tell the sizes of hidden ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from autograder import codec
from autograder.assignment import Assignment as Manifest
from autograder.contract import GradeResult
from autograder.profiles import REPORT, Profile, SpanKind, Timeline
from server import db
from server.config import Config
from server.courses.courses import Membership
from server.errors import InvalidInputError, NotFoundError, TooManyError
from server.models import Artefact, Attempt, Lane, Mode, Result, State, Submission, Work
from server.nodes import nodes

_DAY = timedelta(days=1)
_NO_GPU = "The CPU lane has no GPU, so there is nothing to profile. Choose a GPU lane."


def cases_of(manifest: Manifest, lane: Lane) -> list[str]:
    """Names of the cases that can be profiled on a lane, ranked ones first."""
    return [case.name for case in sorted(manifest.cases_for(lane), key=lambda case: not case.ranked)]


def check_case(manifest: Manifest, lane: Lane, case: str) -> None:
    """Refuse a case that is not a public one of the lane; `""` stands for the ranked one with the most work.

    Raises:
        InvalidInputError: it is none, or the lane has no GPU.
    """
    if lane is Lane.cpu:
        raise InvalidInputError(_NO_GPU, field="lane")
    offered = cases_of(manifest, lane)
    if case and case not in offered:
        raise InvalidInputError(
            f"{case!r} is no public case on the lane {lane}. Public cases: {', '.join(offered)}.", field="case"
        )


def why_not(session: Session, lane: Lane, *, course_id: int, now: datetime) -> str:
    """Why nobody gets a profile on this lane now, in a sentence; `""` where a node in service makes them."""
    if lane is Lane.cpu:
        return _NO_GPU
    serving = [
        node
        for node in nodes.working_nodes(session, now=now)
        if lane.value in node.lanes and nodes.serves(node, course_id) and not nodes.in_quarantine(node)
    ]
    if any(Work.profile.value in node.works for node in serving):
        return ""
    said = next((fact for node in serving if (fact := node.facts.get("profiles", "")) not in {"", "yes"}), "")
    if serving:
        return f"No node of the lane {lane} makes profiles. {said}".rstrip()
    return f"No node that serves the lane {lane} is in service now, so a profile would wait forever."


def check(session: Session, membership: Membership, lane: Lane, config: Config, now: datetime) -> None:
    """Refuse a profile that no node would make, or one too many; the person's row is locked.

    Raises:
        InvalidInputError: no node makes them; it says why.
        TooManyError: the day's are used up.
    """
    if refused := why_not(session, lane, course_id=membership.course.id, now=db.now(session)):
        raise InvalidInputError(refused, field="lane")
    if membership.is_staff:
        return
    query = select(func.count(), func.min(Submission.uploaded_at)).where(
        Submission.user_id == membership.user.id,
        Submission.course_id == membership.course.id,
        Submission.mode == Mode.profile,
        Submission.uploaded_at > now - _DAY,
        Submission.state.not_in((State.failed, State.cancelled)),
    )
    used, first = session.execute(query).one()
    if used >= config.profiles_per_day:
        wait_s = max(1.0, (first + _DAY - now).total_seconds())
        raise TooManyError(
            f"You have used all {config.profiles_per_day} profiles of 24 hours. The next is possible in "
            f"{wait_s / 3600:.1f} h.",
            retry_after_s=wait_s,
        )


def find_profile(session: Session, submission: Submission) -> Profile | None:
    """What was found; `None` where it is no profile, or there is none yet."""
    found = result_of(session, submission)
    return found.profile if found is not None else None


def result_of(session: Session, submission: Submission) -> GradeResult | None:
    """The result with the profile in it."""
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


def of_source(session: Session, submission: Submission, *, limit: int = 5) -> list[Submission]:
    """The same person's newest profiles of the same source, newest first."""
    query = select(Submission).where(
        Submission.user_id == submission.user_id,
        Submission.assignment_id == submission.assignment_id,
        Submission.mode == Mode.profile,
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
