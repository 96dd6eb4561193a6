"""The one ranking query.

A student's best valid result per assignment and lane, by ratio to the reference. Versions that differ in what they tell
people only (`AssignmentVersion.grading_hash`) are ranked together; ratios to two references, or over two sets of cases,
are never mixed.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, Select, func, or_, select
from sqlalchemy.orm import Session

from autograder.contract import Lane, Language
from server.grading.service import manifest_of
from server.models import (
    Assignment,
    AssignmentVersion,
    Enrolment,
    Mode,
    Result,
    Review,
    Role,
    Submission,
    User,
    Verdict,
)


@dataclass(frozen=True)
class Entry:
    """One student's place.

    Attributes:
        rank: shared by entries whose intervals overlap that of the first of their group.
        name: the name if they chose to show it, otherwise their pseudonym.
        own: it is the viewer's.
        ratio, ratio_low, ratio_high: submission / reference; below 1 is faster than the reference.
        time_us: beside it, the time on this lane.
        submission: public id; a front shows it to its owner and to staff only.
        confirmations: how often it was graded once more and passed.
    """

    rank: int
    name: str
    own: bool
    ratio: float
    ratio_low: float
    ratio_high: float
    time_us: float
    language: Language
    at: datetime
    submission: str
    confirmations: int = 0


@dataclass(frozen=True)
class Board:
    """A leaderboard. `ranks` is false where the lane has none; `practice` where its times give no points."""

    lane: Lane
    version: int
    ranks: bool
    practice: bool
    entries: tuple[Entry, ...]

    @property
    def own(self) -> Entry | None:
        """The viewer's entry."""
        return next((entry for entry in self.entries if entry.own), None)


def board(session: Session, *, assignment: Assignment, lane: Lane, viewer_id: int | None = None) -> Board:
    """The leaderboard on one lane: of the current version, and of those before it that grade the same way."""
    version = session.get(AssignmentVersion, assignment.version_id) if assignment.version_id is not None else None
    policy = manifest_of(version).policy(lane) if version else None
    if version is None or policy is None or not policy.ranks:
        return Board(lane=lane, version=version.number if version else 0, ranks=False, practice=True, entries=())
    rows = session.execute(_best(assignment, version, lane)).all()
    entries = tuple(_entry(row, rank, viewer_id) for row, rank in zip(rows, _ranks(rows), strict=True))
    return Board(lane=lane, version=version.number, ranks=True, practice=not policy.speed_points, entries=entries)


def lanes_with_board(version: AssignmentVersion) -> tuple[Lane, ...]:
    """The lanes on which this version ranks."""
    manifest = manifest_of(version)
    policies = ((lane, manifest.policy(lane)) for lane in Lane)
    return tuple(lane for lane, policy in policies if policy and policy.ranks)


def _best(assignment: Assignment, version: AssignmentVersion, lane: Lane) -> Select[Any]:
    """Every enrolled student's best valid result, best first.

    The result that counts is looked at, whatever the submission's state: while staff grade it again, its entry stays.
    """
    order = (Result.ratio, Submission.uploaded_at, Submission.id)
    valid = (
        select(
            Submission.user_id,
            Submission.public_id,
            Submission.language,
            Submission.uploaded_at,
            Submission.confirmations,
            Result.ratio,
            Result.ratio_low,
            Result.ratio_high,
            Result.time_us,
            func.row_number().over(partition_by=Submission.user_id, order_by=order).label("own_place"),
        )
        .join(Result, Result.id == Submission.result_id)
        .join(AssignmentVersion, AssignmentVersion.id == Submission.version_id)
        .where(
            Submission.assignment_id == assignment.id,
            AssignmentVersion.grading_hash == version.grading_hash,
            Submission.lane == lane,
            Submission.mode == Mode.submission,
            Submission.review.in_((Review.none, Review.cleared)),
            or_(Result.settled, Submission.review == Review.cleared),
            Result.verdict == Verdict.passed,
            Result.ratio.is_not(None),
        )
        .subquery()
    )
    return (
        select(valid, User.handle, User.name, Enrolment.show_name)
        .join(User, User.id == valid.c.user_id)
        .join(Enrolment, (Enrolment.user_id == User.id) & (Enrolment.course_id == assignment.course_id))
        .where(valid.c.own_place == 1, Enrolment.role == Role.student, Enrolment.dropped_at.is_(None))
        .order_by(valid.c.ratio, valid.c.uploaded_at, valid.c.user_id)
    )


def _ranks(rows: Sequence[Row[Any]]) -> list[int]:
    """Their ranks, best first: a group lasts while intervals begin before its leader's ends."""
    ranks: list[int] = []
    leader_high = float("-inf")
    for place, row in enumerate(rows, start=1):
        if ranks and row.ratio_low <= leader_high:
            ranks.append(ranks[-1])
        else:
            leader_high = row.ratio_high
            ranks.append(place)
    return ranks


def _entry(row: Row[Any], rank: int, viewer_id: int | None) -> Entry:
    return Entry(
        rank=rank,
        name=row.name if row.show_name else row.handle,
        own=row.user_id == viewer_id,
        ratio=row.ratio,
        ratio_low=row.ratio_low,
        ratio_high=row.ratio_high,
        time_us=row.time_us,
        language=row.language,
        at=row.uploaded_at,
        submission=row.public_id,
        confirmations=row.confirmations,
    )


CSV_COLUMNS = ("rank", "name", "ratio", "ratio_low", "ratio_high", "time_us", "language", "at", "confirmations")


def to_csv(entries: Iterable[Entry]) -> str:
    """The board as a table for a spreadsheet."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\r\n")
    table.writerow(CSV_COLUMNS)
    for entry in entries:
        table.writerow([_cell(getattr(entry, column)) for column in CSV_COLUMNS])
    return text.getvalue()


def _cell(value: object) -> str:
    """A cell that no spreadsheet takes for a formula: a name may begin with `=`."""
    text = value.isoformat() if isinstance(value, datetime) else str(value)
    return f"'{text}" if text[:1] in {"=", "+", "-", "@", "\t", "\r", "\n"} else text
