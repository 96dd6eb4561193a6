"""A sanitizer run of what stands on a leaderboard: once for each source, by itself, when nobody else waits.

It is a submission of its owner's like one that they ask for, in the line of confirmations. What it finds is shown to
its owner and to staff and decides nothing.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Select, exists, select
from sqlalchemy.orm import Session, aliased, joinedload, undefer
from sqlalchemy.orm.util import AliasedClass

from autograder import codec
from autograder.contract import GradeResult
from autograder.sanitizer import SanitizerFinding
from server import ids
from server.accounts import accounts
from server.grading.confirm import CONFIRMED, confirmed_boards, room, standing_on
from server.grading.requeue import first_work
from server.grading.results import manifest_of
from server.models import AssignmentVersion, Lane, Line, Mode, Result, State, Submission
from server.submissions import inspections, submissions


@dataclass(frozen=True)
class Inspected:
    """What a sanitizer run found in a source that stands on a leaderboard.

    Attributes:
        public_id: of the run, whose page has all of it.
        findings: at least one.
    """

    public_id: str
    findings: tuple[SanitizerFinding, ...]


def inspect_due(session: Session, *, now: datetime) -> int:
    """Queue a sanitizer run for what stands on a confirmed leaderboard and never had one; how many."""
    boards = confirmed_boards(session)
    made = 0
    for lane, course_id in session.execute(
        _due(boards).order_by(None).with_only_columns(Submission.lane, Submission.course_id).distinct()
    ).all():
        if inspections.why_not(session, lane, Mode.sanitize, course_id=course_id, now=now):
            continue
        here = _due(boards).where(Submission.lane == lane, Submission.course_id == course_id)
        whole = here.options(undefer(Submission.source), joinedload(Submission.user))
        for row in session.scalars(whole.limit(max(0, room(session)))).all():
            _queue(session, row, now)
            made += 1
    return made


def found_in(session: Session, submission: Submission) -> Inspected | None:
    """What the run of a submission's source for its leaderboard found; `None` where nothing, or there was none."""
    if submission.mode is not Mode.submission or submission.lane not in CONFIRMED:
        return None
    run = aliased(Submission)
    row = session.execute(
        select(run.public_id, Result.payload)
        .join(Result, Result.id == run.result_id)
        .where(*_run_of(run, submission), run.line == Line.confirm)
        .order_by(run.id.desc())
        .limit(1)
    ).one_or_none()
    found = codec.from_json(GradeResult, row[1]).sanitized if row is not None else None
    return Inspected(row[0], found.findings) if row is not None and found is not None and found.findings else None


def _due(boards: Collection[tuple[int, Lane]]) -> Select[Submission]:
    """What stands on these boards, of whose source no sanitizer run of its owner's was made."""
    run = aliased(Submission)
    return standing_on(boards).where(~exists().where(*_run_of(run, Submission)))


def _run_of(
    run: type[Submission] | AliasedClass[Submission], of: type[Submission] | Submission
) -> list[ColumnElement[bool]]:
    return [
        run.user_id == of.user_id,
        run.assignment_id == of.assignment_id,
        run.mode == Mode.sanitize,
        run.lane == of.lane,
        run.language == of.language,
        run.source_hash == of.source_hash,
        run.state != State.cancelled,
    ]


def _queue(session: Session, row: Submission, now: datetime) -> None:
    # Numbers are given out while the person's row is held, as for what they hand in themselves.
    accounts.lock_user(session, row.user)
    number = submissions.standing_of(session, row.user, Mode.sanitize, row.assignment_id, now).number
    manifest = manifest_of(session.get_one(AssignmentVersion, row.version_id))
    session.add(
        Submission(
            public_id=ids.public_id(), number=number,
            course_id=row.course_id, assignment_id=row.assignment_id, version_id=row.version_id, user_id=row.user_id,
            mode=Mode.sanitize, lane=row.lane, language=row.language, filename=row.filename,
            source=row.source, source_hash=row.source_hash, suspect=row.suspect,
            trace=ids.trace_id(), uploaded_at=now, place_at=now, revision=1,
            state=State.queued, line=Line.confirm, work=first_work(manifest, row.lane, Mode.sanitize),
        )
    )  # fmt: skip
    session.flush()
