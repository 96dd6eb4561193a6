"""What is printed while something is graded: each phase and each case once, as it comes.

Two sources, one look: the judge's own events on this machine, and the submission as the server tells it at each change.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from autograder import languages
from client.api import Json
from client.errors import clean
from client.show import case_name, standing, turn, word

COMPILED_FIRST = frozenset(record.id for record in languages.ALL if record.compiled_at_load)
UP_TO_CHECKING = ("preparing", "compiling", "checking")


class Live:
    """Prints progress on one console; remembers what it has printed."""

    def __init__(self, out: Console) -> None:
        self._out = out
        self._phases = 0
        self._cases = 0
        self._position: int | None = None
        self._said: list[str] = []
        self._trouble = ""
        self._compiles = False

    def submission(self, submission: Json) -> None:
        """The server's submission, again: print what is new about it."""
        if submission["trouble"] and submission["trouble"] != self._trouble:
            # Another attempt begins: its phases and cases are new ones.
            self._trouble, self._phases, self._cases = submission["trouble"], 0, 0
            self._out.print(Text(clean(self._trouble), style="magenta"))
        for line in (standing(submission), self._turn(submission)):
            if line and line not in self._said:
                self._said.append(line)
                self._out.print(Text(line, style="dim"))
        self._compiles = submission["language"] in COMPILED_FIRST
        self._news(submission["phases"], submission["cases"])

    def _turn(self, submission: Json) -> str:
        """Its place, if that is another than the last that was printed."""
        if submission["position"] is None or submission["position"] == self._position:
            return ""
        self._position = submission["position"]
        return turn(submission)

    def _news(self, phases: Sequence[Json], cases: Sequence[Json]) -> None:
        """Print what is new in the order in which it came: the cases belong to the phase that checks."""
        new = [phase["phase"] for phase in phases[self._phases :]]
        for name in new:
            if name in UP_TO_CHECKING:
                self.phase(name)
        for case in cases[self._cases :]:
            if case["verdict"] is not None:  # The table at the end says once what was not run.
                self.case(case)
        for name in new:
            if name not in UP_TO_CHECKING:
                self.phase(name)
        self._phases = max(self._phases, len(phases))
        self._cases = max(self._cases, len(cases))

    def event(self, event: Json) -> None:
        """One line of the judge's."""
        if event.get("phase"):
            self.phase(event["phase"]["phase"])
        if event.get("case"):
            self.case(event["case"]["case"])

    def phase(self, name: str) -> None:
        """A phase began."""
        first = " the first compilation on a node can take half a minute" if self._compiles else ""
        self._out.print(Text(f"{name} …{first if name == 'compiling' else ''}", style="dim"))

    def case(self, case: Json) -> None:
        """A case has its result."""
        self._out.print(Text("  ") + word(case["verdict"]) + Text(f"  {case_name(case)}"))
