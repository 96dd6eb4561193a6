"""Clocks that jump: a process that is started with one has a time of day that the run can set."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("clock.c")


class Clocks:
    """Makes clocks, if this machine has a C compiler.

    Attributes:
        why_not: why there are none; empty where there are.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._library = folder / "clock.so"
        self.why_not = self._build()

    def _build(self) -> str:
        compiler = shutil.which("cc")
        if compiler is None:
            return "there is no C compiler to build a clock that can be set"
        command = [compiler, "-shared", "-fPIC", "-O2", "-o", str(self._library), str(SOURCE)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return f"the clock was not built: {done.stderr.strip()[:200]}" if done.returncode else ""

    def add(self, name: str) -> Path | None:
        """A clock that shows the right time; `None` where there are none."""
        if self.why_not:
            return None
        file = self._folder / f"{name}.clock"
        file.write_bytes(bytes(8))
        return file

    def environment(self, clock: Path | None) -> dict[str, str]:
        """What a process is told that lives by this clock."""
        return {"LD_PRELOAD": str(self._library), "LADDER_CHAOS_CLOCK": str(clock)} if clock is not None else {}


def set_clock(clock: Path, ahead_s: float) -> None:
    """Let it show a time that is so far from the right one."""
    with clock.open("r+b") as file:
        file.write(struct.pack("=q", round(ahead_s)))
