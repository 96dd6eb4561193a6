"""Run a part of the tests, print what it came to, and end with the status that says why it is not green.

    python -m tests.suite quick           `make test`
    python -m tests.suite rest            what `make test-full` has and `make test` has not
    python -m tests.suite full            `make test-full`
    python -m tests.suite total           what the runs since the last `quick` or `full` came to, together

Two lines run side by side. Most tests share the cores, as a judge and its runner take turns. The other line has those
that go one after another: attacks, which look for each other's traces, then whole installations and browsers, which
wait more than they work.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

from tests.suite import policy
from tests.suite.plugin import Folder, Outcome, problems_of, shortened

BOOK = policy.ROOT / "var" / "tests"
ATTACKS = ("tests/hostile", "tests/docker")
INSTALLATIONS = ("tests/browser", "tests/compose", "tests/e2e")
PYTEST = (sys.executable, "-m", "pytest", "-q", "--durations", "25", "--durations-min", "8")
WORKERS = (os.cpu_count() or 1) + 1
"""Of the line that shares the cores: its tests wait a third of their time."""


def main() -> int:
    """Parse the command line and do it; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.suite", description="Run a part of the tests.")
    parser.add_argument("part", choices=["quick", "rest", "full", "total"])
    parser.add_argument("--minutes", type=float, default=None, help="tests not begun by then fail")
    options = parser.parse_args()
    if options.part == "total":
        return tell(added(*(read(path) for path in sorted(BOOK.glob("*.json")))), whole=True)
    until = [] if options.minutes is None else ["--until", str(time.time() + 60 * options.minutes)]
    return tell(run(options.part, until), whole=options.part == "full")


def run(part: str, until: Sequence[str]) -> Outcome:
    """Run the tests of a part; their output goes through, that of the second line when the first has ended."""
    BOOK.mkdir(parents=True, exist_ok=True)
    for old in BOOK.glob("rest-*.json" if part == "rest" else "*.json"):
        old.unlink()
    subprocess.run(["sh", "scripts/get_browser.sh"], cwd=policy.ROOT, check=False)
    environment = {**os.environ, **_docker()}
    common = ["--part", part, *until]
    lines = {"most": _most(), "attacks": ATTACKS, "installations": INSTALLATIONS}
    commands = {name: _command(part, name, [*common, *where]) for name, where in lines.items()}
    log = BOOK / f"{part}-second.log"
    with log.open("wb") as second, ThreadPoolExecutor() as beside:
        alone = [commands["attacks"], commands["installations"]]
        beside.submit(_one_after_another, alone, environment, second)
        _one_after_another([commands["most"]], environment, None)
    print(log.read_text(encoding="utf-8", errors="replace"), flush=True)
    if environment.get("DOCKER_HOST"):
        subprocess.run(["sh", "scripts/get_docker.sh", "stop"], cwd=policy.ROOT, check=False)
    return added(*(read(_book(part, name)) for name in lines))


def _one_after_another(commands: Sequence[list[str]], environment: dict[str, str], out: IO[bytes] | None) -> None:
    for command in commands:
        subprocess.run(command, cwd=policy.ROOT, env=environment, stdout=out, stderr=out, check=False)


def _most() -> list[str]:
    alone = (*ATTACKS, *INSTALLATIONS)
    return ["--numprocesses", str(WORKERS), "--dist", "worksteal", *(f"--ignore={folder}" for folder in alone), "tests"]


def _command(part: str, name: str, arguments: Sequence[str]) -> list[str]:
    cache = ["-o", f"cache_dir={BOOK / 'cache' / name}"]
    return [*PYTEST, *cache, "--report", str(_book(part, name)), *arguments]


def _book(part: str, name: str) -> Path:
    return BOOK / f"{part}-{name}.json"


