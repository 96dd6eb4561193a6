"""One rung's row of the schedule: as a form holds it, and what was meant by it. Pure."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from autograder.contract import Lane
from server.courses import clock
from server.errors import InvalidInputError
from server.models import Assignment

TIMES = {
    "open_at": "opens", "due_at": "due", "late_until": "late until", "solutions_released_at": "solutions shown",
    "leaderboard_freeze_at": "board freezes",
}  # fmt: skip
"""The fields that are dates, and what the page calls them."""
FIELDS = ("published", *TIMES, "weight", "submissions_per_day", "runs_per_hour", "group_size", "lanes")
T = TypeVar("T")
MOST_WEIGHT, MOST_A_DAY, MOST_AN_HOUR, MOST_TOGETHER = 1000.0, 10_000, 10_000, 20


@dataclass(frozen=True)
class Decided:
    """What staff decide about one rung; the columns of `Assignment` with these names."""

    published: bool
    open_at: datetime | None
    due_at: datetime | None
    late_until: datetime | None
    solutions_released_at: datetime | None
    leaderboard_freeze_at: datetime | None
    weight: float
    submissions_per_day: int | None
    runs_per_hour: int | None
    group_size: int
    lanes: list[str] | None

    @classmethod
    def of(cls, row: Assignment) -> Decided:
        """What stands there."""
        return cls(**{name: getattr(row, name) for name in FIELDS})


def texts_of(row: Assignment, zone: str, lanes: Sequence[Lane]) -> dict[str, str]:
    """The row as its form holds it; `lanes` are those of its files."""
    offered = [lane.value for lane in lanes if row.lanes is None or lane.value in row.lanes]
    return {
        "published": "on" if row.published else "",
        **{name: clock.typed(getattr(row, name), zone) for name in TIMES},
        "weight": f"{row.weight:.12g}",
        "submissions_per_day": _or_nothing(row.submissions_per_day),
        "runs_per_hour": _or_nothing(row.runs_per_hour),
        "group_size": str(row.group_size),
        "lanes": " ".join(offered),
    }


def digest(texts: Mapping[str, str]) -> str:
    """A name for what a form held, so that a row that nobody touched is told from one that was edited."""
    plain = json.dumps([texts.get(name, "").strip() for name in FIELDS])
    return hashlib.sha256(plain.encode()).hexdigest()[:32]


def read(
    texts: Mapping[str, str], row: Assignment, zone: str, lanes: Sequence[Lane]
) -> tuple[Decided | None, dict[str, str]]:
    """What was meant, or for each field that cannot be taken why."""
    problems: dict[str, str] = {}
    found: dict[str, object] = {"published": bool(texts.get("published", "").strip())}
    for name in TIMES:
        found[name] = _try(problems, _time(texts.get(name, ""), name, row, zone))
    found["weight"] = _try(problems, lambda: _weight(texts.get("weight", "")))
    found["submissions_per_day"] = _try(problems, _count("submissions_per_day", texts, MOST_A_DAY))
    found["runs_per_hour"] = _try(problems, _count("runs_per_hour", texts, MOST_AN_HOUR))
    found["group_size"] = _try(problems, _count("group_size", texts, MOST_TOGETHER)) or 1
    found["lanes"] = _try(problems, lambda: _lanes(texts.get("lanes", ""), lanes))
    if not problems:
        decided = Decided(**found)  # type: ignore[arg-type]  # each was read as its type a line ago
        problems = _out_of_order(decided)
        if not problems:
            return decided, {}
    return None, problems


def _out_of_order(decided: Decided) -> dict[str, str]:
    opens, due, closes = decided.open_at, decided.due_at, decided.late_until
    freezes, solutions = decided.leaderboard_freeze_at, decided.solutions_released_at
    return {
        field: why
        for field, is_wrong, why in (
            ("due_at", bool(opens and due and due <= opens), "It would be due before it opens."),
            ("late_until", bool(closes and not due), "Late submissions need a due date."),
            ("late_until", bool(closes and due and closes < due), "It would close before it is due."),
            (
                "leaderboard_freeze_at",
                bool(freezes and not due),
                "A leaderboard freezes until the due date, but there is none.",
            ),
            ("leaderboard_freeze_at", bool(freezes and due and freezes >= due), "It has to freeze before it is due."),
            ("leaderboard_freeze_at", bool(freezes and opens and freezes <= opens), "It would freeze before it opens."),
            (
                "solutions_released_at",
                bool(solutions and due and not closes),
                "Late submissions would count for ever: set “Late until”.",
            ),
            (
                "solutions_released_at",
                bool(solutions and closes and solutions < closes),
                "Submissions would still count: solutions can be shown only afterwards.",
            ),
        )
        if is_wrong
    }


def _try(problems: dict[str, str], act: Callable[[], T]) -> T | None:
    try:
        return act()
    except InvalidInputError as error:
        problems[error.field] = error.message
        return None


def _time(text: str, name: str, row: Assignment, zone: str) -> Callable[[], datetime | None]:
    return lambda: clock.read(text, zone, field=name, current=getattr(row, name))


def _weight(text: str) -> float:
    try:
        weight = float(text.strip() or "1")
    except ValueError:
        weight = math.nan
    if not 0 <= weight <= MOST_WEIGHT:
        raise InvalidInputError(f"A weight is a number from 0 to {MOST_WEIGHT:g}.", field="weight")
    return weight


def _count(name: str, texts: Mapping[str, str], most: int) -> Callable[[], int | None]:
    text = texts.get(name, "").strip()

    def act() -> int | None:
        if not text:
            return None
        if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= most):
            raise InvalidInputError(f"Enter a whole number from 1 to {most:,}, or leave it empty.", field=name)
        return int(text)

    return act


def _lanes(text: str, lanes: Sequence[Lane]) -> list[str] | None:
    """`None` where all are chosen: a lane that the files get later is then offered too."""
    chosen = set(text.split())
    if unknown := chosen - {lane.value for lane in lanes}:
        raise InvalidInputError(
            f"The assignment's files have no lane {', '.join(sorted(unknown))[:60]}.", field="lanes"
        )
    if not chosen and lanes:
        raise InvalidInputError("It needs at least one lane; to hide it, make it invisible.", field="lanes")
    return None if len(chosen) == len(lanes) else [lane.value for lane in lanes if lane.value in chosen]


def _or_nothing(value: int | None) -> str:
    return "" if value is None else str(value)
