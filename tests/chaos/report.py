"""A run as JSON, for `ladder admin record-rehearsal`, and as the tables of docs/reliability.md."""

from __future__ import annotations

import dataclasses
import os
import platform
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.chaos.run import Outcome
from tests.chaos.supervisor import REPOSITORY


def machine() -> str:
    """What the figures were read on."""
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    cores = len(os.sched_getaffinity(0))
    return f"{platform.machine()}, {cores} cores, {memory_gib:.0f} GiB, {platform.system()} {platform.release()}"


def _commit() -> str:
    """What was run; empty outside of a checkout."""
    command = ["git", "-C", str(REPOSITORY), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def as_json(outcome: Outcome, command: str, calm: Outcome | None) -> dict[str, Any]:
    """The whole report."""
    measures = dataclasses.asdict(outcome.measures)
    return {
        "kind": "chaos",
        "passed": not outcome.broken and outcome.drained,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "commit": _commit(),
        "load_15_min": round(os.getloadavg()[2], 1),
        "command": command,
        "seed": outcome.seed,
        "seconds": round(outcome.seconds, 1),
        "scale": dataclasses.asdict(outcome.scale),
        "drained": outcome.drained,
        "requeued": outcome.requeued,
        "broken": [dataclasses.asdict(item) for item in outcome.broken],
        "measures": measures,
        "compared_with_fault_free": len(calm.grades.keys() & outcome.grades.keys()) if calm else 0,
        "faults": [dataclasses.asdict(item) for item in sorted(outcome.injected, key=lambda item: item.began_at)],
    }


def as_table(report: dict[str, Any]) -> str:
    """Markdown: what came of it, and what was broken."""
    rows = [f"| {name} | {value} |" for name, value in _lines(report)]
    faults = [f"| {' | '.join(row)} |" for row in _faults(report)]
    return "\n".join([
        "| | |", "|---|---|", *rows, "",
        "| fault | times |", "|---|---|", *faults, "",
    ])  # fmt: skip


def _lines(report: dict[str, Any]) -> Sequence[tuple[str, str]]:
    found = report["measures"]
    broken = len(report["broken"])
    verdict = "nothing lost, nothing twice, nothing charged" if report["passed"] else f"{broken} promises broken"
    return (
        ("result", f"**{verdict}**"),
        ("date, commit, machine", f"{report['at'][:10]}, {report['commit']}; {report['machine']}"),
        ("how busy it was", f"a load of {report['load_15_min']:g} over the last 15 minutes"),
        ("command, seed", f"`{report['command']}`, {report['seed']}; {report['seconds']:.0f} s with faults"),
        ("accepted", f"{found['accepted']} submissions and runs of {report['scale']['students']} students"),
        ("sent again", f"{found['resent']} requests, {found['lost_answers']} of them after no answer at all"),
        ("never answered", f"{found['in_doubt']}, of which {found['in_doubt_stored']} are stored, once"),
        ("in the end", _counts(found["submissions"])),
        ("superseded, taken back", f"{found['superseded']}, {found['taken_back']}"),
        ("attempts", _counts(found["attempts"])),
        ("put back by staff after the faults", str(report["requeued"])),
        ("grades compared with a run without faults", f"{report['compared_with_fault_free']}, all equal"
         if report["passed"] else str(report["compared_with_fault_free"])),
        ("processes started again", _counts(found["deaths"])),
        ("upload to the end of grading", _spread(found["wait"])),
        ("dispatch to loss of an attempt", _spread(found["lost_after"])),
        ("end of a fault to the next result", _spread(found["back_after"])),
        ("end of all faults to the last result", f"{found['drained_s']:g} s"),
    )  # fmt: skip


def _faults(report: dict[str, Any]) -> list[tuple[str, str]]:
    times: dict[str, int] = {}
    for fault in report["faults"]:
        times[fault["kind"]] = times.get(fault["kind"], 0) + (not fault["skipped"])
    return [(kind, str(count)) for kind, count in sorted(times.items())]


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items()) or "none"


def _spread(spread: dict[str, float]) -> str:
    return f"p50 {spread['p50_s']:g} s, p95 {spread['p95_s']:g} s, at most {spread['max_s']:g} s"


BEGIN, END = "<!-- chaos:begin -->", "<!-- chaos:end -->"


def write_into(page: Path, table: str) -> None:
    """Replace the table in a page, between its marks."""
    text = page.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n\n{table}\n{END}{after}", encoding="utf-8")
