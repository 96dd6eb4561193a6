"""What regrades and requests for them are called on pages."""

from __future__ import annotations

from collections.abc import Mapping

from server.models import RegradeItemState, RegradeKind, RegradeState, RequestState, Why
from server.pages.labels import Label
from server.regrades.inbox import Box
from server.regrades.selection import Which
from server.regrades.views import Show

STATES: Mapping[RegradeState, Label] = {
    RegradeState.drafted: Label("Draft", "dash", ""),
    RegradeState.running: Label("Running", "play", "busy"),
    RegradeState.paused: Label("Paused", "clock", ""),
    RegradeState.ready: Label("Ready to apply", "eye", "care"),
    RegradeState.applying: Label("Being applied", "play", "busy"),
    RegradeState.applied: Label("Applied", "check", ""),
    RegradeState.discarded: Label("Discarded", "dash", ""),
    RegradeState.rolling_back: Label("Being rolled back", "play", "busy"),
    RegradeState.rolled_back: Label("Rolled back", "arrow", ""),
}
KINDS: Mapping[RegradeKind, str] = {
    RegradeKind.rerun: "Graded again",
    RegradeKind.rescore: "Points computed again, without grading",
}
WHICH: Mapping[Which, str] = {
    Which.counting: "Those that count in the gradebook or stand on a leaderboard",
    Which.latest: "Each student's latest",
    Which.best: "Each student's best",
    Which.all: "All",
    Which.verdict: "All with certain verdicts",
    Which.picked: "Selected ones",
}
ITEMS: Mapping[RegradeItemState, Label] = {
    RegradeItemState.waiting: Label("Waiting", "clock", ""),
    RegradeItemState.queued: Label("In the queue", "play", "busy"),
    RegradeItemState.found: Label("Graded", "eye", ""),
    RegradeItemState.failed: Label("Failed on our side", "alert", "care"),
    RegradeItemState.withdrawn: Label("Left out", "dash", ""),
    RegradeItemState.applied: Label("Applied", "check", ""),
    RegradeItemState.kept: Label("Unchanged", "dash", ""),
    RegradeItemState.conflict: Label("Changed since", "alert", "care"),
    RegradeItemState.rolled_back: Label("Rolled back", "arrow", ""),
}
WHY: Mapping[Why, str] = {
    Why.unchanged: "Unchanged",
    Why.within_noise: "Within noise",
    Why.speed_changed: "Measured faster or slower",
    Why.verdict_changed: "Same tests, different verdict",
    Why.tests_changed: "The tests changed",
    Why.points_changed: "Points or tiers changed",
    Why.first_result: "Had no result",
}
WHY_MEANS: Mapping[Why, str] = {
    Why.unchanged: "The result is the same.",
    Why.within_noise: "The two speed intervals overlap, so the better points count.",
    Why.speed_changed: "Graded the same way, but the two speed intervals do not overlap.",
    Why.verdict_changed: "Graded the same way with a different verdict: look at the kernel and the test.",
    Why.tests_changed: "The proposed version has other cases, tolerances or another reference.",
    Why.points_changed: "The same result is worth more or fewer points by this version's points, tiers or formula.",
    Why.first_result: "Grading failed on our side before.",
}
SHOW: Mapping[Show, str] = {
    Show.all: "All",
    Show.raised: "Raised",
    Show.lowered: "Lowered",
    Show.same: "Points unchanged",
    Show.noise: "Within noise",
    Show.kept: "Worse, not applied",
    Show.trouble: "Failed or changed since",
    Show.open: "Not graded yet",
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
