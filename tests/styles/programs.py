"""The corpus: honest programs, each as a kind of author writes, by the tables beside this file."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from autograder.contract import Language
from tests.graded import HALVES

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Program:
    """One honest program.

    Attributes:
        file: its path from this folder; the folder is the rung.
        style: how its author writes.
        slower: how many times slower than the staff's kernel its author expects it on a Hopper GPU, roughly.
        cpu_lane: whether it uses nothing that only a GPU has.
    """

    file: str
    style: str
    slower: float
    cpu_lane: bool
    half: str

    @property
    def path(self) -> Path:
        """Where it lies."""
        return HERE / self.file

    @property
    def rung(self) -> str:
        """The assignment that it is handed in to."""
        return Path(self.file).parts[0]

    @property
    def language(self) -> Language:
        """What it is written in."""
        return Language("cuda") if self.file.endswith(".cu") else Language("triton")


def programs(*halves: str) -> tuple[Program, ...]:
    """All programs of some halves, of both where none is named."""
    return tuple(
        Program(**row, half=half)
        for half in halves or HALVES
        for row in tomllib.loads((HERE / f"{half}.toml").read_text(encoding="utf-8"))["program"]
    )
