"""What is printed while something is graded: each phase and each case once, as it comes.

Two sources, one look: the judge's own events on this machine, and the submission as the server tells it at each change.
"""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from client.api import Json
from client.show import clean, word


class Live:
    """Prints progress on one console; remembers what it has printed."""

    def __init__(self, out: Console) -> None:
        self._out = out
        self._phases = 0
        self._cases = 0
        self._position: int | None = None
        self._trouble = ""

    def submission(self, submission: Json) -> None:
        """The server's submission, again: print what is new about it."""
        if submission["trouble"] and submission["trouble"] != self._trouble:
            # Another attempt begins: its phases and cases are new ones.
            self._trouble, self._phases, self._cases = submission["trouble"], 0, 0
            self._out.print(Text(clean(self._trouble), style="magenta"))
        if submission["position"] is not None and submission["position"] != self._position:
            self._position = submission["position"]
            self._out.print(Text(f"queued, {self._position} before it", style="dim"))
        for phase in submission["phases"][self._phases :]:
            self.phase(phase["phase"])
        self._phases = len(submission["phases"])
        for case in submission["cases"][self._cases :]:
            self.case(case)
        self._cases = max(self._cases, len(submission["cases"]))

    def event(self, event: Json) -> None:
        """One line of the judge's."""
        if event.get("phase"):
            self.phase(event["phase"]["phase"])
        if event.get("case"):
            self.case(event["case"]["case"])

    def phase(self, name: str) -> None:
        """A phase began."""
        self._out.print(Text(f"{name} …", style="dim"))

    def case(self, case: Json) -> None:
        """A case has its result."""
        name = f"{clean(case['name'])}{' (hidden)' if case['visibility'] == 'hidden' else ''}"
        self._out.print(Text("  ") + word(case["verdict"]) + Text(f"  {name}"))
