"""Read the figures that docs/performance.md publishes, and write them there. `make bench` runs it.

Nothing here passes or fails: a figure is what this machine gave, with the machine's name beside it. A cold `make demo`
is measured too where `--cold` is given, since it installs everything anew.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from client.account import Account
from client.api import Api
from client.local import seed, up

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- figures:begin -->", "<!-- figures:end -->"
KERNEL = ROOT / "scripts" / "demo" / "passed_correct.py"
SLUG = "vector_add"
ACCEPTED = 200
CLIENTS = 4


@dataclass(frozen=True)
class Figure:
    """One row of the table."""

    what: str
    value: str
    how: str


def main() -> None:
    """Read every figure and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gradings", type=int, default=9, help="how many submissions are timed")
    parser.add_argument("--cold", action="store_true", help="time `make demo` on a fresh clone too (minutes)")
    options = parser.parse_args()
    figures = [*served(options.gradings)]
    if options.cold:
        figures.append(cold_demo())
    table = as_table(figures)
    print(table)
    write(table)


def served(gradings: int) -> Iterator[Figure]:
    """Figures that need an installation; each group has one of its own."""
    with _installation() as (api, folder):
        yield from submit_to_verdict(api, gradings)
        yield overhead(folder)
    with _installation(worker=False) as (api, _):
        yield accepted_per_second(api)


class _installation:  # noqa: N801  # reads as the function that it stands for
    """A fresh installation, and Ines logged in to it: staff see how long each phase took."""

    def __init__(self, *, worker: bool = True) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="ladder-bench-"))
        quotas = {"LADDER_SUBMIT_QUOTA_PER_MINUTE": "1000000", "LADDER_RUN_QUOTA_PER_MINUTE": "1000000"}
        quotas |= {"LADDER_PERSON_REQUESTS_PER_S": "0", "LADDER_PERSON_REQUESTS_AT_ONCE": "0"}
        clean = {name: value for name, value in os.environ.items() if not name.startswith("LADDER_")}
        self._serving = up.serving(self._folder, lambda _: None, clean | quotas)
        self._worker = worker

    def __enter__(self) -> tuple[Api, Path]:
        """Serve."""
        served = self._serving.__enter__()
        if not self._worker:
            _stop_worker(self._folder)
        with Api(Account(served.url, "")) as api:
            password = served.accounts.password if served.accounts else ""
            token = api.create_token("ines@example.org", password, "bench", staff=True)["token"]
        return Api(Account(served.url, token)), self._folder

    def __exit__(self, *problem: object) -> None:
        """Stop and forget it."""
        self._serving.__exit__(None, None, None)
        shutil.rmtree(self._folder)


def _stop_worker(folder: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "supervisor.supervisorctl",
        "-c",
        str(folder / "supervisord.conf"),
        "stop",
        "worker",
    ]
    subprocess.run(command, check=True, capture_output=True, cwd=folder)


def _submission(source: str) -> dict[str, str]:
    return {"mode": "submission", "lane": "cpu", "language": "triton", "filename": f"{SLUG}.py", "source": source}


def submit_to_verdict(api: Api, gradings: int) -> Iterator[Figure]:
    """Seconds from sending a right vector_add to its verdict, as a student's command sees them."""
    source = KERNEL.read_text(encoding="utf-8")
    seconds, phases = [], []
    for number in range(gradings + 1):
        started = time.perf_counter()
        stored = api.submit(seed.COURSE, SLUG, _submission(f"{source}# {number}\n"))
        final = list(api.follow(stored["public_id"]))[-1]
        if final["verdict"] != "passed":
            raise SystemExit(f"the kernel got {final['verdict']}: {final['explanation']}")
        # The first warms the node's bundle and its reference.
        if number:
            seconds.append(time.perf_counter() - started)
            phases.append(sum(phase["seconds"] for phase in final["phase_times"]))
    how = (
        f"median of {gradings}, from {min(seconds):.2f} to {max(seconds):.2f} s; 15 cases, 7 pairs on each ranked case"
    )
    yield Figure("submit to verdict, vector_add, warm worker", f"{statistics.median(seconds):.2f} s", how)
    around = statistics.median(total - graded for total, graded in zip(seconds, phases, strict=True))
    yield Figure("of it outside the judge", f"{around:.2f} s", "HTTP, database, dispatch, queues, events")


