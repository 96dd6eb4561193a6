"""A submission's runners, each with the source loaded anew; one at a time."""

from __future__ import annotations

from autograder.assignment import Assignment
from autograder.contract import GradeRequest
from autograder.judge.conversation import Budget, Conversation
from autograder.judge.defences import Defences
from autograder.judge.devices import Device
from autograder.judge.failure import Failure
from autograder.judge.references import limits_of, load_of
from autograder.sandbox import Runner, Sandbox


class Runners:
    """Starts the runners of one submission; they share its budget of running time.

    Attributes:
        versions: of the toolchain, as the first runner named them.
    """

    def __init__(
        self, request: GradeRequest, assignment: Assignment, sandbox: Sandbox, defences: Defences, device: Device
    ) -> None:
        self._request = request
        self._assignment = assignment
        self._sandbox = sandbox
        self._defences = defences
        self._device = device
        self._budget = Budget(assignment.limits.total_s)
        self._present: Conversation | None = None
        self._next: Runner | None = None
        self.versions: dict[str, str] = {}

    def fresh(self, *, ghost: bool = False) -> Conversation | Failure:
        """End the present runner, start another, and load the submission into it."""
        self._end_present()
        lane = self._request.lane
        runner, self._next = self._next or self._started(), None
        self._present = Conversation(runner, self._assignment.limits, self._budget, self._defences, self._device)
        self._present.hello()
        self.versions = self.versions or self._present.versions
        request = self._request
        failed = self._present.load(
            load_of(self._assignment, request.language, request.source, request.filename, lane=lane, ghost=ghost)
        )
        return failed or self._present

    def start_next(self) -> None:
        """Have the next runner start while the present one is busy; it has seen nothing of the submission before."""
        if self._next is None:
            self._next = self._started()

    def _started(self) -> Runner:
        lane = self._request.lane
        return self._sandbox.start(limits_of(self._assignment, lane), self._request.language, lane)

    def another(self) -> Conversation | Failure:
        """A fresh runner, or in a test without that defence the present one."""
        if self._defences.fresh_runner or self._present is None:
            return self.fresh()
        return self._present

    def present(self) -> Conversation | Failure:
        """The runner that is there, or a fresh one."""
        return self._present or self.fresh()

    def log(self) -> str:
        """What the present runner has printed."""
        return self._present.log() if self._present else ""

    def close(self) -> None:
        """End the present runner, and one that was started to come next."""
        self._end_present()
        if self._next is not None:
            self._next.close()
            self._next = None

    def _end_present(self) -> None:
        if self._present is not None:
            self._present.close()
            self._present = None
