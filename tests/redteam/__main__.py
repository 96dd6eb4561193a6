"""`python -m tests.redteam`: grade the hostile corpus and print the table; exit status 0 if nothing differs."""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path

from autograder.contract import Lane
from tests.redteam.outcome import Outcome
from tests.redteam.run import run
from tests.redteam.stands import DRIVERS
from tests.redteam.table import FINE, Row, Table, from_json
from tests.redteam.table import Path as Way

OPEN = {Outcome.skipped, Outcome.error}
"""What says nothing, and is graded again when a run goes on."""

NOT_HERE = 77
"""No path could be run: no failure, and no red team."""


def main() -> int:
    """Read the command line, run, print."""
    options = _options()
    command = "python -m tests.redteam " + " ".join(word for word in sys.argv[1:] if not Path(word).is_absolute())
    told: list[Row] = []

    def tell(row: Row) -> None:
        """Show it, and keep what there is: who stops a long run has its rows so far."""
        _tell(row)
        told.append(row)
        if options.json:
            _write(options.json, Table(_paths(told), told, command=command))

    table = run(
        lanes=options.lane,
        sandboxes=options.sandbox,
        only=options.only,
        quick=options.quick,
        serial=options.serial,
        jobs=options.jobs,
        limit_s=options.limit_s,
        told=tell,
        log=options.log,
        raw=options.raw,
        graded=_graded(options.resume),
    )
    table.command = command
    print(table.as_text())
    if options.json:
        _write(options.json, table)
    if all(path.skipped for path in table.paths):
        return NOT_HERE
    return 0 if table.ok else 1


def _write(path: Path, table: Table) -> None:
    path.write_text(json.dumps(table.as_json(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _paths(rows: list[Row]) -> list[Way]:
    return [Way(lane, sandbox) for lane, sandbox in dict.fromkeys((row.lane, row.sandbox) for row in rows)]


def _graded(files: list[Path]) -> set[tuple[str, str, str]]:
    """What need not be graded again: everything that a table has a verdict for."""
    tables = [from_json(json.loads(path.read_text(encoding="utf-8"))) for path in files if path.exists()]
    return {(row.attack, row.lane, row.sandbox) for table in tables for row in table.rows if row.outcome not in OPEN}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.redteam", description=__doc__)
    parser.add_argument("--lane", type=Lane, nargs="+", default=[], help="all that this machine has a device for")
    parser.add_argument("--sandbox", choices=DRIVERS, nargs="+", default=list(DRIVERS))
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="CLASS", help="classes (A1, or A), names of files, or bite: all bites"
    )
    parser.add_argument("--quick", action="store_true", help="the subset that a node's owner runs")
    parser.add_argument("--serial", action="store_true", help="only what has to be alone: timed, or fills the machine")
    parser.add_argument("--jobs", type=int, default=1, help="files that are not timed, side by side")
    parser.add_argument("--limit-s", type=float, default=math.inf, help="what has not begun by then is skipped")
    parser.add_argument("--json", type=Path, help="write everything there")
    parser.add_argument("--resume", type=Path, nargs="*", default=[], help="tables; what was graded there is left out")
    parser.add_argument("--raw", type=Path, help="every result with its samples, as lines of JSON")
    parser.add_argument("--log", type=Path, help="what the judges print")
    return parser.parse_args()


def _tell(row: Row) -> None:
    mark = "  " if row.outcome in FINE else "✗ "
    print(f"{mark}{row.lane} {row.sandbox} {row.attack}: {row.outcome} {row.detail[:160]}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
