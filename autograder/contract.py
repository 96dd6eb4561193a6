"""The vocabulary: whatever crosses a process is one of these, under a heading by direction.

    words that everybody uses     enums
    server  → worker → judge      GradeTask, GradeRequest
    judge   → worker → server     Event (PhaseStarted | CaseFinished), GradeResult and its parts
    worker  → server              Envelope

Every class is frozen, every enum closed; `autograder.codec` turns them into JSON and back with caps. Times of day are
seconds since the epoch in UTC (`*_at`); durations carry their unit (`_s`, `_ms`, `_us`).
"""

from __future__ import annotations

import builtins
import dataclasses
from dataclasses import dataclass, field
from enum import StrEnum

from autograder import languages
from autograder.profiles import Profile
from autograder.sanitizer import Sanitized

CONTRACT_VERSION = 5
"""Raised whenever a message changes shape; both sides refuse another version than their own."""

MAX_SOURCE_BYTES = 2**20
"""The largest source that is accepted, in bytes of UTF-8."""

MAX_LOG_CHARS = 16_384
"""How much of a runner's output is kept."""


# --- words that everybody uses ---------------------------------------------------------------------------------------


class State(StrEnum):
    """Where a submission is."""

    received = "received"
    queued = "queued"
    running = "running"
    done = "done"
    superseded = "superseded"
    """A newer one took its place; still graded later, at the lowest priority."""
    cancelled = "cancelled"
    failed = "failed"
    """Ours: three attempts did not end in a result."""


class Phase(StrEnum):
    """What an attempt is doing."""

    preparing = "preparing"
    compiling = "compiling"
    checking = "checking"
    measuring = "measuring"
    profiling = "profiling"
    reporting = "reporting"


class Verdict(StrEnum):
    """What was found. `grader_error` is ours: it costs the student nothing."""

    passed = "passed"
    wrong_answer = "wrong_answer"
    compile_error = "compile_error"
    runtime_error = "runtime_error"
    illegal_access = "illegal_access"
    time_limit = "time_limit"
    out_of_memory = "out_of_memory"
    output_limit = "output_limit"
    nondeterministic = "nondeterministic"
    rule_violation = "rule_violation"
    grader_error = "grader_error"


class Review(StrEnum):
    """What staff decide about a submission."""

    none = "none"
    held = "held"
    cleared = "cleared"
    rejected = "rejected"


class Mode(StrEnum):
    """How much is graded: a `run` meets the public cases and counts for nothing.

    `profile` and `sanitize` look at one public case with a tool, and grade nothing.
    """

    run = "run"
    submission = "submission"
    profile = "profile"
    sanitize = "sanitize"

    @property
    def noun(self) -> str:
        """What was handed in, in the middle of a sentence."""
        return {Mode.run: "practice run", Mode.sanitize: "sanitizer run"}.get(self, self.value)

    @property
    def inspects(self) -> bool:
        """Whether one call is looked at with a tool."""
        return self in {Mode.profile, Mode.sanitize}


class Work(StrEnum):
    """What of a grading one attempt does. On lanes that measure apart a submission is checked first, then measured."""

    all = "all"
    check = "check"
    measure = "measure"
    """Ranked cases only, every timed call checked as always; for what a `check` attempt found to pass."""
    profile = "profile"
    """One public case under a device's counters; nothing of it counts."""
    sanitize = "sanitize"
    """One public case under a tool that checks every access to memory; nothing of it counts."""


class Language(StrEnum):
    """What a submission is written in: its members are what `autograder.languages` has a folder for, in order."""

    _ignore_ = "_record"
    for _record in languages.ALL:
        vars()[_record.id] = _record.id


FIRST_LANGUAGE = next(iter(Language))
"""What is meant where nobody says a language."""


class Lane(StrEnum):
    """A device class. Results of two lanes are never mixed."""

    cpu = "cpu"
    h100 = "h100"
    h200 = "h200"
    b200 = "b200"


class Visibility(StrEnum):
    """Whether a student sees a case's sizes, values and messages, or only its category and whether it passed."""

    public = "public"
    hidden = "hidden"


