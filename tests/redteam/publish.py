"""Writes docs/redteam.md anew from recorded runs: `python -m tests.redteam.publish FOLDER`.

The folder has tables (`table*.json`, of `python -m tests.redteam --json`), results with their samples
(`raw*.jsonl.xz`), searches (`search*.json`), and in `reasons.toml` why rows differed. A later table's rows stand for an
earlier one's on the same path; what was skipped stands for nothing. Verdicts are as they were recorded; what they must
be is taken from the tables of today.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import lzma
import re
import textwrap
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path as Folder

from autograder import codec
from autograder.contract import GradeResult, Lane, Measurement
from tests.redteam import decide, search
from tests.redteam.attacks import BITE, Task, tasks
from tests.redteam.outcome import Outcome, Seen, outcome
from tests.redteam.table import FINE, Path, Row, Table, from_json

ROOT = Folder(__file__).parents[2]
PAGE = ROOT / "docs" / "redteam.md"
BEGIN, END = "<!-- {}:begin -->", "<!-- {}:end -->"

CLASSES = {
    "A": "the clock",
    "B": "the verdict",
    "C": "the checker",
    "D": "not doing the work",
    "E": "right, and not the exercise",
    "F": "the machine, other people",
    "input": "a source that is no program",
    "honest": "no attack",
}
"""What is counted together: the letters of docs/threats.md, and what else the tables call a class."""

ON_THE_CLOCK = "held_"
"""What the names of attacks on the clock begin with."""

BEFORE_THE_BOUND = "4-h200-process"
"""The run in which nothing bounded the event clock yet: whatever it claimed was credited."""

SHOWN = 60
"""Characters of what a file tries."""

LEAST_GAIN = 0.0005
"""Less is shown as none."""


@dataclass(frozen=True)
class Run:
    """One recorded run.

    Attributes:
        name: its file's, such as `21b-h200-process`; other pages call it red team 21b.
        then: its rows as they were recorded.
        now: its rows held against the tables of today.
    """

    name: str
    then: Table
    now: Table

    @property
    def number(self) -> str:
        """Its number, with a letter if there is one."""
        return self.name.partition("-")[0]


@dataclass(frozen=True)
class Reason:
    """Why rows of some runs differed; `files` are patterns of their names."""

    says: str
    runs: tuple[str, ...]
    files: tuple[str, ...] = ("*",)

    def fits(self, run: Run, row: Row) -> bool:
        """Whether it is this row's."""
        return run.name in self.runs and any(fnmatchcase(row.attack, pattern) for pattern in self.files)


def merged(tables: Sequence[Table]) -> Table:
    """One table of several runs, in the order of the first row of each attack."""
    rows: dict[tuple[str, str, str], Row] = {}
    for table in tables:
        for row in table.rows:
            if row.outcome is Outcome.skipped and not row.expected:
                continue
            key = (row.attack, row.lane, row.sandbox)
            if row.outcome is not Outcome.skipped or key not in rows:
                rows[key] = row
    paths = {path.name: path for table in tables for path in table.paths if not path.skipped}
    order = {name: number for number, name in enumerate(dict.fromkeys(key[0] for key in rows))}
    return Table(
        sorted(paths.values(), key=lambda path: path.name),
        sorted(rows.values(), key=lambda row: order[row.attack]),
        seconds=sum(table.seconds for table in tables),
    )


_RATIOS = re.compile(r".*?ratios (nothing|[\d.]+(, [\d.]+)*),? ?")


def today(table: Table) -> Table:
    """Its rows held against the tables of today: a verdict stays what it was, what it must be may be said better."""
    return replace(table, rows=[_today(row) for row in table.rows])


