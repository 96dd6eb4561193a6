"""The table: attack, class, what it tries, and what it got on each path."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from tests.redteam.outcome import Outcome

FINE = {Outcome.as_expected, Outcome.cleared, Outcome.skipped}


@dataclass(frozen=True)
class Path:
    """One way to be graded: a lane and a sandbox; `skipped` says why this machine does not have it."""

    lane: str
    sandbox: str
    skipped: str = ""

    @property
    def name(self) -> str:
        """As a column is headed."""
        return f"{self.lane} {self.sandbox}"


@dataclass(frozen=True)
class Row:
    """What one file got on one path."""

    attack: str
    threat: str
    tries: str
    lane: str
    sandbox: str
    verdict: str
    held: bool
    expected: tuple[str, ...]
    outcome: Outcome
    detail: str = ""
    ratios: tuple[float, ...] = ()
    seconds: float = 0.0

    @property
    def said(self) -> str:
        """The cell of the table."""
        if self.outcome is Outcome.skipped:
            return "—"
        verdict = f"{self.verdict}, held" if self.held else self.verdict
        return verdict if self.outcome in FINE else f"**{self.outcome}**: {verdict}"


@dataclass
class Table:
    """Rows by path, and what they add up to."""

    paths: list[Path]
    rows: list[Row] = field(default_factory=list)
    machine: dict[str, str] = field(default_factory=dict)
    command: str = ""
    seconds: float = 0.0
    date: str = ""
    """Of the run; today if it is not known, as for one that has just ended."""

    def counts(self) -> dict[str, int]:
        """How many rows ended how; `rows` leaves out what was skipped."""
        found = Counter(row.outcome for row in self.rows)
        names = {outcome: outcome.name for outcome in Outcome}
        graded = len(self.rows) - found[Outcome.skipped]
        return {"rows": graded, **{names[outcome]: found[outcome] for outcome in Outcome}}

    @property
    def ok(self) -> bool:
        """Whether every row is as it must be, and there is one."""
        return any(row.outcome is not Outcome.skipped for row in self.rows) and all(
            row.outcome in FINE for row in self.rows
        )

    def as_json(self) -> dict[str, Any]:
        """For documents and for a node's report."""
        return {
            "date": self.date or dt.datetime.now(dt.UTC).date().isoformat(),
            "machine": self.machine,
            "command": self.command,
            "seconds": round(self.seconds, 1),
            "paths": [asdict(path) for path in self.paths],
            "rows": [{**asdict(row), "class": row.threat, "expected": list(row.expected)} for row in self.rows],
            "counts": self.counts(),
            "ok": self.ok,
        }

    def as_text(self) -> str:
        """Markdown, one line per attack and one column per path; then what differs, and the counts."""
        paths = [path for path in self.paths if not path.skipped]
        names = list(dict.fromkeys(row.attack for row in self.rows))
        cells = {(row.attack, row.lane, row.sandbox): row for row in self.rows}
        lines = [
            "| attack | class | tries | expected | " + " | ".join(path.name for path in paths) + " |",
            "|---|---|---|---|" + "---|" * len(paths),
        ]
        for name in names:
            found = [cells.get((name, path.lane, path.sandbox)) for path in paths]
            first = next(row for row in found if row is not None)
            expected = " or ".join(next((row.expected for row in found if row and row.expected), ()))
            said = " | ".join(row.said if row else "—" for row in found)
            lines.append(f"| `{name}` | {first.threat} | {_cell(first.tries)} | {expected} | {said} |")
        return "\n".join([*lines, "", *self._differences(), self._summary()])

    def _differences(self) -> list[str]:
        return [
            f"- {row.attack} ({row.lane} {row.sandbox}): {row.outcome}: {_cell(row.detail)}"
            for row in self.rows
            if row.outcome not in FINE
        ] + [f"- {path.name}: not run: {path.skipped}" for path in self.paths if path.skipped]

    def _summary(self) -> str:
        counts = ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in self.counts().items())
        return f"\n{counts}; {self.seconds:.0f} s"


def from_json(data: dict[str, Any]) -> Table:
    """A table that was written before, to be put beside another."""
    rows = [Row(**{key: _value(key, value) for key, value in row.items() if key != "class"}) for row in data["rows"]]
    paths = [Path(**path) for path in data["paths"]]
    return Table(paths, rows, data["machine"], data["command"], data["seconds"], data["date"])


def _value(key: str, value: Any) -> Any:
    if key == "outcome":
        return Outcome(value)
    return tuple(value) if isinstance(value, list) else value


def _cell(text: str) -> str:
    return " ".join(json.dumps(text, ensure_ascii=False)[1:-1].replace("|", "/").replace("\\n", " ").split())[:220]
