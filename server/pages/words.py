"""What states, verdicts and phases are called on a page, with the sign and the tone that go with the word."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from autograder.contract import FindingKind, Lane, Language, Mode, Phase, Review, State, Throttle, Verdict
from server.models import ChangeReason, Line, Role
from server.quizzes.service import Standing


@dataclass(frozen=True)
class Label:
    """A word with its sign and its tone: `good`, `bad`, `care`, `busy` or plain."""

    word: str
    icon: str
    tone: str = ""


VERDICTS: Mapping[Verdict, Label] = {
    Verdict.passed: Label("Passed", "check", "good"),
    Verdict.wrong_answer: Label("Wrong answer", "cross", "bad"),
    Verdict.compile_error: Label("Compile error", "cross", "bad"),
    Verdict.runtime_error: Label("Runtime error", "cross", "bad"),
    Verdict.illegal_access: Label("Illegal access", "cross", "bad"),
    Verdict.time_limit: Label("Time limit", "cross", "bad"),
    Verdict.out_of_memory: Label("Out of memory", "cross", "bad"),
    Verdict.output_limit: Label("Output limit", "cross", "bad"),
    Verdict.nondeterministic: Label("Nondeterministic", "cross", "bad"),
    Verdict.rule_violation: Label("Rule violation", "cross", "bad"),
    Verdict.grader_error: Label("Our grader failed", "alert", "care"),
}
NOT_RUN = Label("Not run", "dash")
STATES: Mapping[State, Label] = {
    State.received: Label("Received", "clock"),
    State.queued: Label("Queued", "clock"),
    State.running: Label("Running", "play", "busy"),
    State.done: Label("Done", "check"),
    State.superseded: Label("Superseded", "clock"),
    State.cancelled: Label("Cancelled", "dash"),
    State.failed: Label("Failed on our side", "alert", "care"),
}
REVIEWS: Mapping[Review, Label] = {
    Review.held: Label("Held for review", "eye", "care"),
    Review.cleared: Label("Cleared by staff", "check"),
    Review.rejected: Label("Rejected by staff", "alert", "care"),
}
CONDITIONS: Mapping[str, Label] = {
    "works": Label("Works", "check"),
    "silent": Label("Silent", "alert", "care"),
    "rests": Label("Rests", "clock", "care"),
    "drains": Label("Drains", "clock"),
    "quarantine": Label("Quarantine", "eye"),
    "disabled": Label("Disabled", "dash"),
}
"""Of a node, `server.operations.overview.NodeNow.condition`."""
QUIZ: Mapping[Standing, Label] = {
    Standing.open: Label("Open", "dash"),
    Standing.right: Label("Right", "check", "good"),
    Standing.used_up: Label("No tries left", "cross", "bad"),
    Standing.closed: Label("Closed", "clock"),
}
"""Of a question, for one person."""
MARKS: Mapping[bool, Label] = {True: Label("Right", "check", "good"), False: Label("Wrong", "cross", "bad")}
PHASES: Mapping[Phase, str] = {
    Phase.preparing: "Preparing",
    Phase.compiling: "Compiling",
    Phase.checking: "Checking",
    Phase.measuring: "Measuring",
    Phase.profiling: "Profiling",
    Phase.reporting: "Reporting",
}
LANES: Mapping[Lane, str] = {Lane.cpu: "CPU", Lane.h100: "H100", Lane.h200: "H200", Lane.b200: "B200"}
LANGUAGES: Mapping[Language, str] = {Language.triton: "Triton", Language.cuda: "CUDA C++"}
MODES: Mapping[Mode, str] = {Mode.run: "Run", Mode.submission: "Submission"}
LINES: Mapping[Line, str] = {
    Line.submission: "Submissions",
    Line.measuring: "Passed, to be measured",
    Line.run: "Practice runs",
    Line.regrade: "Regrades",
    Line.superseded: "Superseded",
    Line.confirm: "To be confirmed",
}
ROLES: Mapping[Role, str] = {Role.student: "student", Role.ta: "TA", Role.instructor: "instructor"}
FINDINGS: Mapping[FindingKind, str] = {
    FindingKind.no_kernel: "No kernel of the student's ran",
    FindingKind.decoration: "The kernels are decoration",
    FindingKind.library_call: "A library call does the work",
    FindingKind.no_replay: "What did the work could not be tried",
    FindingKind.timed_otherwise: "Other work was timed than was seen",
    FindingKind.clock_disagreement: "The two clocks disagree",
    FindingKind.below_floor: "Faster than the device can be",
    FindingKind.slowed_reference: "The reference was slower beside the submission",
}
THROTTLES: Mapping[Throttle, str] = {
    Throttle.idle: "idle",
    Throttle.set_clocks: "clocks set by its owner",
    Throttle.power_cap: "power limit",
    Throttle.slowdown: "hardware slowdown",
    Throttle.sync_boost: "sync boost",
    Throttle.software_thermal: "temperature (driver)",
    Throttle.hardware_thermal: "temperature (hardware)",
    Throttle.power_brake: "power brake",
    Throttle.display: "display clocks",
}
"""What kept a GPU's clocks down."""
CLOCKS: Mapping[str, str] = {
    "event": "The event clock ranks",
    "sealed": "The sealed clock ranks",
    "bound": "The event clock was not believed: the bound ranks",
    "batches": "Not even the reference could be bounded here: batch against batch ranks",
}
"""Which clock a measurement is by."""
CHANGES: Mapping[ChangeReason, str] = {
    ChangeReason.graded: "graded",
    ChangeReason.pooled: "the same kernel was measured again: its samples were added",
    ChangeReason.rescored: "worked out anew by another formula or other points",
    ChangeReason.regraded: "regraded by staff",
    ChangeReason.rolled_back: "a regrade was taken back by staff",
    ChangeReason.reviewed: "decided by staff, or held until they look",
}


def verdict_label(verdict: Verdict | None) -> Label:
    """What a verdict is called; `None` is a case that was not run."""
    return NOT_RUN if verdict is None else VERDICTS[verdict]


def status_label(
    state: State, verdict: Verdict | None, phase: Phase | None = None, line: Line = Line.submission
) -> Label:
    """What stands at the head of a submission: its verdict once there is one, else where it is."""
    graded_once_more = line in {Line.measuring, Line.confirm, Line.regrade}
    if verdict is not None and (state in {State.done, State.failed} or graded_once_more):
        return VERDICTS[verdict]
    if state is State.running and phase is not None:
        return Label(PHASES[phase], "play", "busy")
    return STATES[state]


_BROWSERS = (("Edg/", "Edge"), ("OPR/", "Opera"), ("Firefox/", "Firefox"), ("Chrome/", "Chrome"), ("Safari/", "Safari"))
_SYSTEMS = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Mac OS X", "macOS"),
    ("Windows", "Windows"),
    ("Linux", "Linux"),
)


def agent_name(agent: str) -> str:
    """A browser as its owner knows it, `Firefox on Linux`; what says nothing is cut short."""
    browser = next((name for mark, name in _BROWSERS if mark in agent), None)
    system = next((name for mark, name in _SYSTEMS if mark in agent), None)
    if browser is None:
        return agent[:60] or "an unknown program"
    return f"{browser} on {system}" if system else browser