def _today(row: Row) -> Row:
    task = _tasks(row.lane, row.sandbox).get(row.attack)
    if task is None:
        return replace(row, outcome=Outcome.skipped, detail="it is not in the tables any more", verdict="", expected=())
    if row.outcome in {Outcome.skipped, Outcome.error, Outcome.cleared, Outcome.escape, Outcome.false_hold}:
        return row
    if task.skipped:
        return replace(row, outcome=Outcome.skipped, detail=task.skipped, verdict="", expected=())
    # What a row does not keep is as it must be: it was looked at when the row was made. So is what was claimed, where
    # a held submission ranks by another clock than its own.
    claimed = row.ratios if row.outcome is Outcome.no_bite else (0.0,)
    seen = Seen(
        row.verdict,
        held=row.held,
        ratios=row.ratios,
        claimed=claimed,
        findings=task.findings,
        remeasure=_remeasure(row),
    )
    how, why = outcome(task, seen)
    same = how is row.outcome
    return replace(row, outcome=how, detail=row.detail if same else why, expected=task.expected)


def _remeasure(row: Row) -> str:
    """Why a bite that passed was to be measured again: what its row says after the ratios, if anything."""
    asked = row.outcome is Outcome.no_bite and not row.held
    return _RATIOS.sub("", row.detail) if asked else ""


@functools.cache
def _tasks(lane: str, sandbox: str) -> dict[str, Task]:
    return {task.name: task for task in tasks(Lane(lane), sandbox)}


def classes(whole: Table) -> str:
    """By class: its files, how many of those that a path graded are as expected, and bites that succeed."""
    heads = ("class", "files", *(path.name for path in whole.paths), "bites", "put right")
    groups = [(_named(letter), *_counted(whole, letter)) for letter in CLASSES]
    return _markdown(heads, [*groups, ("all", *_counted(whole, ""))])


def _named(letter: str) -> str:
    """A class with the numbers that have a file."""
    numbers = sorted({int(task.threat[1:]) for task in _every_task() if re.fullmatch(rf"{letter}\d+", task.threat)})
    spans = [list(span) for _, span in itertools.groupby(numbers, key=lambda number: number - numbers.index(number))]
    said = ", ".join(f"{span[0]}–{span[-1]}" if len(span) > 1 else str(span[0]) for span in spans)
    return f"{letter}: {CLASSES[letter]} ({said})" if said else CLASSES[letter]


def _every_task() -> Sequence[Task]:
    """A GPU's lane has all files, and the process sandbox all bites."""
    return list(_tasks("h200", "process").values())


def _counted(whole: Table, letter: str) -> tuple[str, ...]:
    files = [task for task in _every_task() if task.threat.startswith(letter) and not task.name.endswith(BITE)]
    graded = [row for row in whole.rows if row.threat.startswith(letter) and _was_graded(row)]
    plain = [row for row in graded if not row.attack.endswith(BITE)]
    bites = [row for row in graded if row.attack.endswith(BITE)]
    return (
        str(len(files)),
        *(_fine([row for row in plain if _is_on(path, row)]) for path in whole.paths),
        _fine([row for row in bites if _lacks_a_defence(row)]),
        _fine([row for row in bites if not _lacks_a_defence(row)]),
    )


def _was_graded(row: Row) -> bool:
    return row.outcome is not Outcome.skipped


def _is_on(path: Path, row: Row) -> bool:
    return (row.lane, row.sandbox) == (path.lane, path.sandbox)


def _lacks_a_defence(bite: Row) -> bool:
    """Whether a defence is off in it, or the judge in another process; else its file is put right."""
    task = _tasks(bite.lane, bite.sandbox)[bite.attack]
    return bool(task.without) or task.naive


def _fine(rows: Sequence[Row]) -> str:
    return f"{sum(row.outcome in FINE for row in rows)}/{len(rows)}" if rows else "—"


def where(runs: Sequence[Run], whole: Table) -> str:
    """Every path: how many of the files that mean something there were graded, when, and on what."""
    heads = ("path", "files", "graded", "as expected", "measured again", "dates", "machine")
    return _markdown(heads, [_of_path(path, runs, whole) for path in whole.paths])


