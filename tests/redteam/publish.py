"""Writes docs/redteam.md anew from recorded runs: `python -m tests.redteam.publish FOLDER`.

The folder has tables (`table*.json`, of `python -m tests.redteam --json`) and searches (`search*.json`). A later
table's rows stand for an earlier one's on the same path; what was skipped stands for nothing. Verdicts are as they were
recorded; what they must be is taken from the tables of today.
"""

from __future__ import annotations

import argparse
import functools
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path as Folder

from autograder.contract import Lane
from tests.redteam import search
from tests.redteam.attacks import BITE, Task, tasks
from tests.redteam.outcome import Outcome, Seen, outcome
from tests.redteam.table import FINE, Row, Table, from_json

ROOT = Folder(__file__).parents[2]
PAGE = ROOT / "docs" / "redteam.md"
LONGEST = 120
"""Characters of a command that are shown."""

BEGIN, END = "<!-- {}:begin -->", "<!-- {}:end -->"


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


def runs(tables: Sequence[tuple[str, Table]]) -> str:
    """What was run where: machine, command, counts."""
    lines = ["| run | on | command | rows | differ | skipped |", "|---|---|---|---:|---:|---:|"]
    for name, table in tables:
        where = "; ".join(f"{key} {value}" for key, value in table.machine.items())
        differ = sum(row.outcome not in FINE for row in table.rows)
        counts = table.counts()
        command = table.command if len(table.command) < LONGEST else table.command[:LONGEST] + " …"
        lines.append(f"| {name} | {where} | `{command}` | {counts['rows']} | {differ} | {counts['skipped']} |")
    return "\n".join(lines)


def totals(table: Table) -> str:
    """Counts by path, of attacks and bites."""
    heads = ("path", "files", "false accepts", "escapes", "false holds", "other differences", "bites", "that bite")
    lines = [f"| {' | '.join(heads)} |", "|---|" + "---:|" * (len(heads) - 1)]
    for path in table.paths:
        rows = [row for row in table.rows if row.lane == path.lane and row.sandbox == path.sandbox]
        graded = [row for row in rows if row.outcome is not Outcome.skipped]
        bites = [row for row in graded if row.attack.endswith(BITE)]
        plain = [row for row in graded if not row.attack.endswith(BITE)]
        lines.append(f"| {' | '.join((path.name, *map(str, _counted(plain, bites))))} |")
    return "\n".join(lines)


def _counted(plain: Sequence[Row], bites: Sequence[Row]) -> tuple[int, ...]:
    named = (Outcome.false_accept, Outcome.escape, Outcome.false_hold)
    others = sum(row.outcome not in {*FINE, *named} for row in plain)
    found = (sum(row.outcome is outcome for row in plain) for outcome in named)
    return len(plain), *found, others, len(bites), sum(row.outcome is Outcome.as_expected for row in bites)


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


def parts(folder: Folder) -> dict[str, str]:
    """What stands between the page's marks, by their names."""
    tables = [
        (path.stem.removeprefix("table-"), today(from_json(json.loads(path.read_text(encoding="utf-8")))))
        for path in sorted(folder.glob("table*.json"), key=_number)
    ]
    probes = [probe for path in sorted(folder.glob("search*.json")) for probe in search.load(path)]
    whole = merged([table for _, table in tables])
    return {
        "runs": runs(tables),
        "totals": totals(whole),
        "table": whole.as_text(),
        "search": search.table(probes) if probes else "No search was recorded.",
    }


def main() -> None:
    """Read, put together, write."""
    parser = argparse.ArgumentParser(prog="python -m tests.redteam.publish", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Folder)
    folder = parser.parse_args().folder
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), parts(folder)), encoding="utf-8")


if __name__ == "__main__":
    main()
