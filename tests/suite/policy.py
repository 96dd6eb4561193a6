"""What may be skipped, what is in quarantine, and what a folder of tests may cost: the three files beside this one."""

from __future__ import annotations

import datetime as dt
import re
import subprocess
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

MOST_QUARANTINED = 5
QUARANTINE_DAYS = 10
OVER = 1.5
"""A folder that costs so many times its budget fails the run."""
YARDSTICK_S = 0.0045
"""Processor seconds of `plugin.yardstick` on the machine that the budgets are written for."""

TESTS_FAILED = 1
UNKNOWN_SKIP = 10
NOT_BEGUN = 11
OVER_BUDGET = 12
QUARANTINE_BROKEN = 13
MEANING = {
    TESTS_FAILED: "tests failed",
    UNKNOWN_SKIP: "tests were skipped that tests/suite/skips.toml does not allow",
    NOT_BEGUN: "tests were not begun for lack of time",
    OVER_BUDGET: "a folder cost more than its budget and a half (tests/suite/budgets.toml)",
    QUARANTINE_BROKEN: "tests/suite/quarantine.toml holds too much, or for too long",
}
"""Exit statuses of a run, the most telling first."""

NO_TIME = "not begun: no time was left"
"""The reason of a test that was not begun; no file can allow it."""


@dataclass(frozen=True)
class AllowedSkip:
    """A reason for which tests may be skipped.

    Attributes:
        reason: a regular expression that the skip's reason contains.
        why: what is not there, for the summary.
        most: how many tests at most.
        in_ci: whether it is allowed in CI too, where all but a GPU has to be there.
    """

    reason: str
    why: str
    most: int
    in_ci: bool = False


@dataclass(frozen=True)
class Quarantined:
    """A test whose failure does not fail the run until its time is over.

    Attributes:
        test: its node id.
        since: the day from which it counts.
    """

    test: str
    since: dt.date
    reason: str

    def overdue(self, today: dt.date) -> bool:
        """Whether it has stood here for too long, by the day of the commit that is tested."""
        return today > self.since + dt.timedelta(days=QUARANTINE_DAYS)


def allowed_skips(path: Path = HERE / "skips.toml") -> tuple[AllowedSkip, ...]:
    """Every reason that is allowed, in the file's order."""
    return tuple(AllowedSkip(**row) for row in _rows(path, "skip"))


def quarantine(path: Path = HERE / "quarantine.toml") -> tuple[Quarantined, ...]:
    """Every test in quarantine."""
    return tuple(Quarantined(**row) for row in _rows(path, "test"))


def budgets(path: Path = HERE / "budgets.toml") -> dict[str, float]:
    """Processor seconds by folder of tests, on the machine of the yardstick."""
    return {folder: float(seconds) for folder, seconds in tomllib.loads(path.read_text(encoding="utf-8")).items()}


def _rows(path: Path, name: str) -> Sequence[Mapping[str, Any]]:
    rows: Sequence[Mapping[str, Any]] = tomllib.loads(path.read_text(encoding="utf-8")).get(name, ())
    return rows


def counted(skips: Iterable[str], allowed: Sequence[AllowedSkip], *, in_ci: bool) -> tuple[dict[str, int], list[str]]:
    """How many skips each allowed reason explains, and the reasons of those that nothing explains.

    Args:
        skips: the reason of each skip.
    """
    explained: dict[str, int] = {}
    unknown: list[str] = []
    for reason in skips:
        rule = next((rule for rule in allowed if re.search(rule.reason, reason) and (rule.in_ci or not in_ci)), None)
        if rule is None or explained.get(rule.why, 0) >= rule.most:
            unknown.append(reason)
        else:
            explained[rule.why] = explained.get(rule.why, 0) + 1
    return explained, unknown


def broken_quarantine(tests: Sequence[Quarantined], today: dt.date) -> list[str]:
    """What is wrong with the quarantine itself, in sentences."""
    wrong = [f"{one.test} has been there since {one.since}: {one.reason}" for one in tests if one.overdue(today)]
    if len(tests) > MOST_QUARANTINED:
        wrong.append(f"{len(tests)} tests are in it, and {MOST_QUARANTINED} may be")
    return wrong


def commit_day() -> dt.date:
    """The day of the commit that is checked out; today where this is no checkout."""
    said = _git("show", "--no-patch", "--format=%cs", "HEAD")
    return dt.date.fromisoformat(said) if said else dt.datetime.now(dt.UTC).date()


def commit_number() -> int:
    """How many commits lead to the one that is checked out; 0 where this is no checkout."""
    return int(_git("rev-list", "--count", "HEAD") or 0)


def _git(*arguments: str) -> str:
    command = ["git", "-c", "safe.directory=*", *arguments]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def over_budget(spent: Mapping[str, float], allowed: Mapping[str, float], speed: float) -> list[str]:
    """The folders that cost too much, in sentences.

    Args:
        spent: processor seconds by folder.
        speed: how many times longer this machine takes than the one of the yardstick.
    """
    return [
        f"{folder}: {seconds:.0f} s, {seconds / speed:.0f} s by the yardstick, budget {allowed.get(folder, 0):.0f} s"
        for folder, seconds in sorted(spent.items())
        if seconds / speed > OVER * allowed.get(folder, 0.0)
    ]