def _docker() -> dict[str, str]:
    """One daemon for all tests that need Docker; where there can be none, they say why they are skipped."""
    found = subprocess.run(
        ["sh", "scripts/get_docker.sh"], cwd=policy.ROOT, stdout=subprocess.PIPE, text=True, check=False
    )
    return {"DOCKER_HOST": found.stdout.strip()} if found.returncode == 0 else {}


def read(path: Path) -> Outcome:
    """What a run wrote down; one that wrote nothing has failed."""
    if not path.exists():
        return Outcome(failed=[f"{path.name}: pytest ended without a report"])
    said = json.loads(path.read_text(encoding="utf-8"))
    folders = {name: Folder(**values) for name, values in said.pop("folders").items()}
    return Outcome(**said, folders=folders)


def added(*outcomes: Outcome) -> Outcome:
    """Several runs as one."""
    total = Outcome()
    for one in outcomes:
        total.passed += one.passed
        for name in ("failed", "not_begun", "skips", "quarantined", "yardsticks"):
            getattr(total, name).extend(getattr(one, name))
        for why, number in one.left.items():
            total.left[why] = total.left.get(why, 0) + number
        for name, folder in one.folders.items():
            into = total.folders.setdefault(name, Folder())
            into.tests += folder.tests
            into.wall_s += folder.wall_s
            into.cpu_s += folder.cpu_s
    return total


def tell(outcome: Outcome, *, whole: bool) -> int:
    """Print what a run came to; its exit status.

    Args:
        whole: everything ran, so that budgets can be held against it.
    """
    speed = statistics.median(outcome.yardsticks or [policy.YARDSTICK_S]) / policy.YARDSTICK_S
    problems = problems_of(outcome)
    if whole:
        spent = {name: folder.cpu_s for name, folder in outcome.folders.items()}
        if over := policy.over_budget(spent, policy.budgets(), speed):
            problems[policy.OVER_BUDGET] = over
    for line in (*_table(outcome, speed), *_skips(outcome), *_quarantine(outcome), *_left(outcome, whole=whole)):
        print(line)
    for status, sentences in problems.items():
        print(f"\n{policy.MEANING[status]}:", *shortened(sentences), sep="\n  ")
    print(
        f"\n{outcome.passed} passed, {len(outcome.failed)} failed, {len(outcome.skips)} skipped, "
        f"{len(outcome.not_begun)} not begun, {len(outcome.quarantined)} failed in quarantine"
    )
    return next((status for status in policy.MEANING if status in problems), 0)


def _table(outcome: Outcome, speed: float) -> list[str]:
    budget = policy.budgets()
    lines = [
        "",
        f"Seconds are of the processor; this machine takes {speed:.2f} times what the budgets' takes.",
        "| folder | tests | seconds | by the yardstick | budget | wall |",
        "|---|---|---|---|---|---|",
    ]
    for name, folder in sorted(outcome.folders.items()):
        cells = (folder.tests, *(f"{value:.0f}" for value in (folder.cpu_s, folder.cpu_s / speed)))
        lines.append(f"| {name} | {' | '.join(map(str, cells))} | {budget.get(name, 0):.0f} | {folder.wall_s:.0f} |")
    return lines


def _skips(outcome: Outcome) -> list[str]:
    explained, _ = policy.counted(outcome.skips, policy.allowed_skips(), in_ci=bool(os.environ.get("LADDER_CI")))
    return ["", *(f"{number} skipped: {why}" for why, number in explained.items())] if explained else []


def _quarantine(outcome: Outcome) -> list[str]:
    return [f"failed in quarantine: {name}" for name in outcome.quarantined]


def _left(outcome: Outcome, *, whole: bool) -> list[str]:
    if whole or not outcome.left:
        return []
    return [
        "",
        f"Left to `make test-full`: {sum(outcome.left.values())} tests",
        *(f"  {number:5} {why}" for why, number in sorted(outcome.left.items(), key=lambda pair: -pair[1])),
    ]


if __name__ == "__main__":
    sys.exit(main())
