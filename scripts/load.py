"""How much the web tier takes: submissions per second, open pages, and where it breaks. `make load` runs it.

It makes a PostgreSQL of its own (durable: `fsync` and `synchronous_commit` are on), starts `ladder web` with several
processes beside it, and a client that shares their cores. No dispatcher and no worker run: what is measured is taking
submissions in, showing pages, and telling those who watch. Quotas are as shipped; there are students enough for that.

Nothing here asserts a time. It ends with an error only where something accepted is not in the database.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import platform
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from bench import Figure, as_table, write
from load_client import Answers, Client, Request, Watcher, at_rate, one_after_another, opened
from load_course import Course
from load_memory import installed, pss_mib
from private_postgres import Cluster, private_postgres
from server import migrations
from server.config import load_config
from server.db import Database

BEGIN, END = "<!-- load:begin -->", "<!-- load:end -->"
PAGES = ("assignment page", "submission page", "leaderboard page")
CLOSED_CLIENTS = 16
PAGES_PER_SECOND = 6.0
EVENTS_PER_SECOND = 5.0
"""How often something changes that is watched."""
SLOW_S = 2.0
"""It breaks where the 95th percentile of anything is above this, or"""
FAILED_SHARE = 0.01
"""so many requests fail."""
STEPS = (1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0)
"""Of the goal, until it breaks."""


@dataclass(frozen=True)
class Options:
    """What was asked for on the command line."""

    seconds: float
    rate: float
    watchers: int
    processes: int
    students: int
    ramp: bool
    memory: bool
    publish: bool


@dataclass
class Phase:
    """What came of one stretch of load.

    Attributes:
        cpu: seconds of processor time by who used it.
    """

    name: str
    seconds: float = 0.0
    answers: dict[str, Answers] = field(default_factory=dict)
    cpu: dict[str, float] = field(default_factory=dict)

    @property
    def accepted_per_second(self) -> float:
        """Submissions."""
        return len(self.answers["submit"].seconds) / self.seconds

    def broken(self) -> str:
        """What broke; empty if nothing did."""
        for kind, answers in self.answers.items():
            asked = answers.failed + len(answers.seconds)
            if answers.failed > FAILED_SHARE * asked:
                worst = answers.problems.most_common(1)[0]
                return f"{kind}: {answers.failed} of {asked} failed, mostly {worst[0]}"
            if answers.seconds and answers.quantile(0.95) > SLOW_S:
                return f"{kind}: p95 {answers.quantile(0.95):.1f} s"
        return ""

    def shares(self) -> str:
        """Who used the cores."""
        return ", ".join(f"{who} {100 * used / self.seconds:.0f} %" for who, used in self.cpu.items())


@dataclass(frozen=True)
class Web:
    """`ladder web` as it runs."""

    port: int
    parent: int

    def processes(self) -> list[int]:
        """Those that serve."""
        return [pid for pid in children(self.parent) if b"spawn_main" in _command(pid)]


def main() -> None:
    """Measure, print, and write the page."""
    options = _options()
    settings = {"max_connections": "100"}
    with private_postgres(settings) as cluster, _folder() as home:
        environ = _environ(home, cluster)
        migrations.upgrade(cluster.url)
        with _served(environ, options.processes, home) as web:
            figures = list(Load(options, cluster, web, environ).figures())
    if options.memory:
        figures += installed()
    table = as_table(figures) + f"\n\nCommand: `{' '.join(['scripts/load.py', *sys.argv[1:]])}`"
    print(table)
    if options.publish:
        write(table, BEGIN, END)


def _options() -> Options:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="how long each measured stretch lasts")
    parser.add_argument("--rate", type=float, default=100, help="submissions per second to begin with")
    parser.add_argument("--watchers", type=int, default=300)
    parser.add_argument("--processes", type=int, default=2, help="web processes")
    parser.add_argument("--students", type=int, default=4000, help="the quota is per student")
    parser.add_argument("--no-ramp", dest="ramp", action="store_false", help="do not look for where it breaks")
    parser.add_argument("--no-memory", dest="memory", action="store_false", help="do not start a worker to weigh it")
    parser.add_argument("--publish", action="store_true", help="write the table into docs/performance.md")
    return Options(**vars(parser.parse_args()))


class Load:
    """One run against one web tier."""

    def __init__(self, options: Options, cluster: Cluster, web: Web, environ: Mapping[str, str]) -> None:
        self._options = options
        self._cluster = cluster
        self._web = web
        config = load_config(environ)
        self._database = Database(config.database_url)
        self._course = Course(self._database, config)
        self._client = Client(web.port)

    def figures(self) -> Iterator[Figure]:
        """Everything that is read from this web tier."""
        _say("making the course")
        self._course.make(self._options.students, graded=self._options.watchers)
        before = self._course.count()
        yield from asyncio.run(self._run())
        yield self._accounted(before)
        for number, pid in enumerate(self._web.processes(), start=1):
            yield Figure(f"memory of web process {number}", f"{pss_mib(pid):.0f} MiB", "PSS at the end of all this")
        yield Figure("memory of PostgreSQL", f"{self._postgres_mib():.0f} MiB", "PSS of all its processes")
        self._database.dispose()

    async def _run(self) -> list[Figure]:
        submitting = self._course.submitting()
        alone = await self._closed(submitting)
        figures = [_closed_figure(alone)]
        async with self._watching() as watchers:
            phase = await self._stretch("goal", self._options.rate, submitting, watchers)
            figures += list(_steady_figures(phase, self._options, watchers))
            if self._options.ramp:
                figures.append(await self._ramp(phase, submitting, watchers))
            ended = [watcher.ended for watcher in watchers if watcher.ended]
            streams = f"{len(watchers) - len(ended)} of {len(watchers)}"
            figures.append(
                Figure("streams still open at the end", streams, ", ".join(sorted(set(ended))) or "none ended")
            )
        self._client.close()
        return figures

    async def _closed(self, submitting: Iterator[Request]) -> Phase:
        """As fast as it goes, nobody watching."""
        _say(f"{CLOSED_CLIENTS} clients, one submission after another")
        await one_after_another(self._client, submitting, CLOSED_CLIENTS, 3)
        with self._measured("closed") as phase:
            await one_after_another(self._client, submitting, CLOSED_CLIENTS, self._options.seconds / 3)
        return phase

    @asynccontextmanager
    async def _watching(self) -> AsyncIterator[list[Watcher]]:
        """Streams: half of what they watch runs, half waits; half are pages, half command lines."""
        _say(f"opening {self._options.watchers} streams")
        watchers = [
            Watcher(public_id if index % 2 else "", self._course.watching(public_id, page=index // 2 % 2 == 0))
            for index, public_id in enumerate(self._course.watched)
        ]
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(watcher.watch(self._web.port)) for watcher in watchers]
            await opened(watchers)
            yield watchers
            for task in tasks:
                task.cancel()

    async def _stretch(
        self, name: str, rate: float, submitting: Iterator[Request], watchers: list[Watcher], seconds: float = 0.0
    ) -> Phase:
        """Submissions at this rate, pages beside them, and changes for those who watch."""
        seconds = seconds or self._options.seconds
        _say(f"{rate:.0f} submissions per second for {seconds:.0f} s")
        reading = self._course.reading([watcher.key for watcher in watchers if watcher.key])
        with self._measured(name) as phase:
            changing = asyncio.create_task(self._change(watchers))
            async with asyncio.TaskGroup() as group:
                group.create_task(at_rate(self._client, submitting, rate, seconds))
                group.create_task(at_rate(self._client, reading, PAGES_PER_SECOND, seconds))
            changing.cancel()
        return phase

    async def _change(self, watchers: list[Watcher]) -> None:
        """Let phases begin, one submission after another; each watcher's first change is timed."""
        for sequence in itertools.count(self._course.sequence):
            self._course.sequence = sequence + 1
            for watcher in watchers:
                if watcher.key:
                    await asyncio.to_thread(self._course.step, watcher.key, sequence)
                    watcher.expect()
                    await asyncio.sleep(1 / EVENTS_PER_SECOND)

    async def _ramp(self, good: Phase, submitting: Iterator[Request], watchers: list[Watcher]) -> Figure:
        for step in STEPS:
            rate = step * self._options.rate
            phase = await self._stretch("ramp", rate, submitting, watchers, self._options.seconds / 2)
            if broke := phase.broken():
                how = f"at {rate:.0f} per second; {phase.accepted_per_second:.0f} accepted; processor: {phase.shares()}"
                value = f"above {good.accepted_per_second:.0f} per second: {broke}"
                return Figure("it breaks", value, how)
            good = phase
        return Figure("it breaks", f"not up to {rate:.0f} per second", f"processor: {good.shares()}")

    @contextmanager
    def _measured(self, name: str) -> Iterator[Phase]:
        phase, self._client.answers = Phase(name), {}
        before, began = self._cpu(), time.perf_counter()
        yield phase
        phase.seconds = time.perf_counter() - began
        phase.cpu = {who: used - before[who] for who, used in self._cpu().items()}
        phase.answers = self._client.answers

    def _cpu(self) -> dict[str, float]:
        postgres = _used_s(self._cluster.pid, ended_children=True)
        return {
            "web": sum(_used_s(pid) for pid in self._web.processes()),
            "PostgreSQL": postgres + sum(_used_s(pid) for pid in children(self._cluster.pid)),
            "client": sum(os.times()[:2]),
        }

    def _postgres_mib(self) -> float:
        return sum(pss_mib(pid) for pid in (self._cluster.pid, *children(self._cluster.pid)))

    def _accounted(self, before: int) -> Figure:
        """Is every accepted submission there, byte for byte?

        Raises:
            SystemExit: one is not.
        """
        accepted = self._client.accepted
        if lost := self._course.missing(accepted):
            raise SystemExit(f"{len(lost)} of {len(accepted)} accepted submissions are not in the database: {lost[:5]}")
        unanswered = self._course.count() - before - len(accepted)
        how = f"rows counted, bytes hashed; {unanswered} more were stored whose answer did not arrive in time"
        return Figure("accepted and lost", f"0 of {len(accepted):,}", how)


