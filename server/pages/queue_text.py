"""What a page says to somebody who waits: how many are before them, and about how long it takes."""

from __future__ import annotations

from typing import Any

from server.grading.forecast import Wait
from server.models import Lane, Line
from server.pages.formats import estimate
from server.pages.labels import LANES

PLACE = "place"
"""The part of a submission's page that moves while it waits; its template needs nothing but `place_context`."""


def place_context(wait: Wait | None, lane: Lane, *, own: bool) -> dict[str, Any]:
    """The two lines of that part, empty where there is nothing to say; `own`: the viewer handed it in."""
    return {"place": place_text(wait, lane, own=own), "place_note": place_note(wait)}


def place_text(wait: Wait | None, lane: Lane, *, own: bool = True) -> str:
    """`12 before you · result in about 3 min (2 to 5)`, or why there is no time."""
    if wait is None or wait.line is Line.confirm:
        return ""  # It has its grade, and its turn when nobody else waits.
    who, first = ("you", "You are next") if own else ("it", "It is next")
    ahead = f"{wait.ahead:,} before {who}" if wait.ahead else first
    if not wait.has_node:
        return f"{ahead}. No node grades the {LANES[lane]} lane right now, so the wait is unknown."
    if wait.low_s is None or wait.likely_s is None or wait.high_s is None:
        return f"{ahead}. No node in service does this part of the grading right now."
    what = "times" if wait.line is Line.measuring else "result"
    return f"{ahead} · {what} in {estimate(wait.low_s, wait.likely_s, wait.high_s)}"


def place_note(wait: Wait | None) -> str:
    """What has to be said beside the time, or what is sure without one."""
    if wait is None or wait.line is Line.confirm:
        return ""
    if not wait.has_node:
        return "It is stored and keeps its place; it is graded when a node comes back."
    if not wait.measured:
        return "Nothing has been graded on this lane yet, so this is a guess."
    if wait.approximate:
        return "The queue is very long, so this is a rough estimate."
    return ""
