"""Write the table *By the judge* of every rung's notes from the signed reports of nodes.

    python -m scripts.judged

Of each lane and language the newest report counts that graded in containers. What it does not have of a rung is said in
that rung's own words, below the table.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from autograder import signing
from autograder.contract import Language
from server.pages.labels import LANGUAGES

ROOT = Path(__file__).resolve().parents[1]
REPORTS = "docs/data/nodes-*/*.json"
A_MILLISECOND = 999.95
"""µs from which a time is shown in ms: a thousand, as it is rounded."""
TABLE = re.compile(r"(?<=\n## By the judge\n\n)(?P<before>[^|]+)(?P<table>(?:\|[^\n]*\n)+)")
Document = dict[str, Any]


def main() -> None:
    """Bring the notes up to date, and say which were not."""
    reports = newest(ROOT)
    for notes in sorted(ROOT.glob("reference/*/notes.md")):
        text = notes.read_text(encoding="utf-8")
        if (found := brought_up(text, notes.parent.name, reports)) != text:
            notes.write_text(found, encoding="utf-8")
            print(notes.relative_to(ROOT))


def newest(root: Path) -> list[Document]:
    """Of each lane and language the newest report of a GPU in containers, oldest first.

    Raises:
        SignatureError: a report was changed since it was signed.
    """
    found: dict[tuple[str, str], Document] = {}
    for path in root.glob(REPORTS):
        report = json.loads(path.read_text(encoding="utf-8"))
        signing.verify(report)
        if report["lane"] == "cpu" or report["sandbox"]["driver"] != "docker":
            continue
        for language in {rung["language"] for rung in report["rungs"]}:
            key = report["lane"], language
            if key not in found or found[key]["made_at"] < report["made_at"]:
                found[key] = report
    return sorted(found.values(), key=lambda report: str(report["made_at"]))


def brought_up(text: str, slug: str, reports: list[Document]) -> str:
    """A rung's notes with the table that these reports make; as they are where neither there is one nor a report.

    Raises:
        ValueError: there is no such section, or no report has the rung.
    """
    if (found := TABLE.search(text)) is None and not any(
        rung["slug"] == slug for one in reports for rung in one["rungs"]
    ):
        return text
    if found is None:
        raise ValueError(f"{slug}: the notes have no table `By the judge`")
    return text[: found.start("table")] + table(slug, reports) + text[found.end("table") :]


def table(slug: str, reports: list[Document]) -> str:
    """One row for each report that measured the rung, one column for each ranked case."""
    measured = [
        (report, rung) for report in reports for rung in report["rungs"] if rung["slug"] == slug and rung["cases"]
    ]
    if not measured:
        raise ValueError(f"{slug}: no report has measured it")
    names = [case["case"] for case in measured[0][1]["cases"]]
    lines = list[list[str]]()
    for report, rung in measured:
        cases = {case["case"]: case for case in rung["cases"]}
        row = f"{LANGUAGES[Language(rung['language'])]}, {report['lane'].upper()}, {report['made_at'][:10]}"
        lines.append([row, *(_cell(cases[name]) for name in names)])
    head = ["| |" + "".join(f" `{name}` |" for name in names), "|" + "---|" * (len(names) + 1)]
    return "\n".join([*head, *("| " + " | ".join(line) + " |" for line in lines)]) + "\n"


def _cell(case: Document) -> str:
    ratio, low, high = case["ratio"]
    by = "" if case["clock"] == "event" else ", by both sides' batches"
    return f"{_time(case['time_us'][0])} [{ratio:.4f}, {low:.4f} – {high:.4f}]{by}"


def _time(microseconds: float) -> str:
    return f"{microseconds:.1f} µs" if microseconds < A_MILLISECOND else f"{microseconds / 1000:.3f} ms"


if __name__ == "__main__":
    main()
