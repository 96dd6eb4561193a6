"""The whole way on a GPU: serve, let students submit kernels, grade them on this machine's GPU, keep what came of it.

python scripts/gpu_whole_way.py --lane h200 --out DIR [--set smoke|quick|rungs|whole] [--sandbox process|docker]

Server, recorder, dispatcher and worker are those of `ladder up`, in a fresh home; everything is handed in through the
public API. Into DIR come `whole_way.json` (verdicts, times, boards), `whole_way_measured.json` (what each measurement
took, as its result says) and `whole_way.tar.xz` (the home with its database: unpack it and run `ladder web` with
LADDER_HOME there to see the pages).

Exit status: 0 only if every verdict is the expected one.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sqlite3
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from autograder.contract import Lane, Verdict  # noqa: E402
from client.account import Account  # noqa: E402
from client.api import Api, Json  # noqa: E402
from client.local import seed, up  # noqa: E402

NAMES = {"staff": "Staff solution", "milestone": "Best milestone"}
"""Of those who are not in the demo course."""
RUNGS = ("vector_add", "softmax", "matmul_tiled")
_AT_REST = """
    select (select max(finished_at) from attempts), (select count(*) from attempts where finished_at is null)
"""
"""When the last attempt ended, and how many have not."""
_MEASURED = """
    select submissions.public_id, attempts.fence, attempts.work, results.payload
    from results join attempts on attempts.id = results.attempt_id
        join submissions on submissions.id = results.submission_id
    where attempts.work != 'check' order by attempts.id
"""

UNKEPT = {"broker", "work", "up.lock", "supervisord.pid", "supervisor.sock", "ladder.sqlite", "bundles"}
"""What of the home no page needs."""
_WORKER_SAYS = re.compile(
    r"(?P<at>\S+ \S+) INFO worker\.grade: trace (?P<trace>\w+): "
    r"(?:attempt \w+ \(fence (?P<begins>\d+)\) begins|the judge is (?P<phase>\w+)|attempt \w+ ended)"
)
PATIENCE_S = 240.0
POLL_S = 0.25


@dataclass(frozen=True)
class Step:
    """One source that somebody hands in.

    Attributes:
        person: the local part of their address.
        slug: the assignment.
        path: the source, in this repository; the file's name begins with the verdict it must get, else it must pass
            (and be held for staff, if it begins with `held_`).
        timed: it is alone on the node, from its upload to its last word.
    """

    person: str
    slug: str
    path: str
    timed: bool = False

    @property
    def is_held(self) -> bool:
        """It has to be held for staff."""
        return Path(self.path).name.startswith("held_")

    @property
    def expected(self) -> str:
        """The longest verdict that the file's name begins with."""
        found = [verdict.value for verdict in Verdict if Path(self.path).name.startswith(f"{verdict.value}_")]
        return max(found, key=len, default=Verdict.passed.value)


@dataclass
class Handed:
    """What was handed in and what is known of it; times in seconds from the upload's beginning.

    Attributes:
        seen: every state that was seen, with the number of cases that were shown by then.
        cases_s: its page said that all cases passed, or gave another verdict.
        check_s: the check is over: compiled for other devices, its kernels looked at, the verdict recorded.
        measured_s: its times were there.
        final_s: it does not change any more.
    """

    step: Step
    public_id: str
    started: float
    final: Json = None
    seen: list[tuple[float, str]] = field(default_factory=list)
    cases_s: float | None = None
    check_s: float | None = None
    measured_s: float | None = None
    final_s: float | None = None

    def note(self, submission: Json) -> None:
        """Look at it once more."""
        at = time.monotonic() - self.started
        state = "/".join(filter(None, (submission["state"], submission["phase"], submission["verdict"])))
        state += f" {len(submission['cases'])}"
        if not self.seen or self.seen[-1][1] != state:
            self.seen.append((round(at, 3), state))
        if self.cases_s is None and (submission["cases_passed"] or submission["verdict"] is not None):
            self.cases_s = at
        if self.check_s is None and submission["verdict"] is not None:
            self.check_s = at
        if self.measured_s is None and submission["measurements"]:
            self.measured_s = at
        if self.final_s is None and submission["is_final"]:
            self.final_s, self.final = at, submission

    @property
    def is_expected(self) -> bool:
        """It is done, with the verdict that its name says, and held if it says so."""
        if not self.final:
            return False
        found = (self.final["state"], self.final["verdict"], self.final["review"] == "held")
        return found == ("done", self.step.expected, self.step.is_held)