class Pattern(StrEnum):
    """Where in an output the wrong elements are; what a student reads is `Mismatch.where`."""

    everywhere = "everywhere"
    untouched = "untouched"
    """Nothing was written: the poison is still there."""
    all_nan = "all_nan"
    tail = "tail"
    """Everything from one flat index to the end."""
    rows_from = "rows_from"
    columns_from = "columns_from"
    every_kth_row = "every_kth_row"
    every_kth_column = "every_kth_column"
    rows = "rows"
    columns = "columns"
    tile = "tile"
    scattered = "scattered"


class FindingKind(StrEnum):
    """What staff are shown about how an output came to be. A list to look at, never a verdict."""

    no_kernel = "no_kernel"
    """No kernel of the student's was launched."""
    decoration = "decoration"
    """More than a tenth of the output is right when the student's kernels do nothing: something else computed it."""
    library_call = "library_call"
    """Library operations ran that do the exercise's work."""
    other_kernels = "other_kernels"
    """More than a quarter of the device's time went to other work than the student's kernels."""
    no_replay = "no_replay"
    """Whether the student's kernels do the work could not be tried: what was made to see it ended early."""
    timed_otherwise = "timed_otherwise"
    """The timed calls took less time than the device worked in a call that was looked at: other work was timed."""
    clock_disagreement = "clock_disagreement"
    """The event clock claims more speed than the sealed clock allows."""
    below_floor = "below_floor"
    """A time below what the device can do by its data sheet."""
    slowed_reference = "slowed_reference"
    """The reference was slower beside the submission than after it, in more than one attempt."""
    faulty_formula = "faulty_formula"
    """A formula of the assignment's misconceptions could not be worked out, and was left out: its author's fault."""


class Throttle(StrEnum):
    """Why a GPU's clocks are kept below what was asked for, as NVML names it."""

    idle = "idle"
    set_clocks = "set_clocks"
    """Its owner set them."""
    power_cap = "power_cap"
    """Its ordinary limit of power; what big kernels meet."""
    slowdown = "slowdown"
    """Hardware: too hot, or too little power; the clocks are halved at least."""
    sync_boost = "sync_boost"
    software_thermal = "software_thermal"
    hardware_thermal = "hardware_thermal"
    power_brake = "power_brake"
    """Its power supply asks for it."""
    display = "display"


# --- server → worker → judge -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GradeRequest:
    """One source to grade. It names no person: a node learns nothing about who submitted.

    Attributes:
        slug: the assignment.
        bundle: content hash of the assignment's bundle, `sha256:…`; `""` where the judge was given folders instead.
        language: what `source` is written in.
        lane: where it is graded.
        mode: `run` meets the public cases only.
        source: the submission's text.
        filename: the name the student's own frames are shown under.
        work: all of it, or one of its two halves.
        best_us: best verified time so far by ranked case; who is far below it is measured again.
        remeasured: how many attempts at this submission asked to be measured again.
        case: the public case to profile or to sanitize; `""` leaves the choice to the judge.
    """

    slug: str
    bundle: str
    language: Language
    lane: Lane
    mode: Mode
    source: str
    filename: str
    work: Work = Work.all
    best_us: dict[str, float] = field(default_factory=dict)
    remeasured: int = 0
    case: str = ""


@dataclass(frozen=True)
class GradeTask:
    """What Celery carries: one claimed attempt, to be run now.

    Attributes:
        attempt: the attempt's public id.
        fence: grows with every attempt of one submission; a result with another fence is ignored.
        trace: one id from the student's HTTP request to the last log line of its grading.
        lease_s: how long the attempt lives without a heartbeat.
        deadline_s: how long it may take in all.
    """

    attempt: str
    fence: int
    trace: str
    lease_s: float
    deadline_s: float
    request: GradeRequest
    version: int = CONTRACT_VERSION


# --- judge → worker → server -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Frame:
    """One line of the student's own file in a traceback."""

    line: int
    function: str
    code: str


@dataclass(frozen=True)
class StudentError:
    """What went wrong in the student's code: their frames, none of ours.

    Attributes:
        kind: the exception's type, a signal's name, or what the compiler calls it.
        message: its text, `""` for a hidden case.
        frames: outermost first; for a hidden case only the last.
    """

    kind: str
    message: str
    frames: tuple[Frame, ...] = ()


