"""A course's own clock: what a form's date and time mean there, and where its days begin."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from server.errors import InvalidInputError

FORMAT = "%Y-%m-%dT%H:%M"
"""What `<input type="datetime-local">` holds."""
_FORMATS = (FORMAT, "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M")
_FIRST, _LAST = 2000, 2100


def typed(at: datetime | None, zone: str) -> str:
    """A time as a form holds it; `""` for none."""
    return at.astimezone(ZoneInfo(zone)).strftime(FORMAT) if at is not None else ""


def typed_exactly(at: datetime, zone: str) -> str:
    """The same with its seconds, where it has some."""
    return at.astimezone(ZoneInfo(zone)).strftime(_FORMATS[1]) if at.second else typed(at, zone)


def read(text: str, zone: str, *, field: str, current: datetime | None = None) -> datetime | None:
    """What was typed, in UTC; `None` for nothing.

    Args:
        current: what stands there. A field that still says it keeps it, with its seconds, and even where its hour
            comes twice.

    Raises:
        InvalidInputError: it is no date and time, or one that the clock in `zone` skips or shows twice.
    """
    text = text.strip()
    if not text:
        return None
    if current is not None and text == typed(current, zone):
        return current
    wall = _wall(text, field)
    first, second = (wall.replace(tzinfo=ZoneInfo(zone), fold=fold) for fold in (0, 1))
    if first.utcoffset() != second.utcoffset():
        # Between the two stands a change of the clock; a skipped time does not survive the way to UTC and back.
        survives = first.astimezone(UTC).astimezone(ZoneInfo(zone)).replace(tzinfo=None) == wall
        why = "occurs twice on that day" if survives else "is skipped on that day"
        raise InvalidInputError(
            f"{wall:%H:%M} {why}, when the clocks in {zone} change. Choose an hour earlier or later.", field=field
        )
    return first.astimezone(UTC)


def midnights(now: datetime, zone: str) -> tuple[datetime, datetime]:
    """The midnights between which `now` lies on the clock in `zone`; a day may have 23 or 25 hours."""
    local = ZoneInfo(zone)
    today = now.astimezone(local).date()
    begins, ends = (datetime.combine(day, time(), tzinfo=local) for day in (today, today + timedelta(days=1)))
    return begins.astimezone(UTC), ends.astimezone(UTC)


def days_later(at: datetime, zone: str, days: int) -> datetime:
    """So many days later at the same hour on the clock in `zone`."""
    return (at.astimezone(ZoneInfo(zone)) + timedelta(days=days)).astimezone(UTC)


def shifted(at: datetime | None, zone: str, *, weeks: int) -> datetime | None:
    """So many weeks later at the same hour of the same weekday on the clock in `zone`."""
    if at is None:
        return None
    return days_later(at, zone, 7 * weeks)


def _wall(text: str, field: str) -> datetime:
    for known in _FORMATS:
        try:
            found = datetime.strptime(text, known)  # noqa: DTZ007  # what the clock on the wall says
        except ValueError:
            continue
        if _FIRST <= found.year <= _LAST:
            return found
        raise InvalidInputError(f"The year has to be between {_FIRST} and {_LAST}.", field=field)
    raise InvalidInputError(f"{text[:40]!r} is not a date and time such as 2026-11-29T23:59.", field=field)
