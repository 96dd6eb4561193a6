"""A pytest plugin: which tests belong to `make test`, what each costs, and no skip that nobody allowed.

What is left to `make test-full`: what runs on PostgreSQL, what is marked `full("why")`, and the folders of `LEFT` but
for tests that are marked `quick`. `--part quick` leaves those out, `--part rest` runs no others, and without the option
everything that was asked for runs. In `--part rest`, which is CI's, tests take turns: each runs at one commit of
`TURNS` in a row, or of as many as `turns(count)` says, by the number of commits, and the others are told of.
"""

from __future__ import annotations

import json
import os
import resource
import time
import zlib
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.suite import policy

Phase = pytest.TestReport | pytest.CollectReport

PARTS = ("quick", "rest", "full")
_OFTEN_S = 10.0
"""Between two looks at how fast the machine is."""
ON_POSTGRES = "on the second database"
LEFT = {
    "tests/autograder/emulator/": "programs on the emulator",
    "tests/browser/": "in a browser",
    "tests/compose/": "of an installation in containers",
    "tests/docker/": "in the Docker sandbox",
    "tests/e2e/": "of a whole installation",
    "tests/golden/test_golden.py": "gradings of the ladder's kernels",
    "tests/hostile/": "gradings of hostile files",
    "tests/hostile_cuda/": "gradings of hostile CUDA C++ files",
    "tests/hostile_pallas/": "gradings of hostile files in Pallas",
    "tests/hostile_tirx/": "compilations of hostile files in TIRx",
}
"""What `make test` has only some tests of, marked `quick`; by the beginning of their names."""
TURNS = 4
"""In CI, a test that `make test` leaves out runs at one commit of so many, unless `turns(count)` says otherwise."""
MOST_SHOWN = 40
GREEN = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
BROKEN_OFF = (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("suite", "how the tests of this repository are run")
    group.addoption("--part", choices=PARTS, default="full", help="quick: what `make test` runs; rest: all but that")
    group.addoption("--until", type=float, default=None, help="Unix time after which no test is begun; each then fails")
    group.addoption("--report", type=Path, default=None, help="a JSON file that gets what became of the tests")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Book(config), "suite-book")
    config.pluginmanager.register(Meter(config), "suite-meter")


def why_left(item: pytest.Item) -> str:
    """Why a test is left to `make test-full`; nothing if it is not."""
    if _on_postgres(item):
        return ON_POSTGRES
    if marker := item.get_closest_marker("full"):
        return str(marker.args[0])
    if item.get_closest_marker("quick"):
        return ""
    return next((why for beginning, why in LEFT.items() if item.nodeid.startswith(beginning)), "")


def _on_postgres(item: pytest.Item) -> bool:
    names = set(getattr(item, "fixturenames", ()))
    return item.get_closest_marker("postgres") is not None or not names.isdisjoint({"postgres_url", "fresh_postgres"})


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what the other part has, and whose turn it is not."""
    part = config.getoption("part")
    left = {item: why_left(item) for item in items}
    waiting = _not_their_turn([item for item in items if left[item]]) if part == "rest" else set()
    kept = [item for item in items if item not in waiting and (part == "full" or bool(left[item]) == (part == "rest"))]
    dropped = [item for item in items if item not in set(kept)]
    items[:] = kept
    config.hook.pytest_deselected(items=dropped)
    counts = Counter(left[item] for item in dropped if left[item] and item not in waiting)
    turns = Counter(left[item] for item in waiting)
    if hasattr(config, "workeroutput"):
        config.workeroutput.update(left=dict(counts), turns=dict(turns))
    elif book := config.pluginmanager.get_plugin("suite-book"):
        book.left, book.turns = dict(counts), dict(turns)


def _not_their_turn(items: Sequence[pytest.Item]) -> set[pytest.Item]:
    """Of the tests that take turns, those that another commit runs: by their names, so that no test moves another."""
    number, found = policy.commit_number(), set()
    for item in items:
        marker = item.get_closest_marker("turns")
        turns = marker.args[0] if marker else TURNS
        if zlib.crc32(item.nodeid.encode()) % turns != number % turns:
            found.add(item)
    return found


def yardstick() -> float:
    """Processor seconds that a fixed piece of work takes now."""
    start = time.thread_time()
    sum(number * number for number in range(100_000))
    return time.thread_time() - start


class Meter:
    """In the process that runs the tests: what each phase costs, quarantine, and the end of the time there is."""

    def __init__(self, config: pytest.Config) -> None:
        self._until = config.getoption("until")
        self._quarantine = {one.test: one for one in policy.quarantine()}
        self._day = policy.commit_day()
        self._spent = _processor_s()
        self._looked = 0.0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        """Nothing is made for a test that is too late."""
        if self._until is not None and time.time() > self._until:
            pytest.skip(policy.NO_TIME)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Write onto a phase's report what it cost, and look at the machine now and then."""
        report: Any = yield
        now = _processor_s()
        # What leaves its parent is seen no more: the sum may fall.
        report.cpu_s, self._spent = max(0.0, now - self._spent), now
        if report.when == "teardown" and time.monotonic() - self._looked > _OFTEN_S:
            report.yardstick_s = yardstick()
            self._looked = time.monotonic()
        one = self._quarantine.get(item.nodeid)
        if one and report.failed and not one.overdue(self._day):
            report.quarantined = True
            report.outcome, report.wasxfail = "skipped", f"in quarantine: {one.reason}"
        return report


def _processor_s() -> float:
    """Of this process, of its ended children, and of all that it has started and still runs."""
    own = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    ticks = sum(_ticks(pid) for pid in _descendants("self"))
    return sum(usage.ru_utime + usage.ru_stime for usage in own) + ticks / os.sysconf("SC_CLK_TCK")


