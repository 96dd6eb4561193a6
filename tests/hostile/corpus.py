"""Reads `table.toml` and the files it names."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from autograder.contract import Verdict

HERE = Path(__file__).parent
REFUSED = "refused"
HONEST = HERE / "passed_honest.py"
PATIENT_S = 20.0
"""How long a call may take in a container where its end is not what is tried."""


@dataclass(frozen=True)
class Bite:
    """How the one defence is switched off, and what shows that the attack then succeeds; see `table.toml`."""

    succeeds: str
    judge: tuple[str, ...] = ()
    sandbox: tuple[str, ...] = ()
    limits: dict[str, float] = field(default_factory=dict)
    mend: tuple[tuple[str, str], ...] = ()
    naive: bool = False
    edge: bool = False
    inherits: bool = False
    mode: str = ""
    inputs: str = ""


@dataclass(frozen=True)
class Attack:
    """One row of the table."""

    name: str
    threat: str
    meets: str
    verdicts: tuple[str, ...]
    bite: Bite
    because: str = ""
    invariants: tuple[int, ...] = ()
    needs: tuple[str, ...] = ()
    made: dict[str, Any] | None = None
    findings: tuple[str, ...] = ()
    doubt: str = ""
    mode: str = "submission"
    inputs: str = ""
    at_least_us: float = 0.0
    columns: dict[tuple[str, str], tuple[str, ...] | str] = field(default_factory=dict)

    def expected(self, lane: str, sandbox: str) -> tuple[str, ...] | str:
        """The verdicts of one column, each of them right; or why the file says nothing there.

        Args:
            lane: `cpu` or `gpu`.
            sandbox: `process` or `docker`. A column that a row does not have is that of `process`, and of `cpu`.
        """
        for key in ((lane, sandbox), (lane, "process")):
            if key in self.columns:
                return self.columns[key]
        return self.verdicts

    def limits(self, lane: str, sandbox: str) -> dict[str, float]:
        """Limits that are not those of every file.

        What fills memory or folders is to meet that limit, however busy the machine is that makes the container.
        """
        patient = sandbox == "docker" and "time_limit" not in self.expected(lane, sandbox)
        return {"call_s": PATIENT_S} if patient else {}

    @property
    def verdict(self) -> str:
        """What its name says that it gets."""
        return self.verdicts[0]

    @property
    def path(self) -> Path:
        return HERE / f"{self.name}.py"

    @property
    def at_the_edge(self) -> bool:
        """Whether it is refused before there is anything to grade."""
        return self.verdicts == (REFUSED,)

    def source(self) -> str:
        """Its text; for the judge, so whatever the bytes are, they have been decoded."""
        return self._halved(self._text())

    def _text(self) -> str:
        if self.made is None:
            return self.path.read_text(encoding="utf-8")
        text = self.made.get("before", "") + self.made["unit"] * self.made["times"] + self.made.get("after", "")
        return text + (HONEST.read_text(encoding="utf-8") if self.made.get("honest") else "")

    def _halved(self, text: str) -> str:
        word = (self.made or {}).get("half")
        return text.replace(word, "\udc80") if word else text

    def uploaded(self) -> bytes:
        """The bytes as somebody would upload them."""
        return self.source().encode((self.made or {}).get("encoding", "utf-8"))

    def mended(self) -> str:
        """Its text with the edits of its bite; each has to be there to be made."""
        return self._halved(edited(self.name, self._text(), self.bite.mend))


def edited(name: str, text: str, edits: Iterable[tuple[str, str]]) -> str:
    """A file's text with `edits`: find, put.

    Raises:
        LookupError: what is to be replaced is not there.
    """
    for find, put in edits:
        if find not in text:
            raise LookupError(f"{name}: {find!r} is not in the file")
        text = text.replace(find, put)
    return text


def attacks() -> tuple[Attack, ...]:
    """Every row, in the table's order."""
    rows = tomllib.loads((HERE / "table.toml").read_text(encoding="utf-8"))
    return tuple(_attack(name, row) for name, row in rows.items())


def files() -> set[str]:
    """The names of the submissions in this folder: whatever begins with a verdict."""
    return {path.stem for path in HERE.glob("*.py") if path.stem.startswith(tuple(Verdict)) and path != HONEST}


def _attack(name: str, row: dict[str, Any]) -> Attack:
    verdict = row["cpu"]["process"]
    columns = {(lane, sandbox): _column(said) for lane in ("cpu", "gpu") for sandbox, said in row.get(lane, {}).items()}
    bite = row["bite"]
    return Attack(
        name=name,
        threat=row["class"],
        meets=row["meets"],
        verdicts=(verdict,) if isinstance(verdict, str) else tuple(verdict),
        columns=columns,
        bite=replace(
            Bite(**{key: value for key, value in bite.items() if key != "mend"}),
            judge=tuple(bite.get("judge", ())),
            sandbox=tuple(bite.get("sandbox", ())),
            mend=tuple((find, put) for find, put in bite.get("mend", ())),
        ),
        **{key: tuple(row[key]) for key in ("invariants", "needs", "findings") if key in row},
        **{key: row[key] for key in ("because", "made", "mode", "inputs", "at_least_us", "doubt") if key in row},
    )


def _column(said: str | list[str]) -> tuple[str, ...] | str:
    """Verdicts, or a sentence that says why there is none."""
    if isinstance(said, str) and " " in said:
        return said
    return (said,) if isinstance(said, str) else tuple(said)
