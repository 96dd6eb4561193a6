"""What the last hours before a due date are like, first in, first out and in our order. `make surge` runs it.

A term's arrivals (1 217 submissions of 300 students in three hours, 916 in the last one) go through the real code in
simulated time, `scripts/surge_replay.py` says how. PostgreSQL where it answers on this machine, else SQLite.

Deterministic given the seed. It ends with an error only where something was lost or kept waiting for ever.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg

from bench import machine
from server import migrations
from server.config import REPOSITORY, load_config
from server.db import Database
from server.models import Lane
from server.surge.arrivals import STUDENTS, arrivals
from surge_replay import FIFO, OURS, Order, Outcomes, Replay, Times

PAGE = REPOSITORY / "docs" / "reliability.md"
BEGIN, END = "<!-- surge:begin -->", "<!-- surge:end -->"
GPUS = (1, 2, 4, 8)
GOAL_GPUS, GOAL_S = 4, 180.0
SERVERS = ("postgresql://postgres@127.0.0.1/postgres", "postgresql://root@127.0.0.1/postgres")
GPU_READINGS = REPOSITORY / "docs" / "data" / "gpu-2026-11-21" / "service_times.json"
OUTSIDE_S = 0.2
"""Of an attempt outside of the judge, docs/performance.md."""
CPU_MEASURED_S = (2.56, 2.75, 3.28, 3.27, 3.50, 4.09)
"""Submit to verdict of vector_add: least, median and most of both readings in docs/performance.md, nothing queued."""


def _lognormal(median_s: float, sigma: float) -> Callable[[random.Random], float]:
    return lambda chosen: median_s * chosen.lognormvariate(0.0, sigma)


def _warm_s(work: str) -> tuple[float, ...]:
    """What a warm judge took on an H200, every rung and round but the first, and what comes on top outside of it."""
    found: dict[str, list[float]] = json.loads(GPU_READINGS.read_text(encoding="utf-8"))
    return tuple(seconds + OUTSIDE_S for name, each in found.items() if name.endswith(work) for seconds in each[1:])


GPU_CHECK_S, GPU_MEASURE_S = _warm_s("check"), _warm_s("measure")
GPU_MEASURED = Times(
    Lane.h200, lambda chosen: chosen.choice(GPU_CHECK_S), lambda chosen: chosen.choice(GPU_MEASURE_S), passing=0.6
)
SLOW = Times(Lane.h200, check_s=_lognormal(40.0, 0.3), measure_s=_lognormal(60.0, 0.25), passing=0.6)
"""So slow that few students make a queue."""
CPU_MEASURED = Times(Lane.cpu, lambda chosen: chosen.choice(CPU_MEASURED_S), lambda _: 0.0, passing=0.6)


def main() -> int:
    """Replay every order on every number of slots, print the tables and, if asked, publish them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--students", type=int, default=STUDENTS)
    parser.add_argument("--quick", action="store_true", help="one GPU and 25 students: the facts, not the figures")
    parser.add_argument("--sqlite", action="store_true", help="do not look for PostgreSQL")
    parser.add_argument("--publish", action="store_true", help="write the tables to docs/reliability.md")
    parser.add_argument("--json", action="store_true", help="print every figure instead of tables")
    options = parser.parse_args()
    students, counts = (25, (1,)) if options.quick else (options.students, GPUS)
    began, cpu = time.monotonic(), time.process_time()
    kinds = [("gpu", SLOW)] if options.quick else [("gpu", GPU_MEASURED), ("cpu", CPU_MEASURED)]
    runs = {
        name: [
            (order.name, slots, _replay(order, times, slots, options.seed, students, sqlite=options.sqlite))
            for slots in counts
            for order in (FIFO, OURS)
        ]
        for name, times in kinds
    }
    took = (time.monotonic() - began, time.process_time() - cpu)
    if options.json:
        print(json.dumps({name: [(o, n, dataclasses.asdict(r)) for o, n, r in each] for name, each in runs.items()}))
    else:
        text = _page(runs, students, options.seed, took)
        print(text)
        if options.publish:
            _write(text)
    problems = [problem for each in runs.values() for problem in _wrong(each)]
    print(*problems, sep="\n", file=sys.stderr)
    return 1 if problems else 0


Run = tuple[str, int, Outcomes]


