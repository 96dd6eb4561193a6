"""Reads `table.toml` and the files it names: what only a GPU can be attacked with."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autograder.contract import Verdict
from tests.hostile.corpus import edited

HERE = Path(__file__).parent
EVASION = "evasion"
"""The folder beside this one of what is right, and not the exercise."""
NOT_VERDICTS = {"held": ("passed",), "honest": ("passed",)}
"""First words of names that stand for more than a verdict."""


@dataclass(frozen=True)
class Bite:
    """What shows that the attack works where its one defence is not; see `table.toml`."""

    succeeds: str = ""
    judge: tuple[str, ...] = ()
    ranked: int = 0
    naive: bool = False
    claim: float = 0.0
    mend: tuple[tuple[str, str], ...] = ()
    none: str = ""


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
    work: str = "check"
    ranked: int = 65536
    held: str = "no"
    least_ratio: float = 0.0
    findings: tuple[str, ...] = ()
    limits: dict[str, float] = field(default_factory=dict)
    alone: bool = False
    neighbour: bool = False
    quick: bool = False
    folder: str = "hostile"
    docker: tuple[str, ...] | str = ()

    @property
    def honest(self) -> bool:
        """Whether it is no attack, and must be left in peace."""
        return self.name.startswith("honest_")

    def expected(self, sandbox: str) -> tuple[str, ...] | str:
        """The verdicts in a sandbox; or a sentence that says why there is none."""
        return (self.docker or self.verdicts) if sandbox == "docker" else self.verdicts

    def source(self) -> str:
        """Its text."""
        return (HERE.parent / self.folder / f"{self.name}.py").read_text(encoding="utf-8")

    def mended(self) -> str:
        """Its text with the edits of its bite, if there are any; each has to be there to be made."""
        return edited(self.name, self.source(), self.bite.mend)


def attacks() -> tuple[Attack, ...]:
    """Every row, in the table's order."""
    rows = tomllib.loads((HERE / "table.toml").read_text(encoding="utf-8"))
    return tuple(_attack(name, row) for name, row in rows.items())


def files() -> set[str]:
    """The names of the submissions in both folders: whatever begins with a verdict, or with what stands for one."""
    found = (path.stem for folder in (HERE, HERE.parent / EVASION) for path in folder.glob("*.py"))
    return {name for name in found if name.startswith((*Verdict, *NOT_VERDICTS))}


def first_verdict(name: str) -> str:
    """What a file's name says that it gets."""
    for word, verdicts in NOT_VERDICTS.items():
        if name.startswith(word):
            return verdicts[0]
    return next(str(verdict) for verdict in Verdict if name.startswith(verdict))


def _attack(name: str, row: dict[str, Any]) -> Attack:
    said = row.pop("verdict", first_verdict(name))
    bite = row.pop("bite", {})
    mend = tuple((find, put) for find, put in bite.pop("mend", ()))
    docker = row.pop("docker", ())
    lists = {key: tuple(row.pop(key)) for key in ("invariants", "findings") if key in row}
    return Attack(
        name=name,
        threat=row.pop("class"),
        verdicts=(said,) if isinstance(said, str) else tuple(said),
        bite=Bite(
            mend=mend, **{key: tuple(value) if isinstance(value, list) else value for key, value in bite.items()}
        ),
        docker=docker if isinstance(docker, str) else tuple(docker),
        **lists,
        **row,
    )