def _of_path(path: Path, runs: Sequence[Run], whole: Table) -> tuple[str, ...]:
    own = [run for run in runs if any(_is_on(path, row) and _was_graded(row) for row in run.then.rows)]
    dates = [run.then.date for run in own]
    rows = [row for row in whole.rows if _is_on(path, row) and _was_graded(row) and not row.attack.endswith(BITE)]
    files = [
        task for task in _tasks(path.lane, path.sandbox).values() if not (task.skipped or task.name.endswith(BITE))
    ]
    return (
        path.name,
        str(len(files)),
        str(len(rows)),
        str(sum(row.outcome in FINE for row in rows)),
        str(sum(row.outcome is Outcome.cleared for row in rows)),
        " to ".join(dict.fromkeys((min(dates), max(dates)))),
        "; ".join(dict.fromkeys(_machine(run.then.machine) for run in own)),
    )


def _machine(facts: dict[str, str]) -> str:
    said = {"gpu": "{}", "gpu driver": "driver {}", "cuda": "CUDA {}", "cpu cores": "{} cores"}
    return ", ".join(text.format(facts[name]) for name, text in said.items() if name in facts)


def untried(whole: Table) -> str:
    """Files that no recorded run graded on any path."""
    graded = {row.attack for row in whole.rows if _was_graded(row)}
    return ", ".join(f"`{task.name}`" for task in _every_task() if task.name not in graded) or "none"


def last_differences(runs: Sequence[Run], reasons: Sequence[Reason], whole: Table) -> str:
    """Files that were not as expected when their path graded them last, and how many of each kind there are."""
    kinds = [kind for kind in Outcome if kind not in FINE]
    counts = ", ".join(f"{sum(row.outcome is kind for row in whole.rows)} {kind}" for kind in kinds)
    return f"As last run: {counts}.\n\n" + _differences(runs, reasons)


def _differences(runs: Sequence[Run], reasons: Sequence[Reason]) -> str:
    found: dict[tuple[str, str], list[tuple[Run, Row]]] = defaultdict(list)
    for run in runs:
        for row in run.now.rows:
            if _was_graded(row):
                found[row.attack, f"{row.lane} {row.sandbox}"].append((run, row))
    told: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for (attack, path), graded in found.items():
        if graded[-1][1].outcome not in FINE:
            told[path].append((f"`{attack}`", _what_happened(graded, reasons)))
    return "\n\n".join(_markdown((path, "what it got (in which run)"), rows) for path, rows in told.items())


def _what_happened(graded: Sequence[tuple[Run, Row]], reasons: Sequence[Reason]) -> str:
    """What differed, by kind and reason, with the numbers of the runs."""
    told: dict[tuple[str, str], list[str]] = defaultdict(list)
    for run, row in graded:
        if row.outcome not in FINE:
            what = f"`{row.verdict}`" if row.outcome is Outcome.different else str(row.outcome)
            told[what, reason_of(run, row, reasons)].append(run.number)
    return "; ".join(f"{what} ({', '.join(numbers)}): {reason}" for (what, reason), numbers in told.items())


def reason_of(run: Run, row: Row, reasons: Sequence[Reason]) -> str:
    """The first reason that fits a row, or what it says itself."""
    return next((reason.says for reason in reasons if reason.fits(run, row)), row.detail)


def judged_otherwise(run: Run) -> list[Row]:
    """Rows that were not as expected by the tables of their day, and are by today's, or are there no more."""
    pairs = zip(run.then.rows, run.now.rows, strict=True)
    return [then for then, now in pairs if then.outcome not in FINE and now.outcome in FINE]


