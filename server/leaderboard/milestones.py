"""Baselines on the boards: the rung's own kernels, handed in by an account of ours and graded as everybody's are.

Their numbers are measured by the same judge, on the same nodes, beside the same reference as a student's. What staff
hold or reject stands on no board, theirs either: a library call is held like any other, until a person clears it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session, aliased

from autograder import languages
from autograder.assignment import EXTENSIONS
from autograder.contract import Lane, Language, Mode
from server import audit, ids
from server.config import Config
from server.courses.courses import AssignmentDetail, Membership
from server.grading.ranking import counts
from server.models import (
    Assignment,
    AssignmentVersion,
    Course,
    Milestone,
    MilestoneKind,
    Result,
    Role,
    Submission,
    User,
)
from server.submissions import submissions

ACCOUNT = "milestones@kernel-ladder.invalid"
"""Nobody can log in to it: it has no password, and is disabled."""
_LIBRARY_CALL = "passed_library_call"
_NAMES = {"solution": "Staff kernel", _LIBRARY_CALL: "Library call"}


@dataclass(frozen=True)
class Baseline:
    """A milestone's row on a board; its numbers are as an entry's. `stem` is its file's name, `name` for people."""

    stem: str
    name: str
    kind: MilestoneKind
    language: Language
    ratio: float
    ratio_low: float
    ratio_high: float
    time_us: float
    at: datetime


@dataclass(frozen=True)
class Source:
    """A kernel of the rung's folders that can stand on its boards."""

    name: str
    kind: MilestoneKind
    language: Language
    text: bytes


def baselines(
    session: Session, assignment: Assignment, lane: Lane, *, language: Language | None = None
) -> tuple[Baseline, ...]:
    """The milestones on one board, fastest first: of each the newest that is valid and was graded as now."""
    current = aliased(AssignmentVersion)
    query = (
        select(Milestone, Result)
        .join(Submission, Submission.id == Milestone.submission_id)
        .join(Result, Result.id == Submission.result_id)
        .join(AssignmentVersion, AssignmentVersion.id == Milestone.version_id)
        .join(current, current.id == assignment.version_id)
        .where(
            Milestone.assignment_id == assignment.id,
            Milestone.lane == lane,
            AssignmentVersion.grading_hash == current.grading_hash,
            counts(),
        )
        .order_by(Milestone.id)
    )
    newest = {(row.name, row.language): _baseline(row, result) for row, result in session.execute(query)}
    chosen = [item for item in newest.values() if language is None or item.language is language]
    return tuple(sorted(chosen, key=lambda item: (item.ratio, item.name)))


def membership(session: Session, course: Course, now: datetime) -> Membership:
    """What the account of ours is in a course: staff, without being enrolled."""
    return Membership(course, _account(session, now), None, Role.instructor)


def hand_in(
    session: Session, detail: AssignmentDetail, ours: Membership, lane: Lane, *, config: Config, now: datetime
) -> list[Source]:
    """Hand in what the current version's folders have, the lane runs and its board has not; those that were handed in.

    Args:
        ours: `membership` of the course.

    Raises:
        LadderError: the assignment is not graded on the lane.
    """
    query = select(Milestone.name, Milestone.language).where(
        Milestone.version_id == detail.version.id, Milestone.lane == lane
    )
    there = {(name, language) for name, language in session.execute(query)}
    runs = [item for item in _sources(detail, config) if languages.of(item.language).loader(lane)]
    missing = [item for item in runs if (item.name, item.language) not in there]
    # A quota is for people.
    config = dataclasses.replace(config, submit_quota_per_minute=10_000)
    for source in missing:
        submission = submissions.submit(
            session,
            membership=ours,
            assignment=detail.slug,
            mode=Mode.submission,
            lane=lane,
            language=source.language,
            filename=f"{source.name}.{EXTENSIONS[source.language]}",
            source=source.text,
            config=config,
            now=now,
            trace=ids.trace_id(),
        )
        session.add(_row(detail, lane, source, submission, now))
        session.flush()
    if missing:
        said = {"lane": lane.value, "names": [f"{item.name} ({item.language})" for item in missing]}
        audit.record(session, action="milestones.handed_in", subject=f"assignment:{detail.row.id}", detail=said)
    return missing


def _row(detail: AssignmentDetail, lane: Lane, source: Source, submission: Submission, now: datetime) -> Milestone:
    return Milestone(
        assignment_id=detail.row.id,
        version_id=detail.version.id,
        lane=lane,
        language=source.language,
        kind=source.kind,
        name=source.name,
        submission_id=submission.id,
        created_at=now,
    )


def _account(session: Session, now: datetime) -> User:
    user = session.scalar(select(User).where(User.email == ACCOUNT))
    if user is None:
        user = User(email=ACCOUNT, name="Milestones", handle="milestones", created_at=now, disabled_at=now)
        session.add(user)
        session.flush()
    return user


def _sources(detail: AssignmentDetail, config: Config) -> Iterator[Source]:
    for item in detail.version.milestones:
        text = item["source"].encode()
        yield Source(item["name"], MilestoneKind.published, Language(item["language"]), text)
    folder = config.reference / detail.slug
    for language in detail.spec.languages:
        suffix = EXTENSIONS[language]
        yield from _file("solution", MilestoneKind.staff, language, folder / "solutions" / f"{language}.{suffix}")
        for path in (
            folder / "submissions" / f"{_LIBRARY_CALL}.{suffix}",
            *languages.files_in(folder / "baselines", language, among=detail.spec.languages),
        ):
            yield from _file(path.stem, MilestoneKind.library, language, path)


def _file(name: str, kind: MilestoneKind, language: Language, path: Path) -> Iterator[Source]:
    if path.is_file():
        yield Source(name[:60], kind, language, path.read_bytes())


def _baseline(row: Milestone, result: Result) -> Baseline:
    return Baseline(
        stem=row.name,
        name=title(row.name),
        kind=row.kind,
        language=row.language,
        ratio=result.ratio or 0.0,
        ratio_low=result.ratio_low or 0.0,
        ratio_high=result.ratio_high or 0.0,
        time_us=result.time_us or 0.0,
        at=row.created_at,
    )


def title(name: str) -> str:
    """A milestone's name for people: `2_one_kernel_three_passes` is “One kernel three passes”."""
    if name in _NAMES:
        return _NAMES[name]
    number, _, rest = name.partition("_")
    words = (rest if number.isdigit() and rest else name).replace("_", " ")
    return words[:1].upper() + words[1:]
