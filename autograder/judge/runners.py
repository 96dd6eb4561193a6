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
        self._tracing: Conversation | None = None
        self.versions: dict[str, str] = {}

    def fresh(self, *, ghost: bool = False) -> Conversation | Failure:
        """End the present runner, start another, and load the submission into it."""
        self._end_present()
        runner, self._next = self._next or self._started(), None
        return self._loaded(self._talk(runner), ghost=ghost)

    def tracing(self) -> Conversation | Failure:
        """The same in the runner whose tracer has been started, or is now."""
        self._end_present()
        talk, self._tracing = self._tracing or self._with_tracer(), None
        return self._loaded(talk)

    def _talk(self, runner: Runner) -> Conversation:
        return Conversation(runner, self._assignment.limits, self._budget, self._defences, self._device)

    def _loaded(self, talk: Conversation, *, ghost: bool = False) -> Conversation | Failure:
        lane = self._request.lane
        self._present = talk
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

    def start_tracing(self) -> None:
        """Have a runner start its tracer, which takes seconds, while others are busy; it has seen nothing either."""
        if self._tracing is None:
            self._tracing = self._with_tracer()

    def _with_tracer(self) -> Conversation:
        talk = self._talk(self._started())
        talk.begin_preparing()
        return talk

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
        """End the present runner, and those that were started to come later."""
        self._end_present()
        if self._tracing is not None:
            self._tracing.close()
            self._tracing = None
        if self._next is not None:
            self._next.close()
            self._next = None

    def _end_present(self) -> None:
        if self._present is not None:
            self._present.close()
            self._present = None
