"""Grade the corpus on a GPU lane, beside a plain measurement of each program; print a table and keep the raw results.

python -m tests.styles grade --lane h100 --out FILE.jsonl [--half first_half] [--limit-s 500] [--plain] [FILE …]
python -m tests.styles table FILE.jsonl …

A program that is in FILE.jsonl already is not graded again: started again, it goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Iterable
from typing import Any

from autograder.contract import GradeResult, Lane
from tests.graded import ROOT, keep, options, results_of, rows_of, stand, waiting
from tests.styles.programs import Program, programs

NEAR = (0.02, 0.05)
"""By how much a ratio may differ from the plain one: nearly all of them, and all whose cause is not named."""
LEAST_US = 100.0
"""Of the reference: shorter calls are not compared."""


def main() -> None:
    """Grade, or print the table of what was graded."""
    asked = options(__doc__, lambda grading: grading.add_argument("--plain", action="store_true"))
    if asked.command == "grade":
        _grade_all(asked)
        asked.files = [asked.out]
    for line in lines_of([row for path in asked.files for row in rows_of(path)]):
        print(line)


def _grade_all(asked: argparse.Namespace) -> None:
    with stand(asked.sandbox) as judge:
        for program in waiting(programs(*asked.half), asked):
            attempts = judge.attempts(program, asked.lane)
            row = {"file": program.file, "half": program.half, "lane": asked.lane.value, "attempts": attempts}
            if asked.plain:
                row["plain"] = _plain(program, asked.lane)
            keep(row, asked.out)


def _plain(program: Program, lane: Lane) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "tests.styles.plain", program.rung, str(program.path), "--lane", lane.value]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    except subprocess.TimeoutExpired:
        return [{"error": "not done in 60 s"}]
    if done.returncode:
        return [{"error": done.stderr[-500:]}]
    # What the program itself prints stands among them.
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"case"')]


def lines_of(rows: list[dict[str, Any]]) -> Iterable[str]:
    """The table of all programs."""
    if not rows:
        return
    graded = [(row, results_of(row)) for row in rows]
    yield f"{len(rows)} programs"
    for name, wrong in {
        "not passed": [row["file"] for row, found in graded if found[-1].verdict != "passed"],
        "held": [row["file"] for row, found in graded if any(one.held for one in found)],
        "findings": [row["file"] for row, found in graded if any(one.findings for one in found)],
        "grader errors": [row["file"] for row, found in graded if any(one.verdict == "grader_error" for one in found)],
        "measured again": [row["file"] for row, found in graded if len(found) > 2],
    }.items():
        yield f"{name}: {len(wrong)} {' '.join(wrong)}"
    checks = [row["attempts"][0]["seconds"] for row, _ in graded]
    totals = [sum(one["seconds"] for one in row["attempts"]) for row, _ in graded]
    exclusive = [found[-1].exclusive_s for _, found in graded if len(found) > 1]
    for name, values in (("check", checks), ("to the ranked verdict", totals), ("exclusive", exclusive)):
        if values:
            middle, late = statistics.median(values), _part(values, 0.95)
            yield f"seconds, {name}: median {middle:.1f}, 95 % {late:.1f}, most {max(values):.1f}"
    yield from _against_plain(graded)


def _against_plain(graded: list[tuple[dict[str, Any], list[GradeResult]]]) -> Iterable[str]:
    apart = {}
    for row, found in graded:
        plain = {one["case"]: one for one in row.get("plain", ()) if "case" in one}
        for one in found[-1].measurements:
            if one.case in plain and plain[one.case]["theirs_us"] >= LEAST_US:
                apart[f"{row['file']} {one.case} ({one.clock})"] = one.ratio / plain[one.case]["ratio"] - 1
    if not apart:
        return
    for near in NEAR:
        far = [f"{name} {by:+.1%}" for name, by in apart.items() if abs(by) > near]
        yield f"beyond {near:.0%} of the plain ratio: {len(far)} of {len(apart)} {'; '.join(far)}"


def _part(values: list[float], part: float) -> float:
    return sorted(values)[min(len(values) - 1, int(part * len(values)))]


if __name__ == "__main__":
    main()