@dataclass(frozen=True)
class Mismatch:
    """Where an output is wrong.

    Attributes:
        output: the output's name.
        shape: of the output.
        wrong: how many elements are wrong, of `total`.
        pattern: the shape of the damage; `where` says it in words.
        index: of the first wrong element.
        expected: the oracle's value there, as text (it may be NaN), or that it has to be another.
        got: the submission's value there, as text.
        tolerance: the allowed absolute difference there, as text; `"0"` where equality is asked for, `""` where the
            problem's own check decides.
        map: the output cut into at most 32 × 32 tiles: wrong elements per thousand in each, row by row. Leading
            dimensions are joined to rows; a vector is folded, 32 tiles of consecutive elements to a row.
        tile: rows and columns of one tile of `map`.
    """

    output: str
    shape: tuple[int, ...]
    dtype: str
    wrong: int
    total: int
    pattern: Pattern
    where: str
    index: tuple[int, ...]
    expected: str
    got: str
    tolerance: str
    map: tuple[tuple[int, ...], ...] = ()
    tile: tuple[int, int] = (1, 1)


@dataclass(frozen=True)
class CaseResult:
    """What one case showed.

    Attributes:
        name: of the case; staff only where it is hidden.
        category: what a student sees of a hidden case: its family, such as *odd sizes*.
        group: the correctness group it belongs to; a group passes when all its cases do.
        verdict: `None` where the case was not run, because an earlier one ended the runner.
        message: one sentence for the student.
        seconds: from reveal to the end of the comparison; staff only where the case is hidden.
    """

    name: str
    category: str
    group: str
    visibility: Visibility
    ranked: bool
    verdict: Verdict | None
    message: str
    mismatch: Mismatch | None = None
    error: StudentError | None = None
    seconds: float | None = None

    def for_student(self) -> CaseResult:
        """What the student may see of it: everything of a public case; category and verdict of a hidden one."""
        if self.visibility is Visibility.public:
            return self
        error = _plain(self.error) if self.error else None
        return CaseResult(
            name=self.category,
            category=self.category,
            group=self.group,
            visibility=self.visibility,
            ranked=self.ranked,
            verdict=self.verdict,
            message=_HIDDEN_MESSAGES.get(self.verdict, "This case was not run."),
            error=error,
        )


def _plain(error: StudentError) -> StudentError:
    """An error without what the student's code could say through it: a class or function may be named for a size.

    What is left is one of a few dozen kinds and one of the file's own lines.
    """
    kind = "exit status" if error.kind.startswith("exit status") else error.kind
    last = tuple(Frame(frame.line, "", frame.code) for frame in error.frames[-1:])
    return StudentError(kind if kind in _PLAIN_KINDS else "an exception", "", last)


_PLAIN_KINDS = frozenset({
    *(name for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, BaseException)),
    "exit status", "SIGSEGV", "SIGBUS", "SIGABRT", "SIGFPE", "SIGILL", "SIGKILL",
    "OutOfMemoryError", "MissingEntry", "WrongSignature", *languages.error_kinds(),
})  # fmt: skip
"""Kinds of error that a student may be told of a hidden case."""

_HIDDEN_MESSAGES: dict[Verdict | None, str] = {
    Verdict.passed: "Passed.",
    Verdict.wrong_answer: "The output is wrong.",
    Verdict.runtime_error: "The kernel raised an error.",
    Verdict.illegal_access: "Memory outside the buffers was touched.",
    Verdict.time_limit: "The time limit was reached.",
    Verdict.out_of_memory: "The memory limit was reached.",
    Verdict.output_limit: "Too much was printed.",
    Verdict.nondeterministic: "Two calls on the same inputs gave different outputs.",
    Verdict.rule_violation: "A rule of the exercise was broken.",
    Verdict.compile_error: "The submission did not load.",
    Verdict.grader_error: "The grader failed; this is not your fault.",
}


@dataclass(frozen=True)
class Pair:
    """One timed call of the submission beside one of the reference, all four verified.

    The event clock ran in the runner (precise, forgeable); the sealed clock is the judge's (coarse, an upper bound).
    """

    submission_event_us: float
    submission_sealed_us: float
    reference_event_us: float
    reference_sealed_us: float


