"""Run a part of the tests, print what it came to, and end with the status that says why it is not green.

    python -m tests.suite quick           `make test`
    python -m tests.suite rest            what `make test-full` has and `make test` has not, of turns this commit's
    python -m tests.suite full            `make test-full`
    python -m tests.suite total           what the runs since the last `quick` or `full` came to, together

Three lines run side by side. Most tests share the cores, as a judge and its runner take turns. Attacks, which look for
each other's traces, and what else needs containers go one after another in a second line; browsers and whole
installations, which wait more than they work, in a third. These two come first where they want a core: they are what a
whole run waits for.
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

from tests.suite import policy
from tests.suite.plugin import Folder, Outcome, problems_of, shortened

BOOK = policy.ROOT / "var" / "tests"
CONTAINERS = ("tests/hostile", "tests/docker", "tests/compose")
INSTALLATIONS = ("tests/browser", "tests/e2e")
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
    return tell(run(options.part, until), whole=False)


def run(part: str, until: Sequence[str]) -> Outcome:
    """Run the tests of a part; the output of most goes through, that of the other lines when all have ended."""
    BOOK.mkdir(parents=True, exist_ok=True)
    for old in BOOK.glob("rest-*.json" if part == "rest" else "*.json"):
        old.unlink()
    subprocess.run(["sh", "scripts/get_browser.sh"], cwd=policy.ROOT, check=False)
    environment = {**os.environ, **_docker()}
    # Each of the workers imports all of it: compiled once, that takes half as long.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    common = ["--part", part, *until]
    lines = {"most": _most(), "containers": CONTAINERS, "installations": INSTALLATIONS}
    commands = {name: _command(part, name, [*common, *where]) for name, where in lines.items()}
    most = subprocess.Popen(["nice", "-n", "4", *commands.pop("most")], cwd=policy.ROOT, env=environment)
    with ThreadPoolExecutor() as beside:
        done = [beside.submit(_quietly, command, environment) for command in commands.values()]
        most.wait()
    for one in done:
        print(one.result(), flush=True)
    if environment.get("DOCKER_HOST"):
        subprocess.run(["sh", "scripts/get_docker.sh", "stop"], cwd=policy.ROOT, check=False)
    return added(*(read(_book(part, name)) for name in lines))


def _quietly(command: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(
        command, cwd=policy.ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    return done.stdout.decode(errors="replace")


def _most() -> list[str]:
    alone = (*CONTAINERS, *INSTALLATIONS)
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
        # Each part tells of the same ones.
        total.turns |= {why: max(number, total.turns.get(why, 0)) for why, number in one.turns.items()}
        for name, folder in one.folders.items():
            into = total.folders.setdefault(name, Folder())
            into.tests += folder.tests
            into.wall_s += folder.wall_s
            into.cpu_s += folder.cpu_s
    return total


def tell(outcome: Outcome, *, whole: bool) -> int:
    """Print what a run came to; its exit status.

    Args:
        whole: this is all that CI runs, so that budgets can be held against it.
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
    told = [*_counted("Other commits have their turn of", outcome.turns)]
    return told if whole else [*_counted("Left to `make test-full`:", outcome.left), *told]


def _counted(what: str, by_reason: dict[str, int]) -> list[str]:
    if not by_reason:
        return []
    ordered = sorted(by_reason.items(), key=lambda pair: -pair[1])
    return ["", f"{what} {sum(by_reason.values())} tests", *(f"  {number:5} {why}" for why, number in ordered)]


if __name__ == "__main__":
    sys.exit(main())