def _closed_figure(phase: Phase) -> Figure:
    submit = phase.answers["submit"]
    p95_ms = 1000 * submit.quantile(0.95)
    how = f"{CLOSED_CLIENTS} clients, nobody watching; p95 {p95_ms:.0f} ms; processor: {phase.shares()}"
    return Figure("submissions accepted, at most", f"{phase.accepted_per_second:.0f} per second", how)


def _steady_figures(phase: Phase, options: Options, watchers: list[Watcher]) -> Iterator[Figure]:
    beside = (
        f"{options.rate:.0f} submissions and {PAGES_PER_SECOND:.0f} pages asked for per second, {len(watchers)} streams"
    )
    value = f"{phase.accepted_per_second:.0f} per second"
    yield Figure(
        "submissions accepted beside watchers", value, f"{beside}; {phase.seconds:.0f} s; processor: {phase.shares()}"
    )
    for kind in ("submit", *PAGES):
        answers = phase.answers[kind]
        value = f"{1000 * answers.quantile(0.5):.0f} / {1000 * answers.quantile(0.95):.0f} ms"
        yield Figure(f"{kind}, p50 / p95", value, f"{len(answers.seconds)} answered, {answers.failed} failed")
    told = sorted(watcher.told_s for watcher in watchers if watcher.told_s is not None)
    if told:
        p95 = told[int(0.95 * len(told))]
        value = f"{1000 * statistics.median(told):.0f} / {1000 * p95:.0f} ms"
        yield Figure("a change is seen, p50 / p95", value, f"by {len(told)} watchers, from its commit to their stream")


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="ladder-load-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def _environ(home: Path, cluster: Cluster) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LADDER_")}
    # A few accounts stand for a course.
    limits = ("LADDER_PERSON_REQUESTS_PER_S", "LADDER_PERSON_REQUESTS_AT_ONCE", "LADDER_PERSON_STREAMS")
    unlimited = dict.fromkeys(limits, "0")
    return clean | unlimited | {"LADDER_HOME": str(home), "LADDER_DATABASE_URL": cluster.url}