@dataclass(frozen=True)
class Batch:
    """K calls on K fresh inputs as one exchange, every output verified where it counts.

    Attributes:
        sealed_us: from the reveal of all inputs to the end of the K snapshots, by the judge's clock, less what such
            snapshots take by themselves.
        event_us: the device's time from the first call to the end of the last (a claim).
        copy_us: what was taken off for the snapshots; 0 in results from before that was done, and where others
            disturbed the node.
    """

    sealed_us: float
    event_us: float
    copy_us: float = 0.0


@dataclass(frozen=True)
class Bound:
    """What nobody can forge: sealed batches, less the shortest exchange that can be written.

    Attributes:
        calls: K, calls of one batch.
        batches: the submission's.
        reference_batches: the reference's, alone: from before the submission was loaded where the limit that follows
            from those is kept; if it is not, taken after its runner was killed. None where the submission is so slow
            that its batches have fewer calls; then nothing is taken off them either, a null of 0.
        null_us: exchanges of the native runner that does nothing, with as many buffers of the same sizes; less their
            snapshots as well. One of 0 where others disturbed the node: nothing is taken off then.
        sealed_us: an upper bound of one call: (the shortest batch - the shortest null) / K.
        excess: by which part it lies above the event clock; the reached ε.
        epsilon: the largest excess at which the event clock ranks.
        bounded: the excess was reached. If not, the sealed number ranks or the measurement is to be repeated.
        dropped: the submission's first ones that lay above the most that is ever allowed, as others may have stopped
            them; they count for nothing, and nobody looked at their outputs.
    """

    calls: int
    batches: tuple[Batch, ...]
    reference_batches: tuple[Batch, ...]
    null_us: tuple[float, ...]
    sealed_us: float
    excess: float
    epsilon: float
    bounded: bool
    dropped: tuple[Batch, ...] = ()


@dataclass(frozen=True)
class AACheck:
    """Reference against reference in the same loop, after the submission's runner was killed.

    Attributes:
        pairs: the reference's calls, two by two; `submission_…` is the first of each two.
        reference_us: median time of the reference on the clock that ranks.
        ratio: median of the pairwise ratios; 1 on a quiet node.
        drift: paired reference time / `reference_us` - 1: above 0, the reference was slowed beside the submission.
        tolerance: the drift that is allowed either way.
        agrees: it lies within.
    """

    pairs: tuple[Pair, ...]
    reference_us: float
    ratio: float
    drift: float
    tolerance: float
    agrees: bool


@dataclass(frozen=True)
class Measurement:
    """The speed of one ranked case, as a paired ratio with an interval.

    Attributes:
        clock: which clock ranks: `event`; `sealed` on a lane that has no other; `batches`, where the sealed batches of
            both sides rank, as one call after another takes longer than a single one by the event clock; or `bound`,
            where those of the submission do, which is far slower than the reference.
        ratio: median of the pairwise submission / reference; below 1 is faster than the reference.
        ratio_low, ratio_high: block-bootstrap interval of it.
        time_us: median time of the submission on that clock, with its interval.
        flops, bytes_moved: by the assignment's formulas, for the roofline.
        pairs: every sample, in the order taken.
        stages: how many of the pairs each stage of sampling took.
        bound: what the sealed clock allows; `None` where it ranks itself.
        control: the A/A block; `None` where it was not run.
        floor_us: no device of the lane can be faster by its data sheet; 0 where none is known.
        traced_us: how long the device worked in a traced call after the timed ones; 0 where none was traced (a claim).
        held: why a person has to look; `""` if nobody has.
        remeasure: why this has to be measured again, which is nobody's fault; `""` if it has not.
        note: a sentence to the student on the clock that ranks; `""` where there is nothing to say.
    """

    case: str
    clock: str
    ratio: float
    ratio_low: float
    ratio_high: float
    time_us: float
    time_low_us: float
    time_high_us: float
    reference_us: float
    flops: float
    bytes_moved: float
    pairs: tuple[Pair, ...]
    stages: tuple[int, ...] = ()
    bound: Bound | None = None
    control: AACheck | None = None
    floor_us: float = 0.0
    traced_us: float = 0.0
    held: str = ""
    remeasure: str = ""
    note: str = ""


