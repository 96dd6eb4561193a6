"""Reads `table.toml` and the files it names: what attacks the compiler, the loading and the emulator of CUDA C++."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autograder.contract import Verdict

HERE = Path(__file__).parent
SECRET = "/SECRET"
"""What stands in a file for the path of the secret."""


@dataclass(frozen=True)
class Bite:
    """Without these promises, or with these limits or values of macros, the file gets `succeeds`.

    Attributes:
        without: `private_files` or nothing.
    """

    succeeds: str
    without: tuple[str, ...] = ()
    limits: dict[str, float] = field(default_factory=dict)
    define: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Attack:
    """One row of the table."""

    name: str
    threat: str
    meets: str
    bite: Bite | None = None
    because: str = ""
    invariants: tuple[int, ...] = ()
    findings: tuple[str, ...] = ()
    limits: dict[str, float] = field(default_factory=dict)
    define: dict[str, str] = field(default_factory=dict)
    gpu: tuple[str, ...] | str = ()
    compiled: tuple[str, ...] = ()
    compile_s: float = 120.0

    @property
    def verdict(self) -> Verdict:
        """What its name says that it gets."""
        return next(verdict for verdict in Verdict if self.name.startswith(f"{verdict}_"))

    @property
    def needs(self) -> tuple[str, ...]:
        """Promises of the sandbox without which it shows nothing."""
        return self.bite.without if self.bite else ()

    @property
    def mode(self) -> str:
        """A finding is a submission's; the rest shows as much in a run."""
        return "submission" if self.threat.startswith("E") else "run"

    def expected(self, *, gpu: bool) -> tuple[str, ...] | str:
        """The verdicts on a lane; or a sentence that says why there is none."""
        return (self.gpu if gpu else ()) or (str(self.verdict),)

    def tries(self) -> str:
        """The first line of the file says it."""
        return self._text().splitlines()[0].removeprefix("//").strip().rstrip(".")

    def source(self, define: dict[str, str] | None = None) -> str:
        """Its text with the macros' values; the secret's path is not in it yet."""
        text = self._text()
        for macro, value in (self.define if define is None else define).items():
            text = text.replace(macro, value)
        return text

    def _text(self) -> str:
        return (HERE / f"{self.name}.cu").read_text(encoding="utf-8")


def attacks() -> tuple[Attack, ...]:
    """Every row, in the table's order."""
    rows = tomllib.loads((HERE / "table.toml").read_text(encoding="utf-8"))
    return tuple(_attack(name, row) for name, row in rows.items())


def files() -> set[str]:
    """The names of the submissions in this folder."""
    return {path.stem for path in HERE.glob("*.cu")}


def _attack(name: str, row: dict[str, Any]) -> Attack:
    bite = row.pop("bite", None)
    gpu = row.pop("gpu", ())
    if isinstance(gpu, str) and " " not in gpu:
        gpu = (gpu,)
    lists = {key: tuple(row.pop(key)) for key in ("invariants", "findings", "compiled") if key in row}
    return Attack(
        name,
        row.pop("class"),
        bite=Bite(**(bite | {"without": tuple(bite.get("without", ()))})) if bite else None,
        gpu=gpu if isinstance(gpu, str) else tuple(gpu),
        **lists,
        **row,
    )