def solution(slug: str) -> str:
    """Where the staff kernel of a rung is."""
    return f"reference/{slug}/solutions/triton.py"


def quick() -> list[Step]:
    """What shows in a minute that everything works together, cold and warm."""
    return [
        *(Step("staff", slug, solution(slug), timed=True) for slug in ("vector_add", "matmul_tiled")),
        milestone("vector_add"),
        Step("bob", "vector_add", "reference/vector_add/submissions/wrong_answer_last_tile_skipped.py", timed=True),
        Step("carol", "vector_add", "tests/gpu/hostile/held_forges_outside_batches.py", timed=True),
    ]


def whole() -> list[Step]:
    """Staff kernels on a new node; the same on a warm one, by another; milestones, wrong ones and hostile ones."""
    staff = [Step("staff", slug, solution(slug), timed=True) for slug in RUNGS]
    again = [Step("alice", slug, solution(slug), timed=True) for slug in RUNGS]
    wrong = (("vector_add", "wrong_answer_last_tile_skipped.py"), ("softmax", "wrong_answer_no_max_subtraction.py"))
    hostile = (
        "tests/gpu/hostile/held_forges_outside_batches.py",
        "tests/hostile/wrong_answer_patches_the_comparison.py",
    )
    return [
        *staff,
        *again,
        *(milestone(slug) for slug in RUNGS),
        *(Step("bob", slug, f"reference/{slug}/submissions/{name}", timed=True) for slug, name in wrong),
        *(Step("carol", "vector_add", path, timed=True) for path in hostile),
    ]


def milestone(slug: str) -> Step:
    """The best published milestone, in a name of its own, so that it has a row on the board."""
    path = max((ROOT / "assignments" / slug / "milestones").glob("*.py"))
    return Step("milestone", slug, str(path.relative_to(ROOT)), timed=True)


def smoke() -> list[Step]:
    """One that passes and one that does not."""
    wrong = "reference/vector_add/submissions/wrong_answer_last_tile_skipped.py"
    return [
        Step("staff", "vector_add", solution("vector_add"), timed=True),
        Step("bob", "vector_add", wrong, timed=True),
    ]


def rungs() -> list[Step]:
    """Each rung's first, and then the same on the warm node by another; a forged clock, if there is time left."""
    each = [Step(person, slug, solution(slug), timed=True) for slug in RUNGS for person in ("staff", "alice")]
    return [*each, Step("carol", "vector_add", "tests/gpu/hostile/held_forges_outside_batches.py", timed=True)]


SETS = {"smoke": smoke, "quick": quick, "rungs": rungs, "whole": whole}


def add_people(environ: Mapping[str, str], password: str, people: Iterable[str]) -> None:
    """Make accounts for those who are not in the demo course yet; their names show on the boards."""
    os.environ.update(environ)
    # Where nothing of the server is installed, `--help` still works.
    import server.gradebook  # noqa: F401, PLC0415 -- works out the grades of who is enrolled
    from server.accounts import accounts  # noqa: PLC0415
    from server.console import work  # noqa: PLC0415
    from server.courses import courses  # noqa: PLC0415
    from server.models import Role  # noqa: PLC0415

    with work() as (session, _config):
        course = courses.course_by_slug(session, seed.COURSE)
        for person in people:
            user = accounts.create_user(session, email=address(person), name=NAMES[person], password=password)
            courses.enrol(session, course=course, user=user, role=Role.student)
            membership = courses.membership(session, user, seed.COURSE)
            courses.set_show_name(session, membership, show=True)


def address(person: str) -> str:
    """Their e-mail address."""
    return f"{person}@example.org"


def hand_in(api: Api, step: Step, lane: Lane) -> Handed:
    """Submit it."""
    source = (ROOT / step.path).read_text(encoding="utf-8", errors="surrogateescape")
    submission = {
        "mode": "submission", "lane": lane.value, "language": "triton", "filename": f"{step.slug}.py", "source": source,
    }  # fmt: skip
    started = time.monotonic()
    return Handed(step, api.submit(seed.COURSE, step.slug, submission)["public_id"], started)


def watch(api: Api, one: Handed) -> None:
    """Follow its live events until it does not change any more."""
    for submission in api.follow(one.public_id):
        one.note(submission)
        if time.monotonic() - one.started > PATIENCE_S:
            return
    one.note(api.submission(one.public_id))


def watch_all(waiting: Sequence[tuple[Api, Handed]], until: float) -> None:
    """Look at them in turns until all are final, or the time is up."""
    left = list(waiting)
    while left and time.monotonic() < until:
        for api, one in left:
            one.note(api.submission(one.public_id))
        left = [(api, one) for api, one in left if one.final_s is None]
        time.sleep(POLL_S)