@dataclass(frozen=True)
class Finding:
    """Something staff should look at."""

    kind: FindingKind
    summary: str
    evidence: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Launch:
    """One kernel of the student's as the runner recorded it (a claim, like everything a runner says)."""

    kernel: str
    grid: tuple[int, ...]
    calls: int


@dataclass(frozen=True)
class DeviceKernel:
    """One kernel that ran on the device in an untimed call of a public case (a claim, like everything a runner says).

    Attributes:
        calls: over the cases looked at.
        share: of the device's time in them, 0 to 1.
        own: it is one of the kernels that the student's code launched through its language.
    """

    name: str
    calls: int
    share: float
    own: bool


@dataclass(frozen=True)
class CompiledKernel:
    """One kernel of the student's as the compiler makes it for a target, found without such a device.

    The machine code came from a runner that had loaded the submission: a claim. It was read in another.

    Attributes:
        case: the first public case whose launch asked for it.
        launch: which launch of that case, from 0; the candidates of one autotuned launch share it.
        config: constants and options, `BLOCK=1024, num_warps=4, num_stages=3`.
        arguments: types and what they are specialised on, `x_ptr: *fp32 ÷16, n: i32 =1`.
        registers, stack_bytes: per thread.
        spills: loads and stores of the stack in the machine code.
        shared_bytes: per block.
        wgmma, imma, tcgen05, tma, ldg128: instructions of each kind in the machine code; `imma` are those for integers
            on tensor cores, wgmma's among them; the last are loads of global memory, of 128 bits or more.
        mfma: products of tiles, of AMD's devices.
        message: why it does not compile, with the student's line; `""` if it does.
    """

    kernel: str
    case: str
    launch: int
    config: str
    arguments: str
    registers: int = 0
    stack_bytes: int = 0
    spills: int = 0
    shared_bytes: int = 0
    wgmma: int = 0
    imma: int = 0
    tcgen05: int = 0
    tma: int = 0
    ldg128: int = 0
    mfma: int = 0
    message: str = ""
    error: StudentError | None = None


@dataclass(frozen=True)
class CompiledFor:
    """What compiling for one target showed.

    Attributes:
        target: a name of `compile_checks.targets`.
        left_out: launches beyond the limit of number or time.
        message: why kernels may be missing, `""` if none is.
    """

    target: str
    kernels: tuple[CompiledKernel, ...] = ()
    left_out: int = 0
    message: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class RequirementResult:
    """Whether the kernels have the structure that a rung asks for: as compiled, as counted, or in a profiled call.

    Attributes:
        target: what they were compiled for, or what counted; of a profile its lane.
        rule: in words, `wgmma > 0, spills == 0`.
        met: `None` where it could not be told.
        group: the correctness group that it belongs to, where it stands among the cases too; `""` if it is for
            information only.
        points: speed points that it gives where no lane of the course gives them for a time.
    """

    name: str
    about: str
    target: str
    rule: str
    met: bool | None
    message: str
    group: str = ""
    points: float = 0.0


@dataclass(frozen=True)
class Counted:
    """What one checked call of a public case did, counted where there is no GPU (a claim).

    Attributes:
        by: what counted: one of `counters.COUNTED_BY`.
        counters: by name, as `counters.COUNTERS` explains them.
        figures: what requirements compare, worked out from them.
        message: why there are none; `""` where there are.
        doubt: why it may not be what the submission does; points by it then wait for staff, who alone are told.
    """

    case: str
    by: str
    counters: dict[str, int] = field(default_factory=dict)
    figures: dict[str, int] = field(default_factory=dict)
    message: str = ""
    doubt: str = ""


@dataclass(frozen=True)
class PhaseTime:
    """One phase of an attempt."""

    phase: Phase
    started_at: float
    seconds: float


@dataclass(frozen=True)
class ClockSample:
    """One look at a GPU while an attempt ran on it.

    Attributes:
        at_s: since the attempt began.
        phase: what the judge had last said it was doing.
        throttled: what kept its clocks down just then.
    """

    at_s: float
    phase: Phase | None
    sm_mhz: int
    memory_mhz: int
    temperature_c: int
    power_w: float
    throttled: tuple[Throttle, ...] = ()


