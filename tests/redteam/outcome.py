"""What a file got, held against what it must get."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tests.redteam.attacks import BITE, Task

ROOM = 0.05
"""The speed that a file may be credited with beyond its own before that counts: the goal for kernels of 200 µs."""


CREDITED = "credited"
"""What a bite of a clock's expects instead of a verdict."""


class Outcome(StrEnum):
    """How a row ended; everything but the first, the second and the last is a difference."""

    as_expected = "as expected"
    cleared = "cleared"
    """An honest file was held, and a second measurement cleared it."""
    false_accept = "false accept"
    """An attack passed that must not, or was credited with speed that is not its own."""
    escape = "escape"
    """It got what it was after on the machine, or left something of its own."""
    false_hold = "false hold"
    """Nothing was wrong with it, and it was held or shown to staff."""
    no_bite = "no bite"
    """The attack did not work even where its one defence is not: the row shows nothing."""
    different = "different"
    """Another verdict than the table's, none of the above."""
    error = "error"
    """The judge itself failed, ended, or did not end."""
    skipped = "skipped"


@dataclass(frozen=True)
class Seen:
    """What a grading showed, as far as it counts here; every text short."""

    verdict: str
    held: bool = False
    held_reason: str = ""
    remeasure: str = ""
    """Why it would be measured once more still, after a second attempt."""
    findings: tuple[str, ...] = ()
    ratios: tuple[float, ...] = ()
    claimed: tuple[float, ...] = ()
    """What the event clocks alone say of each measurement: median of the submission's over that of the reference's."""
    sealed_us: tuple[float, ...] = ()
    """The smallest sealed time of each measurement."""
    loot: str = ""
    left: tuple[str, ...] = ()
    explanation: str = ""
    seconds: float = 0.0


def outcome(task: Task, seen: Seen) -> tuple[Outcome, str]:
    """How it ended, and why, where it is a difference."""
    if task.without and CREDITED in task.expected:
        return _of_the_bite(task, seen)
    if seen.loot or seen.left:
        return Outcome.escape, seen.loot or ", ".join(seen.left)
    if seen.verdict not in task.expected:
        return _of_the_verdict(task, seen)
    return _of_the_findings(task, seen) or _of_the_clock(task, seen)


def _of_the_bite(task: Task, seen: Seen) -> tuple[Outcome, str]:
    """Whether a forged time is credited once its defence is off."""
    if seen.verdict == "passed" and not seen.held and not seen.remeasure and _gains(task, seen):
        return Outcome.as_expected, ""
    return Outcome.no_bite, f"{seen.verdict}, ratios {_shown(seen.ratios)}, {seen.held_reason or seen.remeasure}"


def _gains(task: Task, seen: Seen) -> bool:
    """Whether its ratio is better than its own, beyond the room that is left."""
    return task.least_ratio > 0 and any(ratio < task.least_ratio * (1 - ROOM) for ratio in seen.ratios)


def _of_the_verdict(task: Task, seen: Seen) -> tuple[Outcome, str]:
    if task.name.endswith(BITE) and seen.verdict != "grader_error":
        return Outcome.no_bite, f"{seen.verdict}: {seen.explanation}"
    how = {"grader_error": Outcome.error, "passed": Outcome.false_accept}.get(seen.verdict, Outcome.different)
    return how, f"{seen.verdict}: {seen.explanation}"


def _of_the_findings(task: Task, seen: Seen) -> tuple[Outcome, str] | None:
    if missing := sorted(set(task.findings) - set(seen.findings)):
        return Outcome.false_accept, f"no finding {', '.join(missing)}"
    if still := sorted(set(task.unfound) & set(seen.findings)):
        return Outcome.no_bite, f"found all the same: {', '.join(still)}"
    if task.honest and seen.findings and not seen.held:
        return Outcome.false_hold, f"findings: {', '.join(seen.findings)}"
    if any(time < task.at_least_us for time in seen.sealed_us):
        return Outcome.false_accept, f"{min(seen.sealed_us):.0f} µs for what takes {task.at_least_us:.0f} µs"
    return None


def _of_the_clock(task: Task, seen: Seen) -> tuple[Outcome, str]:
    if seen.verdict != "passed":
        return Outcome.as_expected, ""
    withheld = seen.held or bool(seen.remeasure)
    if withheld and task.held == "no":
        return Outcome.false_hold, seen.held_reason or seen.remeasure
    if not withheld and not task.without and _gains(task, seen):
        return Outcome.false_accept, f"credited with a ratio of {min(seen.ratios):.3f}, its own is {task.least_ratio:g}"
    if task.claim and not any(ratio < task.claim for ratio in seen.claimed):
        return Outcome.no_bite, f"it did not work: the event clock says {_shown(seen.claimed)}"
    return Outcome.as_expected, ""


def _shown(ratios: tuple[float, ...]) -> str:
    return ", ".join(f"{ratio:.3f}" for ratio in ratios) or "nothing"


@dataclass(frozen=True)
class Answer:
    """What a worker says of one task: what it saw, twice where the first was held; or why there is nothing."""

    seen: Seen | None = None
    again: Seen | None = None
    skipped: str = ""
    error: str = ""
