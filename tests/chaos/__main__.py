"""`python -m tests.chaos`: one run, guarded; exit status 0 if nothing is broken."""

from __future__ import annotations

import argparse
import json
import secrets
import shutil
import sys
import traceback
from functools import partial
from pathlib import Path

from tests.chaos.guard import guarded
from tests.chaos.plan import FULL, QUICK
from tests.chaos.report import as_json, as_table, write_into
from tests.chaos.run import Outcome, differences, run
from tests.chaos.services import NotHereError

NOT_HERE = 77
"""What this machine lacks: no failure, and no run."""


def main() -> int:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the two-minute version")
    parser.add_argument("--seed", type=int, default=None, help="the same seed is the same plan")
    parser.add_argument("--no-calm", action="store_true", help="do not compare with a run without faults")
    parser.add_argument("--report", type=Path, help="write the JSON there")
    parser.add_argument("--page", type=Path, help="write the table into this page")
    parser.add_argument("--logs", type=Path, default=Path("var/chaos"), help="where a failing run leaves its logs")
    options = parser.parse_args()
    options.seed = secrets.randbelow(10**6) if options.seed is None else options.seed
    print(f"seed {options.seed}", flush=True)
    return guarded(partial(_run, options))


def _run(options: argparse.Namespace, folder: Path, guard: int) -> int:
    try:
        return _runs(options, folder, guard)
    except NotHereError as error:
        print(f"not on this machine: {error}")
        return NOT_HERE
    except Exception:
        _keep_logs(options, folder)
        raise


def _runs(options: argparse.Namespace, folder: Path, guard: int) -> int:
    scale = QUICK if options.quick else FULL
    chaos = run(folder / "chaos", guard, options.seed, scale)
    calm = None if options.no_calm else run(folder / "calm", guard, options.seed, scale, calm=True)
    if calm is not None:
        chaos.broken += [*calm.broken, *differences(calm, chaos)]
    passed = _tell(options, chaos, calm)
    if not passed:
        _keep_logs(options, folder)
    return 0 if passed else 1


def _tell(options: argparse.Namespace, chaos: Outcome, calm: Outcome | None) -> bool:
    report = as_json(chaos, "make chaos QUICK=1" if options.quick else "make chaos", calm)
    print(as_table(report))
    for item in chaos.broken[:50]:
        print(f"BROKEN {item.rule}: {item.subject}: {item.detail}")
    if options.report:
        options.report.parent.mkdir(parents=True, exist_ok=True)
        options.report.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    if options.page:
        write_into(options.page, as_table(report))
    return bool(report["passed"])


def _keep_logs(options: argparse.Namespace, folder: Path) -> None:
    if sys.exc_info()[0] is not None:
        traceback.print_exc()
    kept = options.logs / f"seed-{options.seed}"
    shutil.rmtree(kept, ignore_errors=True)
    for logs in (*folder.glob("*/logs"), *folder.glob("*/*/log")):
        to = kept / logs.relative_to(folder)
        to.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if logs.is_dir() else shutil.copy)(logs, to)
    print(f"seed {options.seed} broke something; the logs are in {kept}")


if __name__ == "__main__":
    sys.exit(main())
