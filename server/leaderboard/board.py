"""The leaderboard of an assignment on one lane, and who may look at it.

    board        boards, and what of a course somebody sees
    showcase     who leads a course's boards, and the newest entries
    standings    all boards of a course together
    records      how the record of a board came down
    milestones   baselines of ours on the boards
    limits       the work of the ranked cases, and what the lane's device could do
    tables       boards for a spreadsheet

The ranking itself is one query, `server.grading.ranking`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, exists, select
from sqlalchemy.orm import Session

from autograder import languages as records
from autograder.contract import Lane, Language
from server.courses.courses import AssignmentDetail, spec_of
from server.grading.ranking import EVERYTHING, Boards, Selection, best, crowds, ranks
from server.leaderboard.limits import CaseWork, limit_us, work_of
from server.leaderboard.milestones import Baseline, baselines
from server.models import Assignment, AssignmentVersion, Enrolment, Mode, Result, Role, Submission

__all__ = [
    "EVERYTHING",
    "Board",
    "Entry",
    "Selection",
    "board",
    "chief_lane",
    "crowds_of",
    "frozen_at",
    "is_practice",
    "languages_of",
    "practice_language",
    "sections_of",
]


@dataclass(frozen=True)
class Entry:
    """One student's place.

    Attributes:
        rank: shared by entries whose intervals overlap that of the first of their group.
        name: the name if they chose to show it, otherwise their pseudonym.
        own: it is the viewer's.
        ratio, ratio_low, ratio_high: submission / reference; below 1 is faster than the reference.
        time_us: beside it, the time on this lane; geometric means over the ranked cases, as its ends are.
        limit_share: the device's limit by its data sheet over that time; `None` where none is known.
        throughput: the bytes or operations that the exercise needs over that time, in 1e12 `Board.work.unit` a second.
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
    user_id: int
    handle: str
    time_low_us: float | None = None
    time_high_us: float | None = None
    limit_share: float | None = None
    throughput: float | None = None
    confirmations: int = 0


@dataclass(frozen=True)
class Board:
    """A leaderboard. `ranks` is false where the lane has none; `practice` where its times give no points.

    Attributes:
        work: what the throughput counts; `None` where the manifest has no formula for it.
        limit_us: the least time that the lane's device needs by its data sheet; `None` where none is known.
        baselines: milestones of ours, fastest first.
    """

    lane: Lane
    version: int
    ranks: bool
    practice: bool
    entries: tuple[Entry, ...]
    selection: Selection = EVERYTHING
    limit_us: float | None = None
    work: CaseWork | None = None
    baselines: tuple[Baseline, ...] = ()

    @property
    def own(self) -> Entry | None:
        """The viewer's entry."""
        return next((entry for entry in self.entries if entry.own), None)


def board(
    session: Session,
    *,
    assignment: Assignment,
    lane: Lane,
    viewer_id: int | None = None,
    selection: Selection = EVERYTHING,
) -> Board:
    """The leaderboard on one lane: of the current version, and of those before it that grade the same way."""
    version = session.get(AssignmentVersion, assignment.version_id) if assignment.version_id is not None else None
    policy = spec_of(version).policy(lane) if version else None
    if version is None or policy is None or not policy.ranks:
        return Board(lane=lane, version=version.number if version else 0, ranks=False, practice=True, entries=())
    limit, work = limit_us(version, lane), work_of(version, lane)
    rows = session.execute(best(selection, Boards([assignment.id], [lane]), more=(Result.pooled,))).all()
    return Board(
        lane=lane,
        version=version.number,
        ranks=True,
        practice=not policy.speed_points,
        entries=_entries(rows, viewer_id, limit, work),
        selection=selection,
        limit_us=limit,
        work=work,
        baselines=baselines(session, assignment, lane, language=selection.language),
    )


def _entries(
    rows: Sequence[Row[Any]], viewer_id: int | None, limit: float | None, work: CaseWork | None
) -> tuple[Entry, ...]:
    """The entries of one board whose rows stand best first."""
    places = ranks([(row.ratio_low, row.ratio_high) for row in rows])
    return tuple(_entry(row, rank, viewer_id, limit, work) for row, rank in zip(rows, places, strict=True))


