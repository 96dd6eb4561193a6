"""What states, verdicts and phases are called on a page, with the sign and the tone that go with the word."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from autograder import languages
from autograder.compile_checks.targets import TARGETS
from autograder.compile_checks.targets import instructions_of as instructions_of  # noqa: PLC0414 -- for templates.
from autograder.contract import FindingKind, Language, Mode, Phase, Review, State, Throttle, Verdict
from autograder.lanes import TITLES, of_target
from autograder.sanitizer import Check
from server.models import ChangeReason, Line, Role
from server.quizzes import Standing

NEVER_RUN = tuple(name for name in TARGETS if not of_target(name))
"""Targets that no lane has: compiled for and read, and nothing more."""


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
LANES = TITLES
LANGUAGES: Mapping[Language, str] = {language: languages.of(language).title for language in Language}
ON_CPU: Mapping[Language, str] = {language: languages.of(language).cpu_lane for language in Language}
"""What the CPU lane does with a language's kernels, as a sentence."""
EDITOR_MODES: Mapping[Language, str] = {language: languages.of(language).editor_mode for language in Language}
ENDINGS = tuple(dict.fromkeys(ending for record in languages.ALL for ending in record.endings))
"""Of files that may be handed in."""
TOOLCHAINS = languages.distributions()
COMPILED = tuple(record.title for record in languages.ALL if record.compiler)
"""Languages whose machine code can be shown."""
COMPILED_FIRST = frozenset(language for language in Language if languages.of(language).compiled_at_load)
"""Languages whose files are compiled as a whole before any case runs."""
MODES: Mapping[Mode, str] = {
    Mode.run: "Run",
    Mode.submission: "Submission",
    Mode.profile: "Profile",
    Mode.sanitize: "Sanitizer run",
}
CHECKS: Mapping[Check, str] = {
    Check.memcheck: "accesses outside of what was allocated, or misaligned",
    Check.racecheck: "two threads at one place of shared memory, without a barrier between",
    Check.synccheck: "barriers that not all threads reach",
}
"""What the sanitizer looks for."""
LINES: Mapping[Line, str] = {
    Line.submission: "Submissions",
    Line.measuring: "Passed, to be measured",
    Line.run: "Practice runs",
    Line.profile: "Profiles, sanitizer runs",
    Line.regrade: "Regrades",
    Line.superseded: "Superseded",
    Line.confirm: "To be confirmed",
}
ROLES: Mapping[Role, str] = {Role.student: "student", Role.ta: "TA", Role.instructor: "instructor"}
FINDINGS: Mapping[FindingKind, str] = {
    FindingKind.no_kernel: "None of the student's kernels ran",
    FindingKind.decoration: "The student's kernels do none of the work",
    FindingKind.library_call: "A library call does the work",
    FindingKind.other_kernels: "Other kernels took the device's time",
    FindingKind.no_replay: "What did the work could not be tested",
    FindingKind.timed_otherwise: "The timed calls did other work than the inspected one",
    FindingKind.clock_disagreement: "The two clocks disagree",
    FindingKind.below_floor: "Faster than the device's limit",
    FindingKind.slowed_reference: "The reference was slower beside the submission",
    FindingKind.faulty_formula: "A misconception's formula has a fault; the verdict stands",
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
    "event": "Ranked by the event clock",
    "sealed": "Ranked by the judge's clock",
    "bound": "Ranked by the judge's clock: calls in a row",
    "batches": "Ranked by the judge's clock: calls in a row, yours and the reference's",
}
"""Which clock a measurement is by."""
CHANGES: Mapping[ChangeReason, str] = {
    ChangeReason.graded: "graded",
    ChangeReason.pooled: "the same kernel was measured again: its samples were added",
    ChangeReason.rescored: "computed again with another formula or other points",
    ChangeReason.regraded: "regraded by staff",
    ChangeReason.rolled_back: "a regrade was rolled back by staff",
    ChangeReason.reviewed: "decided by staff, or held for review",
}


def verdict_label(verdict: Verdict | None) -> Label:
    """What a verdict is called; `None` is a case that was not run."""
    return NOT_RUN if verdict is None else VERDICTS[verdict]


def status_label(
    state: State,
    verdict: Verdict | None,
    phase: Phase | None = None,
    line: Line = Line.submission,
    mode: Mode = Mode.submission,
) -> Label:
    """What stands at the head of a submission: its verdict once there is one, else where it is."""
    if mode.inspects and verdict is Verdict.passed:
        return Label("Done", "check")
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