@dataclass(frozen=True)
class GpuFacts:
    """What NVML told the worker of the GPU that an attempt ran on: no word of it came through judge or runner.

    Attributes:
        samples: in order; at most `worker.watch.MOST_SAMPLES`, those while measuring kept first.
        throttled: what kept its clocks down at any time while it measured.
        uncorrected_ecc: memory errors of the attempt's time that were not corrected; `None` where they are not counted.
        xids: the driver's error numbers of that time, in order.
        trouble: why the measurements are not to be believed, which is the node's fault; `""` where they are.
    """

    name: str
    uuid: str
    driver: str
    samples: tuple[ClockSample, ...] = ()
    throttled: tuple[Throttle, ...] = ()
    uncorrected_ecc: int | None = None
    xids: tuple[int, ...] = ()
    trouble: str = ""


@dataclass(frozen=True)
class GradeResult:
    """What an attempt found. Immutable: a new grading makes a new one.

    Attributes:
        explanation: the answer in a few sentences, for the student.
        told_case: the name of the public case that the explanation is about; `""` where it is about none.
        section: the anchor of the handout's section that an author names for what went wrong; `""` where none is named.
        held: staff have to look before speed points and a place on the board count; `held_reason` says why.
        log: what the runner printed on public cases, capped; never that of hidden cases.
        environment: names and versions of everything that took part, by name.
        device_kernels: what ran on a GPU in an untimed call, most of its time first.
        compiled: per target, the kernels as compiled without a device.
        counted: what calls of some public cases did, where there is no GPU to time them.
        requirements: of the rung on both.
        promises: what the sandbox promised, by name.
        gpu: what the worker read of the GPU meanwhile; `None` on the CPU lane, and where there is no NVML.
        remeasure: why the ranked cases have to be measured again, on another node or later; `""` if they have not. The
            verdict stands, the samples are kept and pooled.
        exclusive_s: how long nobody else could use the GPU: from the first timed call to the last, checks included.
        profile: of a `profile` attempt; `None` where the case could not be called.
        sanitized: the same of a `sanitize` attempt.
    """

    verdict: Verdict
    explanation: str
    cases: tuple[CaseResult, ...]
    error: StudentError | None = None
    measurements: tuple[Measurement, ...] = ()
    findings: tuple[Finding, ...] = ()
    launches: tuple[Launch, ...] = ()
    held: bool = False
    held_reason: str = ""
    log: str = ""
    phases: tuple[PhaseTime, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    promises: tuple[str, ...] = ()
    gpu: GpuFacts | None = None
    remeasure: str = ""
    exclusive_s: float = 0.0
    device_kernels: tuple[DeviceKernel, ...] = ()
    compiled: tuple[CompiledFor, ...] = ()
    counted: tuple[Counted, ...] = ()
    requirements: tuple[RequirementResult, ...] = ()
    told_case: str = ""
    section: str = ""
    profile: Profile | None = None
    sanitized: Sanitized | None = None
    version: int = CONTRACT_VERSION

    def for_student(self) -> GradeResult:
        """What the student may see: hidden cases reduced to category and verdict, no findings."""
        # Looks at the GPU come at fixed times: their number in a phase would tell how long hidden cases took.
        gpu = dataclasses.replace(self.gpu, samples=()) if self.gpu else None
        hidden = {case.name for case in self.cases if case.visibility is Visibility.hidden}
        times = tuple(item for item in self.measurements if item.case not in hidden)
        cases = tuple(case.for_student() for case in self.cases)
        counted = tuple(dataclasses.replace(one, doubt="") for one in self.counted)
        return dataclasses.replace(self, cases=cases, measurements=times, counted=counted, findings=(), gpu=gpu)


@dataclass(frozen=True)
class PhaseStarted:
    """An attempt entered a phase."""

    phase: Phase
    at: float


@dataclass(frozen=True)
class CaseFinished:
    """A case has its result; shown at once."""

    index: int
    total: int
    case: CaseResult


@dataclass(frozen=True)
class Event:
    """One line of the judge's output: exactly one of the three is set."""

    phase: PhaseStarted | None = None
    case: CaseFinished | None = None
    result: GradeResult | None = None

    def __post_init__(self) -> None:
        """Refuse a line that says nothing or two things."""
        if sum(part is not None for part in (self.phase, self.case, self.result)) != 1:
            raise ValueError("an event carries exactly one of phase, case and result")


# --- worker → server -------------------------------------------------------------------------------------------------


class Kind(StrEnum):
    """What an envelope carries in `body`."""

    node = "node"
    """NodeReport: this node is alive and has so many slots."""
    claimed = "claimed"
    """Claim: the task arrived and grading starts."""
    heartbeat = "heartbeat"
    """Claim: still at it."""
    event = "event"
    """AttemptEvent: a phase began or a case finished."""
    result = "result"
    """AttemptResult: the attempt ended with a result."""
    failure = "failure"
    """AttemptFailure: the attempt ended without one; ours."""


@dataclass(frozen=True)
class Calibration:
    """What a node's golden kernel showed when it was measured beside itself, several times.

    Attributes:
        at: when it was last measured.
        gradings: how many measurements these figures are of.
        case: what was measured.
        ratio: median of the ratios; 1 where nothing disturbs.
        ratio_spread: the largest distance of a ratio from their median, relative to it: the node's noise floor.
        time_us: median of the times.
        time_spread: the same distance, of the times.
    """

    at: float
    lane: Lane
    gradings: int
    case: str
    ratio: float
    ratio_spread: float
    time_us: float
    time_spread: float


@dataclass(frozen=True)
class NodeReport:
    """A node says that it is alive.

    Attributes:
        lanes: what it grades.
        slots: how many attempts it takes at once.
        draining: it finishes what it has and takes no more.
        facts: names and versions, for the node page and the receipts. `trouble`: why it takes nothing.
        at: by its own clock, seconds since 1970.
        works: what of a grading it does.
        calibration: its noise floor; `None` before it was measured.
        suspect_since, suspect_until: what it measured in this time is to be measured again, because its golden kernel
            failed at the end of it. By its own clock; said until the next such time: a lost report does no harm.
    """

    lanes: tuple[Lane, ...]
    slots: int
    draining: bool
    facts: dict[str, str]
    at: float
    works: tuple[Work, ...] = tuple(Work)
    calibration: Calibration | None = None
    suspect_since: float | None = None
    suspect_until: float | None = None


@dataclass(frozen=True)
class Claim:
    """The attempt this node works on."""

    attempt: str
    fence: int
    at: float


@dataclass(frozen=True)
class AttemptEvent:
    """One of the judge's events, on its way to the page."""

    attempt: str
    fence: int
    sequence: int
    event: Event


@dataclass(frozen=True)
class AttemptResult:
    """An attempt's result; recorded once, repeats change nothing."""

    attempt: str
    fence: int
    result: GradeResult


@dataclass(frozen=True)
class AttemptFailure:
    """An attempt that ended without a result: ours, never charged.

    Attributes:
        handed_back: its node gave it back, such as because it was stopped; it does not count as one of the
            submission's attempts.
        suspect: the node failed a known-good job after it and has put itself out of service, or a fault of the GPU took
            the judge along: whose fault that is, is not known, so the next node to run this submission is one in
            quarantine.
    """

    attempt: str
    fence: int
    reason: str
    handed_back: bool = False
    suspect: bool = False


@dataclass(frozen=True)
class Stamp:
    """Which of a node's signed messages this is.

    Attributes:
        session: drawn at random by each process, and each connection of it, that signs.
        number: counts the session's messages, from 1.
        at: when it was signed, by the node's clock, seconds since 1970.
    """

    session: int
    number: int
    at: float


@dataclass(frozen=True)
class Envelope:
    """What a node puts on the results queue.

    Attributes:
        node: the sender's name.
        stamp: makes it one of a kind: it is taken once, and not when it is old.
        body: JSON text of the class that `kind` names.
        signature: base64 of the Ed25519 signature of all of these, by the node's key.
    """

    node: str
    kind: Kind
    stamp: Stamp
    body: str
    signature: str
    version: int = CONTRACT_VERSION