def _descendants(pid: str) -> Iterator[str]:
    for children in Path("/proc", pid, "task").glob("*/children"):
        with suppress(OSError):
            for child in children.read_text(encoding="ascii").split():
                yield child
                yield from _descendants(child)


def _ticks(pid: str) -> int:
    """What a process has taken, and its ended children; nothing if it has ended meanwhile."""
    with suppress(OSError, IndexError):
        # The name, in brackets, may hold anything; the times are the 14th to 17th field.
        fields = Path("/proc", pid, "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return sum(map(int, fields[11:15]))
    return 0


@dataclass
class Folder:
    """What the tests of one folder came to."""

    tests: int = 0
    wall_s: float = 0.0
    cpu_s: float = 0.0


@dataclass
class Outcome:
    """What became of a run; `tests.suite.total` adds several of them."""

    passed: int = 0
    failed: list[str] = field(default_factory=list)
    not_begun: list[str] = field(default_factory=list)
    skips: list[str] = field(default_factory=list)
    quarantined: list[str] = field(default_factory=list)
    left: dict[str, int] = field(default_factory=dict)
    turns: dict[str, int] = field(default_factory=dict)
    """What other commits run, by the same reasons."""
    folders: dict[str, Folder] = field(default_factory=dict)
    yardsticks: list[float] = field(default_factory=list)


class Book:
    """In the process that was started: adds up what the tests report, and decides the exit status."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._skipped_files: set[str] = set()
        self._ran: set[str] = set()
        self.outcome = Outcome()
        self.left: dict[str, int] = {}
        self.turns: dict[str, int] = {}

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that is skipped as a whole; each worker says so once."""
        if report.failed and report.nodeid not in self.outcome.failed:
            self.outcome.failed.append(report.nodeid)
        if report.skipped and report.nodeid not in self._skipped_files:
            self._skipped_files.add(report.nodeid)
            self.outcome.skips.append(_reason(report))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """One phase of one test."""
        folder = self.outcome.folders.setdefault(folder_of(report.nodeid), Folder())
        folder.wall_s += report.duration
        folder.cpu_s += getattr(report, "cpu_s", 0.0)
        if (yardstick_s := getattr(report, "yardstick_s", None)) is not None:
            self.outcome.yardsticks.append(yardstick_s)
        if report.when == "teardown":
            folder.tests += 1
        self._count(report)

    def _count(self, report: pytest.TestReport) -> None:
        if getattr(report, "quarantined", False):
            self.outcome.quarantined.append(report.nodeid)
        elif report.failed and report.nodeid not in self.outcome.failed:
            self.outcome.failed.append(report.nodeid)
            # At once: the end of a run may be half an hour away.
            if terminal := self._config.pluginmanager.get_plugin("terminalreporter"):
                terminal.write_line(f"\nfailed: {report.nodeid}\n{report.longreprtext[-1500:]}")
        elif report.skipped:
            self._skip(report)
        elif report.when == "call":
            self.outcome.passed += 1

    def _skip(self, report: pytest.TestReport) -> None:
        reason = _reason(report)
        if policy.NO_TIME in reason:
            self.outcome.not_begun.append(report.nodeid)
        else:
            self.outcome.skips.append(reason)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """A worker has ended; all have collected the same."""
        said = getattr(node, "workeroutput", {})
        self.left, self.turns = said.get("left", self.left), said.get("turns", self.turns)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """A run in which something was not tested is not green."""
        self.outcome.left, self.outcome.turns = self.left, self.turns
        if int(exitstatus) in BROKEN_OFF:
            self.outcome.failed.append(f"pytest ended with status {int(exitstatus)}")
        if path := self._config.getoption("report"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(self.outcome, default=vars), encoding="utf-8")
        if int(exitstatus) in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED} and (
            problems := problems_of(self.outcome)
        ):
            session.exitstatus = next(iter(problems))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for status, sentences in problems_of(self.outcome).items():
            terminalreporter.section(policy.MEANING[status], red=True)
            for sentence in shortened(sentences):
                terminalreporter.write_line(sentence)


def problems_of(outcome: Outcome) -> dict[int, list[str]]:
    """By exit status, the most telling first: what keeps a run from being green, in sentences."""
    in_ci = bool(os.environ.get("LADDER_CI"))
    unknown = policy.counted(outcome.skips, policy.allowed_skips(), in_ci=in_ci)[1]
    found = {
        policy.TESTS_FAILED: outcome.failed,
        policy.UNKNOWN_SKIP: [f"{number} × {reason}" for reason, number in Counter(unknown).items()],
        policy.NOT_BEGUN: outcome.not_begun,
        policy.QUARANTINE_BROKEN: policy.broken_quarantine(policy.quarantine(), policy.commit_day()),
    }
    return {status: sentences for status, sentences in found.items() if sentences}


def shortened(sentences: Sequence[str]) -> list[str]:
    """The first of them, and how many more there are."""
    more = len(sentences) - MOST_SHOWN
    return [*sentences[:MOST_SHOWN], *([f"… and {more} more"] if more > 0 else [])]


def folder_of(nodeid: str) -> str:
    """The folder of tests that a test counts for: `tests/server`, `tests/golden`."""
    parts: Sequence[str] = nodeid.split("::", maxsplit=1)[0].split("/")
    return "/".join(parts[:2])


def _reason(report: Phase) -> str:
    where = report.longrepr
    return str(where[2]) if isinstance(where, tuple) else str(where)
