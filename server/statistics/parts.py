"""The queries behind the statistics: one for each number, however many handed in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, case, func, select
from sqlalchemy.orm import Session

from server import db
from server.grading.ranking import EVERYTHING, Boards, outline
from server.models import Enrolment, Grade, Lane, Language, Mode, Role, Submission, Verdict
from server.statistics.numbers import Bin, Summary, log_histogram, summary

RATIO_BINS = 24
MOST_HOURS = 24 * 14
"""The last so many hours before the last of what was handed in are shown."""
MOST_ATTEMPTS = 20
"""More attempts until the first pass are one bin."""


@dataclass(frozen=True)
class Hour:
    """How much was handed in within one hour."""

    begins_at: datetime
    submissions: int
    runs: int


@dataclass(frozen=True)
class LaneTimes:
    """The best ratio of each student on one lane."""

    lane: Lane
    ratios: tuple[Bin, ...]
    summary: Summary | None


@dataclass(frozen=True)
class Counts:
    """How many students tried, handed in and passed; and how much was handed in."""

    tried: int
    handed_in: int
    passed: int
    submissions: int
    runs: int


PASSED = (Submission.mode == Mode.submission) & (Submission.verdict == Verdict.passed)


def one(condition: ColumnElement[bool]) -> Any:
    """1 where it holds, for sums."""
    return case((condition, 1), else_=0)


def student_ids(course_id: int) -> Any:
    """Whose numbers they are: staff try things out."""
    return select(Enrolment.user_id).where(
        Enrolment.course_id == course_id, Enrolment.role == Role.student, Enrolment.dropped_at.is_(None)
    )


def students(session: Session, course_id: int) -> int:
    """How many there are."""
    return session.scalar(select(func.count()).select_from(student_ids(course_id).subquery())) or 0


def counts_of(session: Session, course_id: int, assignment_id: int | None = None) -> dict[int, Counts]:
    """By assignment; each student counts once wherever they count."""
    each = (
        select(
            Submission.assignment_id.label("assignment"),
            Submission.user_id,
            func.sum(one(Submission.mode == Mode.submission)).label("submissions"),
            func.sum(one(Submission.mode == Mode.run)).label("runs"),
            func.max(one(PASSED)).label("passed"),
        )
        .where(Submission.course_id == course_id)
        .group_by(Submission.assignment_id, Submission.user_id)
    )
    if assignment_id is not None:
        each = each.where(Submission.assignment_id == assignment_id)
    part = each.subquery()
    rows = session.execute(
        select(
            part.c.assignment,
            func.count(),
            func.sum(case((part.c.submissions > 0, 1), else_=0)),
            func.sum(part.c.passed),
            func.sum(part.c.submissions),
            func.sum(part.c.runs),
        )
        # Of the groups, not of the rows: so they are counted in the order of one index.
        .where(part.c.user_id.in_(student_ids(course_id)))
        .group_by(part.c.assignment)
    )
    return {row[0]: Counts(*(int(value) for value in row[1:])) for row in rows}


def points_of_all(session: Session, course_id: int) -> tuple[dict[int, list[float]], dict[int, float], list[float]]:
    """Points by assignment, what each can give, and each student's sum."""
    points: dict[int, list[float]] = {}
    possible: dict[int, float] = {}
    totals: dict[int, float] = {}
    query = select(Grade.assignment_id, Grade.user_id, Grade.points, Grade.possible).where(
        Grade.course_id == course_id, Grade.user_id.in_(student_ids(course_id))
    )
    for assignment_id, user_id, got, most in db.plain_rows(session, query):
        points.setdefault(assignment_id, []).append(got)
        possible[assignment_id] = max(most, possible.get(assignment_id, 0.0))
        totals[user_id] = totals.get(user_id, 0.0) + got
    return points, possible, list(totals.values())


def best_ratios(session: Session, assignment_id: int) -> dict[tuple[int, Lane], float]:
    """The best ratio of each student on each lane, as the leaderboards have it."""
    rows = session.execute(outline(EVERYTHING, Boards([assignment_id])))
    return {(row.user_id, Lane(row.lane)): row.ratio for row in rows}


def lanes_of(session: Session, assignment_id: int) -> tuple[LaneTimes, ...]:
    """The best ratios on each lane that has any."""
    best = best_ratios(session, assignment_id)
    by_lane = {lane: [ratio for (_, on), ratio in best.items() if on is lane] for lane in Lane}
    return tuple(
        LaneTimes(lane, log_histogram(ratios, RATIO_BINS), summary(ratios))
        for lane, ratios in by_lane.items()
        if ratios
    )


def attempts_of(session: Session, course_id: int, assignment_id: int) -> tuple[dict[int, int], int]:
    """Submissions up to the first that passed, counted by student; and who never passed."""
    first = func.min(case((PASSED, Submission.id)))
    rows = session.execute(
        select(Submission.user_id, first)
        .where(
            Submission.assignment_id == assignment_id,
            Submission.mode == Mode.submission,
            Submission.user_id.in_(student_ids(course_id)),
        )
        .group_by(Submission.user_id)
    ).all()
    numbers = session.scalars(
        select(Submission.number).where(Submission.id.in_([found for _, found in rows if found is not None]))
    )
    counted = Counter(min(number, MOST_ATTEMPTS) for number in numbers)
    return dict(sorted(counted.items())), sum(found is None for _, found in rows)


def mix_of(session: Session, course_id: int, assignment_id: int) -> tuple[dict[Verdict, int], dict[Language, int]]:
    """Verdicts and languages of all submissions, the most frequent first."""
    verdicts: Counter[Verdict] = Counter()
    languages: Counter[Language] = Counter()
    rows = session.execute(
        select(Submission.verdict, Submission.language, func.count())
        .where(
            Submission.assignment_id == assignment_id,
            Submission.mode == Mode.submission,
            Submission.user_id.in_(student_ids(course_id)),
        )
        .group_by(Submission.verdict, Submission.language)
    )
    for verdict, language, count in rows:
        languages[language] += count
        if verdict is not None:
            verdicts[verdict] += count
    return dict(verdicts.most_common()), dict(languages.most_common())


def hours_of(session: Session, assignment_id: int) -> tuple[Hour, ...]:
    """By hour, in UTC; the last two weeks of what was handed in."""
    last = session.scalar(select(func.max(Submission.uploaded_at)).where(Submission.assignment_id == assignment_id))
    if last is None:
        return ()
    end = _hour(last)
    begin = end - timedelta(hours=MOST_HOURS - 1)
    query = select(Submission.uploaded_at, Submission.mode).where(
        Submission.assignment_id == assignment_id, Submission.uploaded_at >= begin
    )
    counted = Counter((_hour(at), mode) for at, mode in db.plain_rows(session, query))
    first = min((at for at, _ in counted), default=end)
    hours = [first + timedelta(hours=number) for number in range(int((end - first) / timedelta(hours=1)) + 1)]
    return tuple(Hour(at, counted[at, Mode.submission], counted[at, Mode.run]) for at in hours)


def _hour(at: datetime) -> datetime:
    return at.replace(minute=0, second=0, microsecond=0)


def longest(hours: Sequence[Hour]) -> int:
    """The most that was handed in within one hour."""
    return max((hour.submissions + hour.runs for hour in hours), default=0)
