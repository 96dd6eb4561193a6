"""What regrades and requests for them are called on pages."""

from __future__ import annotations

from collections.abc import Mapping

from server.models import RegradeItemState, RegradeKind, RegradeState, RequestState, Why
from server.pages.words import Label
from server.regrades.inbox import Box
from server.regrades.selection import Which
from server.regrades.views import Show

STATES: Mapping[RegradeState, Label] = {
    RegradeState.drafted: Label("Draft", "dash", ""),
    RegradeState.running: Label("Running", "play", "busy"),
    RegradeState.paused: Label("Paused", "clock", ""),
    RegradeState.ready: Label("Ready to decide", "eye", "care"),
    RegradeState.applying: Label("Being applied", "play", "busy"),
    RegradeState.applied: Label("Applied", "check", ""),
    RegradeState.discarded: Label("Discarded", "dash", ""),
    RegradeState.rolling_back: Label("Being rolled back", "play", "busy"),
    RegradeState.rolled_back: Label("Rolled back", "arrow", ""),
}
KINDS: Mapping[RegradeKind, str] = {
    RegradeKind.rerun: "Graded again",
    RegradeKind.rescore: "Worked out again, without grading",
}
WHICH: Mapping[Which, str] = {
    Which.counting: "Those that count in the gradebook",
    Which.latest: "Each student's latest",
    Which.best: "Each student's best",
    Which.all: "All",
    Which.verdict: "All with one of some verdicts",
    Which.picked: "Picked ones",
}
ITEMS: Mapping[RegradeItemState, Label] = {
    RegradeItemState.waiting: Label("Waits", "clock", ""),
    RegradeItemState.queued: Label("In the queue", "play", "busy"),
    RegradeItemState.found: Label("Known", "eye", ""),
    RegradeItemState.failed: Label("Failed, ours", "alert", "care"),
    RegradeItemState.withdrawn: Label("Left out", "dash", ""),
    RegradeItemState.applied: Label("Applied", "check", ""),
    RegradeItemState.kept: Label("Kept as it was", "dash", ""),
    RegradeItemState.conflict: Label("Changed since", "alert", "care"),
    RegradeItemState.rolled_back: Label("Rolled back", "arrow", ""),
}
WHY: Mapping[Why, str] = {
    Why.unchanged: "Unchanged",
    Why.within_noise: "Within noise",
    Why.speed_changed: "Measured faster or slower",
    Why.verdict_changed: "Same tests, another verdict",
    Why.tests_changed: "The tests changed",
    Why.points_changed: "Points or tiers changed",
    Why.first_result: "Had no result",
}
WHY_MEANS: Mapping[Why, str] = {
    Why.unchanged: "The same was found.",
    Why.within_noise: "The intervals of the two speeds overlap: points are the better of both.",
    Why.speed_changed: "Graded the same way; the intervals of the two speeds do not overlap.",
    Why.verdict_changed: "Graded the same way, and found otherwise: such a kernel, or such a test, is worth a look.",
    Why.tests_changed: "The proposal's version grades by other cases, tolerances or another reference.",
    Why.points_changed: "The same finding is worth more or less by this version's points, tiers or formula.",
    Why.first_result: "Grading had failed on our side before.",
}
SHOW: Mapping[Show, str] = {
    Show.all: "All",
    Show.raised: "Raised",
    Show.lowered: "Lowered",
    Show.same: "Points as they are",
    Show.noise: "Within noise",
    Show.kept: "Worse, and kept",
    Show.trouble: "Failed or changed since",
    Show.open: "Still open",
}
REQUESTS: Mapping[RequestState, Label] = {
    RequestState.open: Label("Open", "clock", ""),
    RequestState.accepted: Label("Accepted", "check", ""),
    RequestState.declined: Label("Declined", "dash", ""),
}
BOXES: Mapping[Box, str] = {
    Box.open: "Open",
    Box.retiming: "Being re-timed",
    Box.reopened: "Reopened",
    Box.accepted: "Accepted",
    Box.declined: "Declined",
    Box.all: "All",
}