def go_through(
    served: up.Serving,
    steps: Sequence[Step],
    lane: Lane,
    until: float,
    handed: list[Handed],
    *,
    rest: Callable[[], None] = lambda: None,
) -> None:
    """Hand everything in, and note it in `handed`: the timed ones one by one, then the others together.

    Args:
        rest: before each of the timed ones.
    """
    password = served.accounts.password if served.accounts else ""
    apis = {person: log_in(served.url, person, password) for person in {step.person for step in steps}}
    for step in (step for step in steps if step.timed):
        rest()
        handed.append(hand_in(apis[step.person], step, lane))
        watch(apis[step.person], handed[-1])
        say(handed[-1])
    waiting: list[tuple[Api, Handed]] = []
    for step in (step for step in steps if not step.timed):
        # One waits for the one before: a newer submission of theirs for the same rung would take its place.
        before = [pair for pair in waiting if (pair[1].step.person, pair[1].step.slug) == (step.person, step.slug)]
        watch_all(before, until)
        handed.append(hand_in(apis[step.person], step, lane))
        waiting.append((apis[step.person], handed[-1]))
    watch_all(waiting, until)
    for _, one in waiting:
        say(one)


def rest(database: Path, rest_s: float, until: float) -> None:
    """Wait until the node has graded nothing for so long, in which it replaces the containers that it has used.

    Whoever leads a board is graded once more within a minute: that is work too.
    """
    with closing(sqlite3.connect(database)) as connection:
        while rest_s and time.monotonic() < until:
            ended, busy = connection.execute(_AT_REST).fetchone()
            idle_s = rest_s
            if ended:
                idle_s = (datetime.now(UTC) - datetime.fromisoformat(f"{ended}+00:00")).total_seconds()
            if not busy and idle_s >= rest_s:
                return
            time.sleep(POLL_S)


def log_in(url: str, person: str, password: str) -> Api:
    """The API as this person."""
    with Api(Account(url, "")) as api:
        token = str(api.create_token(address(person), password, "whole way")["token"])
    return Api(Account(url, token))


def say(one: Handed) -> None:
    """One line."""
    final = one.final or {"state": "unfinished", "verdict": None, "measurements": (), "review": "", "score": None}
    times = ", ".join(
        f"{name} {value:.2f} s"
        for name, value in (
            ("cases", one.cases_s),
            ("check", one.check_s),
            ("measured", one.measured_s),
            ("final", one.final_s),
        )
        if value is not None
    )
    speeds = "; ".join(
        f"{one['case']} {one['time_us']:.1f} us, ratio {one['ratio']:.4f}" for one in final["measurements"]
    )
    points = f"{final['score']['total']:.1f} points" if final["score"] else "no points"
    mark = "" if one.is_expected else f"   NOT {one.step.expected}"
    print(f"{one.step.person:12} {one.step.path}: {final['state']} {final['verdict']} {final['review']} {points} "
          f"[{times}] {speeds}{mark}", flush=True)  # fmt: skip


def phases_of(log: Path) -> list[str]:
    """How long each phase of each attempt took, as the worker saw it: one line per attempt."""
    lines: list[str] = []
    before, name = 0.0, ""
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        if not (found := _WORKER_SAYS.match(line)):
            continue
        at = datetime.fromisoformat(found["at"].replace(",", ".")).timestamp()
        if found["begins"]:
            lines.append(f"{found['trace'][:8]} fence {found['begins']}:")
        elif lines and name:
            lines[-1] += f" {name} {at - before:.2f}"
        before, name = at, found["phase"] or "staging"
    return lines


def boards(served: up.Serving, lane: Lane) -> dict[str, Json]:
    """The leaderboards as a student sees them."""
    password = served.accounts.password if served.accounts else ""
    with log_in(served.url, "alice", password) as api:
        return {slug: api.leaderboard(seed.COURSE, slug, lane.value) for slug in RUNGS}


def show(board: Json) -> None:
    """Print the entries of one board."""
    for entry in board["entries"]:
        print(f"  {entry['rank']:2} {entry['name']:24} ratio {entry['ratio']:.4f} "
              f"[{entry['ratio_low']:.4f}, {entry['ratio_high']:.4f}] {entry['time_us']:.1f} us")  # fmt: skip