def overhead(folder: Path) -> Figure:
    """One verified, timed call against the bare call of the same kernel in one process."""
    sealed = min(_sealed_us(folder))
    bare = _bare_us()
    return Figure(
        "a timed call under the judge over the bare kernel",
        f"{sealed - bare:+.0f} µs",
        f"fastest of each: {sealed:.0f} µs from reveal to snapshot, {bare:.0f} µs bare; n = 100003, float32",
    )


def _sealed_us(folder: Path) -> list[float]:
    """The sealed clock's times of the ranked case, from a grading without a server."""
    command = [
        sys.executable, "-m", "client", "admin", "grade-file", SLUG, str(KERNEL), "--json",
        "--assignments", str(ROOT / "assignments"), "--reference", str(ROOT / "reference"),
    ]  # fmt: skip
    said = subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder).stdout
    result = json.loads(said.splitlines()[-1])["result"]
    case = next(item for item in result["measurements"] if item["case"] == "ranked_odd")
    return [pair["submission_sealed_us"] for pair in case["pairs"]]


_BARE = """
import importlib.util, sys, time, torch
torch.set_num_threads(1)
spec = importlib.util.spec_from_file_location("kernel", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
x, y, out = (torch.randn(100003) for _ in range(3))
times = []
for _ in range(9):
    started = time.perf_counter()
    module.vector_add(x, y, out, x.numel())
    times.append((time.perf_counter() - started) * 1e6)
print(min(times))
"""


def _bare_us() -> float:
    environ = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", _BARE, str(KERNEL)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True, env=environ).stdout)


def accepted_per_second(api: Api) -> Figure:
    """How many submissions the web tier stores in a second, from a few clients on this machine; nothing grades them."""
    source = KERNEL.read_text(encoding="utf-8")

    def hand_in(number: int) -> None:
        api.submit(seed.COURSE, SLUG, _submission(f"{source}# {number}\n"))

    hand_in(0)
    started = time.perf_counter()
    with ThreadPoolExecutor(CLIENTS) as clients:
        list(clients.map(hand_in, range(1, ACCEPTED + 1)))
    rate = ACCEPTED / (time.perf_counter() - started)
    how = f"{ACCEPTED} over loopback from {CLIENTS} clients that share the cores; SQLite, each committed to disk"
    return Figure("submissions accepted per second", f"{rate:.0f}", how)


def cold_demo() -> Figure:
    """`make demo` on a fresh clone: install everything, build the pages, serve, grade five kernels, stop."""
    with tempfile.TemporaryDirectory(prefix="ladder-cold-") as folder:
        subprocess.run(["git", "clone", "--quiet", str(ROOT), folder], check=True)
        started = time.perf_counter()
        subprocess.run(["make", "demo"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        seconds = time.perf_counter() - started
    return Figure(
        "cold `make demo` on a clean checkout", f"{seconds:.0f} s", "downloads included; five verdicts as expected"
    )


def as_table(figures: list[Figure]) -> str:
    """Markdown."""
    rows = [f"| {figure.what} | {figure.value} | {figure.how} |" for figure in figures]
    return "\n".join([f"Read on {machine()}.", "", "| figure | value | how |", "|---|---|---|", *rows])


def machine() -> str:
    """The machine, the day and the commit."""
    model = next(_lines_after(Path("/proc/cpuinfo"), "model name"), platform.machine())
    memory = next(_lines_after(Path("/proc/meminfo"), "MemTotal"), "? kB")
    gib = f"{int(memory.split()[0]) / 2**20:.0f} GiB" if memory[:1].isdigit() else "?"
    load = os.getloadavg()[0]
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return (
        f"{datetime.now(UTC):%Y-%m-%d} at commit {commit.stdout.strip() or 'unknown'}: "
        f"{model}, {os.cpu_count()} cores, {gib}, Linux {platform.release()}, "
        f"Python {platform.python_version()}, load average {load:.1f} when it ended"
    )


def _lines_after(path: Path, name: str) -> Iterator[str]:
    if path.is_file():
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith(name):
                yield line.partition(":")[2].strip()


def write(table: str, begin: str = BEGIN, end: str = END) -> None:
    """Put the table between two markers of docs/performance.md."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    PAGE.write_text(f"{before}{begin}\n{table}\n{end}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