def chief_lane(session: Session, details: Sequence[AssignmentDetail]) -> Lane | None:
    """The lane whose boards are shown first: the one that gives most of them speed points, of those that are used."""
    boards = [(detail, lane) for detail in details for lane in detail.board_lanes]
    lanes = list(dict.fromkeys(lane for _, lane in boards))
    if len(lanes) < 2:  # noqa: PLR2004  # there is nothing to choose
        return next(iter(lanes), None)
    rows = [detail.row.id for detail in details]
    used = session.execute(select(*(_is_used(rows, lane) for lane in lanes))).one()
    in_use = [lane for lane, is_used in zip(lanes, used, strict=True) if is_used] or lanes
    return max(in_use, key=lambda lane: sum(not is_practice(detail, each) for detail, each in boards if each is lane))


def _is_used(assignment_ids: Sequence[int], lane: Lane) -> ColumnElement[bool]:
    return exists().where(
        Submission.assignment_id.in_(assignment_ids),
        Submission.lane == lane,
        Submission.mode == Mode.submission,
        Submission.result_id.is_not(None),
    )


def is_practice(detail: AssignmentDetail, lane: Lane) -> bool:
    """Whether times on the lane give no points."""
    policy = detail.spec.policy(lane)
    return policy is None or not policy.speed_points


def crowds_of(
    session: Session, assignment_ids: Sequence[int], selection: Selection = EVERYTHING
) -> dict[Lane, dict[Language, int]]:
    """How many entries there are on each lane in each language, over all boards of these assignments."""
    found: dict[Lane, dict[Language, int]] = {}
    for row in session.execute(crowds(selection, Boards(assignment_ids))):
        lane = found.setdefault(row.lane, {})
        lane[row.language] = lane.get(row.language, 0) + row.people
    return found


def practice_language(
    details: Sequence[AssignmentDetail], lane: Lane, entries: Mapping[Language, int]
) -> Language | None:
    """The language that a practice board is shown in first: the one with most entries; `None` where points are given.

    An interpreter's times and an emulator's say nothing about each other, so no practice board ranks them together.
    """
    languages = languages_of(details, lane)
    if not all(is_practice(detail, lane) for detail in details) or not languages:
        return None
    return max(languages, key=lambda language: entries.get(language, 0))


def languages_of(details: Sequence[AssignmentDetail], lane: Lane) -> tuple[Language, ...]:
    """The languages of these assignments' boards on a lane: those that it runs."""
    offered = {language for detail in details if lane in detail.board_lanes for language in detail.spec.languages}
    return tuple(language for language in Language if language in offered and records.of(language).loader(lane))


def frozen_at(assignment: Assignment, now: datetime) -> datetime | None:
    """Since when the board shows students what it was; `None` while it does not.

    It opens when the assignment is due. What was handed in before it froze stands on it whenever it was graded.
    """
    since, due_at = assignment.leaderboard_freeze_at, assignment.due_at
    if since is None or now < since or (due_at is not None and (now >= due_at or since >= due_at)):
        return None
    return since


def sections_of(session: Session, course_id: int) -> tuple[str, ...]:
    """The sections that students of the course are in."""
    query = select(Enrolment.section).where(
        Enrolment.course_id == course_id,
        Enrolment.role == Role.student,
        Enrolment.dropped_at.is_(None),
        Enrolment.section != "",
    )
    return tuple(session.scalars(query.distinct().order_by(Enrolment.section)))


def _entry(row: Row[Any], rank: int, viewer_id: int | None, limit: float | None, work: CaseWork | None) -> Entry:
    low, high = _time_ends(getattr(row, "pooled", ()))
    return Entry(
        rank=rank,
        name=row.name if row.show_name else row.handle,
        own=row.user_id == viewer_id,
        ratio=row.ratio,
        ratio_low=row.ratio_low,
        ratio_high=row.ratio_high,
        time_us=row.time_us,
        time_low_us=low,
        time_high_us=high,
        limit_share=limit / row.time_us if limit and row.time_us else None,
        throughput=work.tera(row.time_us) if work and row.time_us else None,
        language=row.language,
        at=row.uploaded_at,
        submission=row.public_id,
        user_id=row.user_id,
        handle=row.handle,
        confirmations=row.confirmations,
    )


def _time_ends(cases: Sequence[Mapping[str, Any]]) -> tuple[float | None, float | None]:
    """The ends of the time's interval: together never narrower than the interval of the mean would be."""
    if not cases:
        return None, None
    low, high = (
        math.exp(math.fsum(math.log(case[end]) for case in cases) / len(cases))
        for end in ("time_low_us", "time_high_us")
    )
    return low, high