def report(handed: Sequence[Handed], found: dict[str, Json], **facts: Any) -> Json:
    """Everything that was seen."""
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        **facts,
        "submissions": [
            {
                **asdict(one.step), "expected": one.step.expected, "is_expected": one.is_expected,
                "public_id": one.public_id, "cases_s": one.cases_s, "check_s": one.check_s,
                "measured_s": one.measured_s, "final_s": one.final_s, "seen": one.seen, "final": one.final,
            }
            for one in handed
        ],
        "boards": found,
    }  # fmt: skip


def measured(database: Path) -> list[Json]:
    """What each measurement took, confirmations too, by the results of a database."""
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute(_MEASURED).fetchall()
    return [
        {"submission": submission, "fence": fence, "work": work, **_figures(json.loads(payload))}
        for submission, fence, work, payload in rows
    ]


def _batches(bound: Json | None) -> int:
    """How many were taken, those that did not count among them."""
    return len(bound["batches"]) + len(bound.get("dropped", ())) if bound else 0


def _figures(result: Json) -> Json:
    """Seconds that nobody else could use the GPU, and how each ranked case was timed."""
    cases = [
        {
            "case": one["case"], "clock": one["clock"], "ratio": round(one["ratio"], 4),
            "batches": _batches(one["bound"]), "remeasure": one["remeasure"],
        }
        for one in result["measurements"]
    ]  # fmt: skip
    phases = {one["phase"]: round(one["seconds"], 3) for one in result["phases"]}
    return {"exclusive_s": round(result["exclusive_s"], 3), "phases": phases, "cases": cases}


def keep(home: Path, out: Path) -> None:
    """Pack the home as it is now, the database as one file, for pages that are looked at elsewhere."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "ladder.sqlite"
        with closing(sqlite3.connect(home / "ladder.sqlite")) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target)
        with tarfile.open(out, "w:xz") as archive:
            archive.add(copy, "home/ladder.sqlite")
            for path in sorted(home.iterdir()):
                if path.name not in UNKEPT and not path.name.startswith("ladder.sqlite") and not path.is_socket():
                    archive.add(path, f"home/{path.name}")
            if (log := home / "work" / "judge.log").is_file():
                archive.add(log, "home/log/judge.log")


def main() -> int:
    """Serve, submit, keep."""
    options = _options()
    options.out.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    steps = [step for step in SETS[options.set]() if not options.rungs or step.slug in options.rungs]
    environ = {
        **os.environ, "LADDER_LANES": options.lane.value, "LADDER_SUBMIT_QUOTA_PER_MINUTE": "1000",
        **({"LADDER_SANDBOX": options.sandbox} if options.sandbox else {}),
    }  # fmt: skip
    home = Path(tempfile.mkdtemp(prefix="whole-way-")) / "home"
    handed: list[Handed] = []
    found: dict[str, Json] = {}
    with up.stopping_on_signals(), up.serving(home, print, environ) as served:
        ready_s = time.monotonic() - began
        print(f"ready after {ready_s:.1f} s", flush=True)
        try:
            password = served.accounts.password if served.accounts else ""
            strangers = sorted({step.person for step in steps if address(step.person) not in seed.PEOPLE})
            add_people({**environ, "LADDER_HOME": str(home)}, password, strangers)
            until = began + options.seconds
            waits = partial(rest, home / "ladder.sqlite", options.rest, until)
            go_through(served, steps, options.lane, until, handed, rest=waits)
            found = boards(served, options.lane)
        finally:
            text = json.dumps(report(handed, found, lane=options.lane.value, set=options.set, ready_s=ready_s))
            (options.out / "whole_way.json").write_text(text, encoding="utf-8")
            keep(home, options.out / "whole_way.tar.xz")
            taken = json.dumps({"measurements": measured(home / "ladder.sqlite")}, indent=1)
            (options.out / "whole_way_measured.json").write_text(f"{taken}\n", encoding="utf-8")
    print("seconds by phase, by the worker's log", *phases_of(home / "log" / "worker.log"), sep="\n  ")
    for slug, board in found.items():
        print(slug)
        show(board)
    print(f"{sum(one.is_expected for one in handed)} of {len(steps)} as expected, {time.monotonic() - began:.0f} s")
    return 0 if handed and all(one.is_expected for one in handed) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lane", type=Lane, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--set", choices=SETS, default="quick")
    parser.add_argument("--rungs", nargs="*", default=(), help="of the set, those of these rungs only")
    parser.add_argument(
        "--sandbox", choices=("process", "docker"), help="the node's sandbox, where it is not the default"
    )
    parser.add_argument("--seconds", type=float, default=500.0, help="give up waiting for submissions after so many")
    parser.add_argument("--rest", type=float, default=0.0, help="seconds without work before each that is timed")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