def _wrong(runs: Sequence[Run]) -> Iterator[str]:
    """What must never be, whatever the times."""
    for name, slots, run in runs:
        if run.unfinished:
            yield f"{name}, {slots} slots: {run.unfinished} of {run.received} submissions are not done"
        if len(run.verdict_s) + len(run.later_s) != run.received:
            yield f"{name}, {slots} slots: not every submission has a verdict"
    for (_, slots, fifo), (_, _, ours) in zip(runs[::2], runs[1::2], strict=True):
        if _percentile(ours.verdict_s, 0.95) > _percentile(fifo.verdict_s, 0.95):
            yield f"{slots} slots: our 95th percentile is above that of first in, first out"


def _replay(order: Order, times: Times, slots: int, seed: int, students: int, *, sqlite: bool) -> Outcomes:
    with tempfile.TemporaryDirectory(prefix="ladder-surge-") as home, _database_url(Path(home), sqlite=sqlite) as url:
        # The quota per minute is about people who press a key again and again; the model has none.
        environ = {"LADDER_HOME": home, "LADDER_DATABASE_URL": url, "LADDER_SUBMIT_QUOTA_PER_MINUTE": "100000"}
        config = load_config(environ)
        migrations.upgrade(url)
        database = Database(url)
        try:
            return Replay(database, config, order, times, slots, seed).run(arrivals(seed, students=students))
        finally:
            database.dispose()


@contextmanager
def _database_url(home: Path, *, sqlite: bool) -> Iterator[str]:
    """An empty database for one replay, dropped after it."""
    server = None if sqlite else _server()
    if server is None:
        yield f"sqlite:///{home / 'surge.sqlite'}"
        return
    name = f"ladder_surge_{home.name.rsplit('-', 1)[-1].lower()}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
        try:
            # Nothing here outlives the run, so that no commit waits for the disk.
            yield f"{server.rsplit('/', 1)[0]}/{name}?options=-csynchronous_commit%3Doff"
        finally:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def _server() -> str | None:
    for url in SERVERS:
        try:
            psycopg.connect(url, connect_timeout=3).close()
        except psycopg.OperationalError:
            continue
        return url
    return None


ABOUT = {
    "gpu": (
        f"**A lane that measures apart** (H200), times *measured* with a warm judge (docs/gpu.md): a check takes "
        f"{statistics.mean(GPU_CHECK_S):.1f} s on average, a measurement {statistics.mean(GPU_MEASURE_S):.1f} s. That "
        "60 % pass is assumed."
    ),
    "cpu": (
        "**The CPU lane**, times *measured*: vector_add takes 2.6 to 4.1 s from submit to verdict, see "
        "docs/performance.md."
    ),
}


def _page(runs: dict[str, list[Run]], students: int, seed: int, took: tuple[float, float]) -> str:
    received = next(iter(runs.values()))[0][2].received
    database = "SQLite" if _server() is None else "PostgreSQL"
    read_on = f"{machine()}; {took[0]:.0f} s in all, {took[1]:.0f} s of them on the core"
    lines = [f"`make surge` (`scripts/surge.py --seed {seed}`), {database}; read on {read_on}.", ""]
    lines.append(f"{students} students, {received:,} submissions in three hours. Waits are minutes of simulated time.")
    for name, each in runs.items():
        lines += ["", ABOUT[name], "", *_table(each)]
    lines += ["", *_goal(runs.get("gpu", []))]
    return "\n".join(lines)


def _goal(runs: Sequence[Run]) -> Iterator[str]:
    for name, slots, run in runs:
        if (name, slots) == (OURS.name, GOAL_GPUS):
            p95 = _percentile(run.verdict_s, 0.95)
            met = "met" if p95 <= GOAL_S else "**not met**"
            goal = f"at most {GOAL_S / 60:.0f} min at the 95th percentile with {GOAL_GPUS} GPUs"
            yield f"Goal: {goal}, upload to first verdict; it is {_minutes(p95)} min: {met}."


def _table(runs: Sequence[Run]) -> Iterator[str]:
    yield "| slots | order | first verdict p50 | p95 | max | times p50 | p95 | superseded p95 | drained | jobs |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for name, slots, run in runs:
        cells = [
            *(_minutes(_percentile(run.verdict_s, share)) for share in (0.5, 0.95, 1.0)),
            *(_minutes(_percentile(run.measured_s, share)) if run.measured_s else "" for share in (0.5, 0.95)),
            _minutes(_percentile(run.later_s, 0.95)) if run.later_s else "",
            _minutes(run.drained_s),
            f"{run.jobs:,}" + (f" ({run.jobs_in_all:,})" if run.jobs != run.jobs_in_all else ""),
        ]
        yield f"| {slots} | {name} | {' | '.join(cells)} |"


def _percentile(waits: Sequence[float], share: float) -> float:
    return waits[round(share * (len(waits) - 1))]


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.1f}"


def _write(text: str) -> None:
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