def clock(runs: Sequence[Run], folder: Folder) -> str:
    """Attacks on the clock: the gain that each claimed by the event clock, and the largest that it was credited with.

    By the rules of today, what was recorded with its samples is decided anew.
    """
    graded: dict[str, list[float]] = defaultdict(list)
    claimed: dict[str, list[float]] = defaultdict(list)
    anew: dict[str, list[float]] = defaultdict(list)
    for run in runs:
        for row in run.now.rows:
            if run.name != BEFORE_THE_BOUND and row.verdict == "passed":
                graded[row.attack] += row.ratios
    for attack, found in _measurements(folder):
        claimed[attack].append(decide.forged(found, 1.0).ratio)
        anew[attack].append(decide.judged(found).ratio)
    return _markdown(
        ("file", "what it tries", "claimed", "credited when graded", "credited by today's rules"),
        [
            (
                f"`{name}`",
                textwrap.shorten(task.tries, SHOWN, placeholder=" …"),
                *(_gain(by[name]) for by in (claimed, graded, anew)),
            )
            for name, task in _tasks("h200", "docker").items()
            if name.startswith(ON_THE_CLOCK)
        ],
    )


def _measurements(folder: Folder) -> Iterator[tuple[str, Measurement]]:
    """What attacks on the clock that passed were recorded with."""
    for path in sorted(folder.glob("raw*.jsonl.xz")):
        with lzma.open(path, "rt", encoding="utf-8") as lines:
            for data in map(json.loads, lines):
                if data["attack"].startswith(ON_THE_CLOCK) and not data["attack"].endswith(BITE):
                    result = codec.from_json(GradeResult, data["result"])
                    yield from ((data["attack"], found) for found in result.measurements if result.verdict == "passed")


def _gain(ratios: Sequence[float]) -> str:
    """The largest, of files whose own speed is the reference's."""
    if not ratios:
        return "—"
    gain = 1 - min(ratios)
    return f"{gain:.1%}" if gain > LEAST_GAIN else "none"


def _markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heads, ("---",) * len(heads), *rows))


def written(text: str, by_name: dict[str, str]) -> str:
    """A page with what lies between its marks replaced.

    Raises:
        ValueError: a mark is not there.
    """
    for name, part in by_name.items():
        begin, end = BEGIN.format(name), END.format(name)
        head, found, rest = text.partition(begin)
        _, closed, tail = rest.partition(end)
        if not (found and closed):
            raise ValueError(f"the page has no marks for {name}")
        text = f"{head}{begin}\n{part}\n{end}{tail}"
    return text


def _number(path: Folder) -> tuple[int, str]:
    """Runs are numbered: the tenth comes after the ninth, `3b` after `3`."""
    found = re.match(r"table-(\d+)", path.name)
    return int(found[1]) if found else 0, path.name


def recorded(folder: Folder) -> list[Run]:
    """All runs of a folder, in the order of their numbers."""
    found = []
    for path in sorted(folder.glob("table*.json"), key=_number):
        table = from_json(json.loads(path.read_text(encoding="utf-8")))
        found.append(Run(path.stem.removeprefix("table-"), table, today(table)))
    return found


def reasons_of(folder: Folder) -> list[Reason]:
    """Why rows differed, as written down."""
    path = folder / "reasons.toml"
    said = tomllib.loads(path.read_text(encoding="utf-8"))["reason"] if path.exists() else []
    return [Reason(one["says"], tuple(one["runs"]), tuple(one.get("files", ("*",)))) for one in said]


def parts(folder: Folder) -> dict[str, str]:
    """What stands between the page's marks, by their names; but for the search, which takes a while."""
    runs, reasons = recorded(folder), reasons_of(folder)
    whole = merged([run.now for run in runs])
    return {
        "classes": classes(whole),
        "where": where(runs, whole),
        "untried": untried(whole),
        "last": last_differences(runs, reasons, whole),
        "clock": clock(runs, folder),
    }


def searched(folder: Folder) -> str:
    """What the recorded searches found, by the rules of today."""
    probes = [probe for path in sorted(folder.glob("search*.json")) for probe in search.load(path)]
    return search.table(probes) if probes else "No search was recorded."


def main() -> None:
    """Read, put together, write."""
    parser = argparse.ArgumentParser(prog="python -m tests.redteam.publish", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Folder)
    folder = parser.parse_args().folder
    made = {**parts(folder), "search": searched(folder)}
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), made), encoding="utf-8")


if __name__ == "__main__":
    main()
