"""Time every page of a large course over loopback, by who looks. `make bench-web` runs it.

    python -m scripts.bench_web                       on var/large/ladder.db, which `make seed-large` fills
    python -m scripts.bench_web --url postgresql://…  on another database that it filled
    python -m scripts.bench_web --publish             also into docs/performance.md, raw data into docs/data

`ladder web` runs as it does in production; one client asks for one page at a time, so that a time is a page's own and
not a queue's. Of each page the first looks are not counted; no page takes longer than `MOST_S` of the benchmark.

Every page is printed, the slowest first. Exit status: 0 where all are within the goal, 1 where one is not.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import os
import platform
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import httpx
from sqlalchemy import select

from scripts.every_page import Asker, addresses, askers
from scripts.large_course import SLUG
from scripts.seed_large import HOME, ROOT
from server.accounts import accounts
from server.accounts.places import Place
from server.app import create_app
from server.config import Config, load_config
from server.db import Database
from server.models import Course, User

GOAL_MS = 100.0
"""95 of 100 answers come within it."""
WARM_UP, MOST, MOST_S = 2, 40, 4.0
PAGE = ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- web:begin -->", "<!-- web:end -->"
SHOWN = 10
"""So many of the slowest pages stand in the published table; the raw data has all."""


@dataclass(frozen=True)
class Timing:
    """A page for somebody: its status, its size, and the milliseconds of each look.

    Attributes:
        cpu_ms: processor time of the web tier for one look, whatever else the machine does.
    """

    role: str
    path: str
    status: int
    size: int
    times_ms: tuple[float, ...]
    cpu_ms: float

    def quantile(self, share: float) -> float:
        """By the nearest rank."""
        ordered = sorted(self.times_ms)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def main() -> int:
    """Measure, print, and write the page."""
    asked = _arguments()
    config = load_config({"LADDER_HOME": str(HOME)})
    url = asked.url or f"sqlite:///{HOME / 'ladder.db'}"
    config = dataclasses.replace(config, database_url=url)
    database = Database(url)
    until = time.monotonic() + asked.most_s
    timings: list[Timing] = []
    with _served(config, asked.processes) as (base, session):
        for asker, token, pages in _plan(config, database):
            timings += _time(base, session, asker, token, pages, until)
    database.dispose()
    print(_report(timings, asked.processes, url, shown=len(timings)))
    if asked.publish:
        _publish(_report(timings, asked.processes, url, shown=SHOWN), timings)
    return int(any(timing.quantile(0.95) > GOAL_MS for timing in timings))


def _plan(config: Config, database: Database) -> Iterator[tuple[Asker, str, dict[str, str]]]:
    """Who looks, by which login, at what."""
    app = create_app(config)
    with database.reading() as session:
        course = session.scalars(select(Course).where(Course.slug == SLUG)).one()
        everybody = askers(session, course)
        student = next(asker.user_id for asker in everybody if asker.role == "student")
        pages = {path: url for path, url in addresses(app, session, course, student or 0).items() if url is not None}
    for asker in everybody:
        yield asker, _login(config, database, asker), pages


def _login(config: Config, database: Database, asker: Asker) -> str:
    if asker.user_id is None:
        return ""
    with database.transaction() as session:
        user = session.get_one(User, asker.user_id)
        return accounts.start_login(session, user, place=Place("127.0.0.1"), agent="bench", config=config)[1]


def _time(  # noqa: PLR0917
    base: str, session: int, asker: Asker, token: str, pages: dict[str, str], until: float
) -> Iterator[Timing]:
    with httpx.Client(base_url=base, cookies={"ladder_login": token} if token else {}, timeout=120) as client:
        for path, url in pages.items():
            if time.monotonic() > until:
                print(f"{asker.role}: {path} was not looked at, time was up", file=sys.stderr)
                continue
            timing = _look(client, session, asker.role, path, url)
            if timing is not None:
                yield timing


def _look(client: httpx.Client, session: int, role: str, path: str, url: str) -> Timing | None:
    """`None` where there is nothing for them to see: what is refused or leads elsewhere is no page."""
    try:
        answer = client.get(url)
    except httpx.TransportError as error:
        print(f"{role}: {path} broke off: {error!r}", file=sys.stderr)
        return None
    if answer.status_code != httpx.codes.OK:
        return None
    times, began, cpu_s = [], time.perf_counter(), _cpu_s(session)
    for number in range(WARM_UP + MOST):
        sent = time.perf_counter()
        answer = client.get(url)
        if number >= WARM_UP:
            times.append(1000 * (time.perf_counter() - sent))
        if time.perf_counter() - began > MOST_S and times:
            break
    cpu_ms = 1000 * (_cpu_s(session) - cpu_s) / (number + 1)
    return Timing(role, path, answer.status_code, len(answer.content), tuple(times), cpu_ms)


def _cpu_s(session: int) -> float:
    """Processor time of all processes of a session so far."""
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session:
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _report(timings: Sequence[Timing], processes: int, url: str, *, shown: int) -> str:
    slow = [timing for timing in timings if timing.quantile(0.95) > GOAL_MS]
    ordered = sorted(timings, key=lambda timing: -timing.quantile(0.95))
    engine = "PostgreSQL" if url.startswith("postgresql") else "SQLite"
    read = f"Read on {datetime.now(UTC):%Y-%m-%d %H:%M} UTC at commit {_commit()}: {_machine()}"
    load = f"load average {os.getloadavg()[0]:.1f} when it ended; web processes: {processes}; {engine}."
    heavy = sum(timing.cpu_ms > GOAL_MS for timing in timings)
    within = f"{len(timings)} pages and answers of the API, counted by who looks: {len(timings) - len(slow)} within"
    goal = (
        f"the goal of {GOAL_MS:g} ms at the 95th percentile; {len(timings) - heavy} take less processor time than that."
    )
    lines = [
        f"{read}, {load}",
        "",
        f"{within} {goal}",
        "",
        f"| the {min(shown, len(ordered))} slowest | who | p50 | p95 | processor | looks | size |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| `{item.path}` | {item.role} | {item.quantile(0.5):.0f} ms | {item.quantile(0.95):.0f} ms "
        f"| {item.cpu_ms:.0f} ms "
        f"| {len(item.times_ms)} | {item.size / 1024:.0f} KiB |"
        for item in ordered[:shown]
    ]
    return "\n".join(
        [*lines, "", f"Command: `python -m scripts.bench_web {' '.join(sys.argv[1:])}`".rstrip("` ") + "`"]
    )


def _publish(text: str, timings: Sequence[Timing]) -> None:
    folder = ROOT / "docs" / "data" / f"web-{datetime.now(UTC):%Y-%m-%d}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "pages.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["path", "role", "status", "bytes", "cpu_ms", "times_ms"])
        for item in timings:
            times = " ".join(f"{value:.2f}" for value in item.times_ms)
            table.writerow([item.path, item.role, item.status, item.size, f"{item.cpu_ms:.2f}", times])
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise SystemExit(f"{PAGE} has no {BEGIN} … {END}")
    raw = f"\n\nRaw data: `{(folder / 'pages.csv').relative_to(ROOT)}`."
    PAGE.write_text(f"{before}{BEGIN}\n{text}{raw}\n{END}{after}", encoding="utf-8")


@contextmanager
def _served(config: Config, processes: int) -> Iterator[tuple[str, int]]:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = int(taken.getsockname()[1])
    environ = {name: value for name, value in os.environ.items() if not name.startswith("LADDER_")}
    environ |= {"LADDER_PERSON_REQUESTS_PER_S": "0", "LADDER_PERSON_REQUESTS_AT_ONCE": "0"}
    environ |= {"LADDER_HOME": str(HOME), "LADDER_DATABASE_URL": config.database_url}
    command = [sys.executable, "-P", "-m", "client", "web", "--port", str(port), "--workers", str(processes)]
    log = HOME / "web.log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            command, env=environ, stdout=file, stderr=subprocess.STDOUT, cwd=ROOT, start_new_session=True
        )
    try:
        yield _answering(f"http://127.0.0.1:{port}", log), process.pid
    finally:
        process.terminate()
        process.wait()


def _answering(base: str, log: Path) -> str:
    for _ in range(600):
        try:
            httpx.get(f"{base}/healthz", timeout=2)
        except httpx.TransportError:
            time.sleep(0.1)
        else:
            return base
    raise SystemExit(f"the web tier did not start:\n{log.read_text(encoding='utf-8')}")


def _commit() -> str:
    command = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or "unknown"


def _machine() -> str:
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return f"{found[1] if found else platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="", help="the database; var/large/ladder.db otherwise")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--most-s", type=float, default=900.0, help="no page is begun later than that")
    parser.add_argument("--publish", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