@contextmanager
def _served(environ: Mapping[str, str], processes: int, home: Path) -> Iterator[Web]:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = int(taken.getsockname()[1])
    command = [sys.executable, "-P", "-m", "client", "web", "--port", str(port), "--workers", str(processes)]
    with (home / "web.log").open("wb") as log:
        process = subprocess.Popen(command, env=environ, stdout=log, stderr=subprocess.STDOUT)
    try:
        web = Web(port, process.pid)
        _wait_for(web, processes, home)
        yield web
    finally:
        process.terminate()
        process.wait()


def _wait_for(web: Web, processes: int, home: Path) -> None:
    for _ in range(300):
        try:
            httpx.get(f"http://127.0.0.1:{web.port}/healthz", timeout=2)
            if len(web.processes()) == processes:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise SystemExit(f"the web tier did not start:\n{(home / 'web.log').read_text(encoding='utf-8')}")


def children(pid: int) -> list[int]:
    """Processes that this one started."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]


def _command(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def _used_s(pid: int, *, ended_children: bool = False) -> float:
    """Processor time of a process in seconds, with that of its children that have ended if asked for; 0 if it ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        # PostgreSQL ends workers of its own between our listing them and our reading this.
        return 0.0
    ticks = fields[11:15] if ended_children else fields[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def _say(text: str) -> None:
    print(f"· {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    if platform.system() != "Linux":
        raise SystemExit("make load reads /proc: it needs Linux.")
    main()
