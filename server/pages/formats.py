"""Numbers and times as people read them: always with their unit, never with more digits than they carry."""

from __future__ import annotations

import functools
import math
from datetime import UTC, datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

from markupsafe import Markup, escape

from server.gradebook.points import plain
from server.http.templates import visible

_MINUTE_S = 60
_HOUR_S = 3600
_DAY_S = 86_400
_TENS_FROM_S = 20.0


@functools.lru_cache(maxsize=4096)
def points(value: float) -> str:
    """`8`, `7.5`, `8.25`."""
    return plain(value)


def count(value: int) -> str:
    """`16,777,216`."""
    return f"{value:,}"


def share(part: int, whole: int) -> str:
    """`2.77 %`; what is not all of it never reads as 100 %, and what is something never as 0 %."""
    percent = 100 * part / whole if whole else 0.0
    if part in {0, whole} or 0.1 <= percent < 99.9:  # noqa: PLR2004  # beyond, three digits would round to all or nothing
        return f"{percent:.3g} %"
    return "> 99.9 %" if percent > 1 else "< 0.1 %"


def plural(value: int, one: str, many: str = "") -> str:
    """`1 case`, `3 cases`."""
    return f"{value:,} {one if value == 1 else many or one + 's'}"


def number(value: float) -> str:
    """`7`, `0.75`, `134,217,728`: a number that somebody typed, as it is."""
    return f"{value:,.12g}"


def ordinal(value: int) -> str:
    """`1st`, `2nd`, `13th`."""
    teen = value % 100 in {11, 12, 13}
    return f"{value}{'th' if teen else {1: 'st', 2: 'nd', 3: 'rd'}.get(value % 10, 'th')}"


def significant(value: float, digits: int = 3) -> str:
    """`0.0128`, `1.34`, `1.30`, `183`: significant digits, with the zeros that they are."""
    text = f"{value:#.{digits}g}".rstrip(".")
    return text if "e" not in text else f"{value:,.0f}" if abs(value) >= 1 else f"{value:.{digits - 1}e}"


def figure(value: float) -> str:
    """A ratio's digits: `0.97`, `1.34`, `13.4`, `0.0128`."""
    return f"{value:.2f}" if 0.1 <= value < 10 else significant(value)  # noqa: PLR2004  # two decimals line up there


def ratio(value: float) -> str:
    """`1.34×`."""
    return f"{figure(value)}×"


def interval(low: float, high: float) -> str:
    """`1.31–1.37`; a narrow one with the digits that tell its ends apart, `1.078–1.082`."""
    one, other = figure(low), figure(high)
    if one == other and low < high:
        one, other = significant(low, 4), significant(high, 4)
    return f"{one}–{other}"


def estimate(low_s: float, likely_s: float, high_s: float) -> str:
    """`about 3 s`, `about 40 s (25 to 70)`, `about 3 min (2 to 5)`, `about 2.5 h (2 to 4)`: one unit for all three."""
    if high_s < 2 * _MINUTE_S:
        unit, length, step = "s", 1.0, 1.0 if high_s < _TENS_FROM_S else 5.0
    elif high_s < 3 * _HOUR_S:
        unit, length, step = "min", _MINUTE_S, 1.0
    else:
        unit, length, step = "h", _HOUR_S, 0.5
    # The interval is rounded outwards, so that it holds at least what it promises.
    low, high = math.floor(low_s / length / step) * step, math.ceil(high_s / length / step) * step
    likely = max(round(likely_s / length / step) * step, step)
    if high - low <= step:
        return f"about {high:g} {unit}"
    return f"about {likely:g} {unit} ({'under ' if low == 0 else f'{low:g} to '}{high:g})"


def duration(seconds: float) -> str:
    """`0.42 s`, `3.1 s`, `12 s`, `2 min 5 s`, `3 h 10 min`."""
    if seconds < 1:
        return f"{seconds:.2f} s"
    if seconds < 10:  # noqa: PLR2004  # a tenth still says something there
        return f"{seconds:.1f} s"
    if seconds < _MINUTE_S:
        return f"{seconds:.0f} s"
    if seconds < _HOUR_S:
        return f"{int(seconds // _MINUTE_S)} min {int(seconds % _MINUTE_S)} s"
    return f"{int(seconds // _HOUR_S)} h {int(seconds % _HOUR_S // _MINUTE_S)} min"


def microseconds(value: float) -> str:
    """`28.8 µs`, `1.39 ms`, `2.41 s`."""
    for factor, unit in ((1e6, "s"), (1e3, "ms")):
        if value >= factor:
            return f"{significant(value / factor)} {unit}"
    return f"{significant(value)} µs"


def byte_size(value: float) -> str:
    """`312 B`, `1.5 KiB`, `192 MiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":  # noqa: PLR2004  # bytes to a KiB
            return f"{significant(value)} {unit}" if unit != "B" else f"{value:.0f} B"
        value /= 1024
    raise AssertionError  # the loop returns at GiB


def rate(tera: float, unit: str) -> str:
    """`3.83 TB/s`, `812 GB/s`, `14.2 TFLOP/s`: of so many 1e12 a second."""
    for factor, prefix in ((1.0, "T"), (1e-3, "G"), (1e-6, "M")):
        if tera >= factor:
            return f"{significant(tera / factor)} {prefix}{unit}/s"
    return f"{significant(tera * 1e6)} M{unit}/s"


def amount(value: float, unit: str) -> str:
    """`1.61 GB`, `137 GFLOP`, `512 B`: by thousands, as data sheets count."""
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{significant(value / factor)} {prefix}{unit}"
    return f"{value:.0f} {unit}"


def percent(part: float) -> str:
    """`61 %`, `6.1 %`, `0.61 %`: of a whole that is 1."""
    return f"{significant(100 * part, 2) if part < 1 else f'{100 * part:.0f}'} %"


def moment(value: datetime, zone: str = "UTC") -> str:
    """`Sun 29 Nov, 23:59 CET`, in the given IANA zone."""
    local = value.astimezone(ZoneInfo(zone))
    return f"{local:%a} {local.day} {local:%b}, {local:%H:%M} {local:%Z}"


@lru_cache(maxsize=8192)
def when(value: datetime, zone: str = "UTC", *, both: bool = False) -> Markup:
    """A `<time>` in the course's zone; a script adds the reader's own, beside it with `both`, else as its title.

    It is kept in mind: pages show the same dates over and over.
    """
    stamp = value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    more, said = " data-both" if both else "", escape(moment(value, zone))
    text = f'<time class="nowrap" datetime="{stamp}" data-zone="{escape(zone)}"{more}>{said}</time>'
    return Markup(text)  # noqa: S704  # its parts are escaped


def relative(value: datetime, now: datetime) -> str:
    """`in 8 days`, `2 hours ago`, `now`."""
    seconds = (value - now).total_seconds()
    size = abs(seconds)
    for unit, length in (("day", _DAY_S), ("hour", _HOUR_S), ("minute", _MINUTE_S)):
        if size >= length:
            text = plural(int(size // length), unit)
            return f"in {text}" if seconds > 0 else f"{text} ago"
    return "in less than a minute" if seconds > 0 else "just now"


def ticks(text: str) -> Markup:
    """Text in which `backticks` mark code."""
    parts = visible(text).split("`")
    if len(parts) % 2 == 0:
        return escape("`".join(parts))
    return Markup("").join(Markup("<code>{}</code>").format(p) if i % 2 else escape(p) for i, p in enumerate(parts))
