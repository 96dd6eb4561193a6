"""What a submission's kernels become on devices that are not there, as far as a sandboxed runner says.

Two runners. The first loads the submission, for every target in a process of its own, calls its entry without a device,
has triton compile every launch, and leaves the machine code in memory of the judge's: it executes untrusted code, so
that all it says is a claim. Then it is ended and the memory is sealed. The second has loaded nothing and reads those
bytes, which may be anything: a flaw in a tool costs that runner, and what it says is taken no further than a number.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from autograder import languages
from autograder.assignment import Assignment, Case, Layout
from autograder.compile_checks.messages import (
    CODE_BYTES,
    MOST_KERNELS,
    MOST_USES,
    NO_COMPILER,
    NO_TARGET,
    OUT_OF_TIME,
    TEXT_BYTES,
    ClaimedKernel,
    Compile,
    Compiled,
    DryCase,
    DryTensor,
    Ended,
    Fault,
    Part,
    Read,
    Reading,
    Readings,
    RefusedCall,
)
from autograder.compile_checks.targets import TARGETS
from autograder.contract import CompiledFor, CompiledKernel, GradeRequest, Language, StudentError
from autograder.errors import SandboxError
from autograder.judge.compile.compiler_client import (
    LIMITS,
    SOMETHING_ELSE,
    CompilerExitedError,
    arguments_of,
    ask_with_source,
    packet_of,
    send,
    source_of,
    understood,
)
from autograder.judge.protocol import memfd
from autograder.judge.protocol.buffers import layout_of
from autograder.judge.protocol.failure import clean, from_exit, from_raised
from autograder.judge.protocol.own_time import Wait
from autograder.lanes import DEVICES, of_target
from autograder.listings import KernelListing, Listings, ptx_rows, sass_rows, text_of
from autograder.protocol import Raised
from autograder.sandbox import Exit, Purpose, Runner, Sandbox, Side

BUDGET_S: Mapping[Language, float] = {
    language: record.compile_s for language in Language if (record := languages.of(language)).compiler
}
"""How long the compiler of each language may take that has one; what begins late may end after that."""
DEADLINE_S = 45.0
"""How long either runner may take in all, in its own time; the backstop is all that ends it on a busy machine."""

REFUSED = "Would not"
"""How a message begins that tells of a kernel which the compiler or the target refuses."""

MAX_TEXT = 300
_NO_LISTINGS = Listings("")
MAX_LISTED_BYTES = 2**20
"""Bytes of one kernel's text that are looked at."""
MAX_LEFT_OUT = 10**6
_SOME_SCALAR: Mapping[str, int | float] = {"float32": 0.5, "int64": 7}
"""A number that no kernel is specialised on."""
_LOOKS_AT_VALUES = ("DataDependentOutputException", "DynamicOutputShapeException", "UnsupportedOperatorException")

_AT_LAUNCH = frozenset(kind for kind, meaning in languages.error_kinds().items() if meaning.at_launch)
"""Kinds of faults of a kernel that compiled."""

_WHY_NOTHING = {
    NO_COMPILER: "There is no nvcc on this node: nothing was compiled, and nothing was checked.",
    NO_TARGET: (
        "The nvcc on this node does not know {target}: nothing was compiled for it, and nothing was checked. "
        "This is not your fault."
    ),
    OUT_OF_TIME: "The compiler did not end in time and was stopped: nothing was checked.",
}
"""What is said of a target for which there is nothing else to say, by the kind of its fault."""
_LACKING = (NO_COMPILER, NO_TARGET)
"""Kinds of faults that are the node's, whatever was handed in."""


@dataclass(frozen=True)
class RejectedCase:
    """A case by name, and why its call would fail, in words and as an error with its lines."""

    case: str
    message: str
    error: StudentError | None


@dataclass(frozen=True)
class TargetReport:
    """What one target's compilation showed.

    Attributes:
        uses: for each kernel of `shown`, the numbers of case and launch that came to it.
        cases: names, by number.
        whole: every launch of every case was compiled.
        infrastructure_fault: it failed through no fault of the submission.
        lacking: this node has nothing that compiles the language for the target, so that nothing may be asked of it.
        listings: the kernels' code as text.
        refused: cases whose call would fail on the device, as it or its compiler would not take a kernel.
    """

    shown: CompiledFor
    uses: tuple[tuple[tuple[int, int], ...], ...] = ()
    cases: tuple[str, ...] = ()
    whole: bool = False
    infrastructure_fault: bool = False
    lacking: bool = False
    listings: Listings = _NO_LISTINGS
    refused: tuple[RejectedCase, ...] = ()


def is_compiled(language: Language) -> bool:
    """Whether something compiles it for devices that are not there."""
    return language in BUDGET_S


def targets_of(assignment: Assignment, language: Language) -> tuple[str, ...]:
    """What the assignment has its submissions compiled for, as far as the language's compiler makes code for it."""
    vendors = languages.of(language).compiles_for
    return tuple(target for target in assignment.compile_for if TARGETS[target].vendor in vendors)


def prewarm(sandbox: Sandbox, language: Language) -> None:
    """Have the sandbox ready for the two runners of a compilation."""
    if is_compiled(language):
        for purpose in (Purpose.read, Purpose.compile):
            sandbox.prewarm(LIMITS, language, purpose=purpose)


class Compilation:
    """A submission being compiled for every target that the assignment names; a context.

    It begins when it is made, and goes on by itself while the judge does something else.
    """

    def __init__(self, assignment: Assignment, request: GradeRequest, sandbox: Sandbox) -> None:
        self._assignment = assignment
        self._request = request
        self._sandbox = sandbox
        self._start = time.monotonic()
        self._jobs = {target: _Job(target, assignment) for target in targets_of(assignment, request.language)}
        self._runners: dict[Purpose, Runner] = {}
        self._text = memfd.of_fixed_size("instructions", TEXT_BYTES)
        self._go_on(self._begin)

    def hear(self) -> None:
        """Wait for all that whoever compiles has to say, and end it."""
        if Purpose.compile in self._runners:
            self._go_on(self._collect)

    def finish(self) -> dict[str, TargetReport]:
        """Wait for it; what came of it, by target."""
        self.hear()
        self._go_on(self._read)
        seconds = time.monotonic() - self._start
        return {target: job.checked(self._request, seconds, self._text) for target, job in self._jobs.items()}

    def __enter__(self) -> Self:
        """It has begun."""
        return self

    def __exit__(self, *_: object) -> None:
        """End what still runs."""
        for runner in self._runners.values():
            runner.close()
        os.close(self._text)
        for job in self._jobs.values():
            os.close(job.code)

    def _open(self) -> list[_Job]:
        return [job for job in self._jobs.values() if not job.failed]

    def _go_on(self, step: Callable[[list[_Job]], None]) -> None:
        """Take a step for the targets that are open; if it goes wrong, it is the end of all that it left open."""
        jobs = self._open()
        try:
            if jobs:
                step(jobs)
        except CompilerExitedError as ended:
            for job in jobs:
                job.fail(str(ended))
        except (SandboxError, OSError):
            for job in jobs:
                job.fail("It could not be compiled here. This is not your fault.", infrastructure_fault=True)

    def _begin(self, jobs: list[_Job]) -> None:
        """Have one runner load the submission and compile what it launches; another gets ready to read that."""
        parts = tuple(Part(job.target, tuple(dry_case(case, self._assignment) for case in job.cases)) for job in jobs)
        budget_s = BUDGET_S[self._request.language]
        size, arguments = len(source_of(self._request)), arguments_of(self._assignment)
        ask = Compile(size, self._request.filename, self._assignment.entry, arguments, parts, budget_s)
        ask_with_source(self._started(Purpose.compile), self._request, ask, [job.code for job in jobs])
        self._started(Purpose.read)

    def _started(self, purpose: Purpose) -> Runner:
        language = self._request.language
        runner = self._sandbox.start(LIMITS, language, side=Side.untimed, purpose=purpose)
        self._runners[purpose] = runner
        return runner

    def _collect(self, jobs: list[_Job]) -> None:
        """Wait for every target's word or end; then end the runner, and seal what it left."""
        waiting = {job.target: job for job in jobs}
        wait = Wait(self._runners[Purpose.compile], DEADLINE_S)
        try:
            while waiting:
                said = _heard(packet_of(self._runners[Purpose.compile], wait), set(self._jobs))
                job = waiting.pop(said.target, None)
                if job is not None:
                    job.hear(said)
        except CompilerExitedError as ended:
            for job in waiting.values():
                job.fail(str(ended))
        finally:
            self._runners.pop(Purpose.compile).close()
        for job in jobs:
            # Nobody who could still write has the memory, or has it mapped.
            try:
                memfd.seal(job.code)
            except OSError:  # Somebody has seen to it that nothing can be sealed any more: nobody who compiles does.
                job.fail(SOMETHING_ELSE)

    def _read(self, jobs: list[_Job]) -> None:
        """Have the machine code read by the runner that has seen nothing else."""
        places = [(number, *place) for number, job in enumerate(jobs) for place in job.places()]
        if not places:
            return
        functions = tuple(function for job in jobs for function in job.functions())
        send(self._runners[Purpose.read], Read(tuple(places), functions), [*(job.code for job in jobs), self._text])
        packet = packet_of(self._runners[Purpose.read], Wait(self._runners[Purpose.read], DEADLINE_S))
        self._runners.pop(Purpose.read).close()
        # Nobody who could still write has the memory, or has it mapped.
        memfd.seal(self._text)
        readings = understood(packet, Readings).kernels
        if len(readings) != len(places):
            raise CompilerExitedError("The machine code could not be read.")
        for job in jobs:
            job.readings, readings = readings[: len(job.places())], readings[len(job.places()) :]


def cases_for(target: str, assignment: Assignment) -> tuple[Case, ...]:
    """Those that are compiled from: what a requirement names, the ranked ones, or the first of each type of element.

    For a target that no lane has, they are those of the first lane that the assignment ranks.
    """
    lanes = of_target(target) or tuple(DEVICES)
    lane = next((lane for lane in lanes if assignment.policy(lane)), lanes[0])
    cases = assignment.cases_for(lane)
    named = {requirement.case for requirement in assignment.requirements if requirement.target == target}
    chosen = [case for case in cases if case.ranked or case.name in named]
    firsts = {case.dtype: case for case in reversed(cases)}
    return tuple(chosen) or tuple(firsts.values())


def dry_case(case: Case, assignment: Assignment) -> DryCase:
    """A case as the runner gets it: layouts and numbers, no values."""
    assignment = assignment.part(case)
    tensors: list[DryTensor] = []
    scalars: dict[str, int | float] = {}
    for argument in assignment.arguments:
        if argument.role in {"input", "output"}:
            spec = layout_of(argument, assignment, case)
            offset = case.layout.get(argument.name, Layout()).offset
            tensors.append(DryTensor(spec.name, spec.dtype, spec.shape, spec.stride, offset))
    strides = {tensor.name: tensor.stride for tensor in tensors}
    for argument in assignment.arguments:
        if argument.role == "size":
            scalars[argument.name] = case.size[argument.name]
        elif argument.role == "stride":
            scalars[argument.name] = strides[argument.of][argument.dim]
        elif argument.role == "scalar":
            # A size of the same name is what the inputs are drawn with, such as whether a mask is causal.
            scalars[argument.name] = case.size.get(argument.name, _SOME_SCALAR[argument.dtype])
    return DryCase(case.name, tuple(tensors), scalars, assignment.signature_in(case))


class _Job:
    """One target.

    Attributes:
        cases: that it is compiled from.
        code: memory for machine code.
        readings: of each kernel's, in order.
        failed: nothing more is to come.
    """

    def __init__(self, target: str, assignment: Assignment) -> None:
        self.target = target
        self.cases = cases_for(target, assignment)
        self.readings: tuple[Reading, ...] = ()
        self.failed = False
        self._message = ""
        self._infrastructure_fault = False
        self._compiled = Compiled(target, ())
        self.code = memfd.of_fixed_size("machine code", CODE_BYTES)

    def hear(self, said: Compiled | Ended) -> None:
        """Keep what its process said, as far as there is room for it."""
        if isinstance(said, Ended):
            self.fail(from_exit(Exit(said.code, said.signal), "compiling").message)
            return
        kept = tuple(_bounded(kernel) for kernel in said.kernels[:MOST_KERNELS])
        self._compiled = dataclasses.replace(said, kernels=kept)

    def places(self) -> tuple[tuple[int, int], ...]:
        """Offset and size of every kernel's machine code."""
        return tuple((kernel.offset, kernel.bytes) for kernel in self._compiled.kernels)

    def functions(self) -> tuple[str, ...]:
        """Which function of its machine code each kernel is."""
        return tuple(kernel.function for kernel in self._compiled.kernels)

    def fail(self, message: str, *, infrastructure_fault: bool = False) -> None:
        """There is nothing to show but this."""
        if not self.failed:
            self.failed, self._message, self._infrastructure_fault = True, message, infrastructure_fault

    def checked(self, request: GradeRequest, seconds: float, text: int) -> TargetReport:
        """What came of it; `text` has the instructions as text."""
        source = request.source
        if self.failed:
            return TargetReport(
                CompiledFor(self.target, message=self._message, seconds=seconds),
                infrastructure_fault=self._infrastructure_fault,
            )
        names, claims = tuple(case.name for case in self.cases), self._compiled.kernels
        message = _incomplete(self._compiled, names, source)
        left_out = min(max(self._compiled.left_out, 0), MAX_LEFT_OUT)
        both = zip(claims, self.readings, strict=True)
        kernels = tuple(_shown(claim, reading, self.target, names, source) for claim, reading in both)
        shown = CompiledFor(self.target, kernels, left_out, message, seconds)
        uses = tuple(_uses(claim, len(names)) for claim in claims)
        texts = (self._texts(claim, reading, text) for claim, reading in zip(claims, self.readings, strict=True))
        listings = listings_of(shown, texts, _name_in_code(request))
        whole, lacking = not (message or left_out), self._is_lacking(request.language)
        refused = tuple(_refused(self._compiled.refused, self.target, names, source))
        return TargetReport(shown, uses, names, whole=whole, lacking=lacking, listings=listings, refused=refused)

    def _is_lacking(self, language: Language) -> bool:
        """Whether its process said so, and could not have been made to by the submission.

        Host code runs only where something compiled, and then there are kernels. Where a language brings its compiler,
        only a process that had loaded the submission could say it.
        """
        said = self._compiled
        nothing = not languages.of(language).brings_compiler and not said.kernels and not said.left_out
        return nothing and said.fault is not None and said.fault.kind in _LACKING

    def _texts(self, claim: ClaimedKernel, reading: Reading, text: int) -> tuple[str, str]:
        """Its instructions and its PTX, as far as they are where they are said to be."""
        sass = _read(text, reading.text_offset, reading.text_bytes, TEXT_BYTES)
        return sass, _read(self.code, claim.ptx_offset, claim.ptx_bytes, CODE_BYTES)


def listings_of(shown: CompiledFor, texts: Iterable[tuple[str, str]], filename: str) -> Listings:
    """The code of the kernels that compiled, with the lines of the file that was handed in."""
    kernels = []
    for kernel, (sass, ptx) in zip(shown.kernels, texts, strict=True):
        listing = KernelListing(
            kernel.kernel, kernel.case, kernel.launch, kernel.config,
            text_of(list(sass_rows(sass, filename))), text_of(list(ptx_rows(ptx, filename))),
        )  # fmt: skip
        if listing.sass or listing.ptx:
            kernels.append(listing)
    return Listings(shown.target, tuple(kernels), shown.left_out)


def _name_in_code(request: GradeRequest) -> str:
    """What the compiler calls the file that was handed in."""
    return languages.of(request.language).name_in_code(request.filename)


def _read(text: int, offset: int, size: int, room: int) -> str:
    inside = min(offset, size) >= 0 and offset + size <= room
    return os.pread(text, min(size, MAX_LISTED_BYTES), offset).decode(errors="replace") if inside else ""


def _bounded(claim: ClaimedKernel) -> ClaimedKernel:
    """Without machine code where it claims to have it outside of the room that it had."""
    inside = min(claim.offset, claim.bytes) >= 0 and claim.offset + claim.bytes <= CODE_BYTES
    return claim if inside else dataclasses.replace(claim, offset=0, bytes=0)


def _heard(packet: bytes, targets: Container[str]) -> Compiled | Ended:
    """What is said of one of the targets."""
    said: Compiled | Ended = understood(packet, Compiled, Ended)  # type: ignore[assignment]
    if said.target not in targets:
        raise CompilerExitedError(SOMETHING_ELSE)
    return said


def _uses(claim: ClaimedKernel, cases: int) -> tuple[tuple[int, int], ...]:
    return tuple(use for use in claim.uses[:MOST_USES] if 0 <= use[0] < cases)


def _shown(claim: ClaimedKernel, reading: Reading, target: str, cases: Sequence[str], source: str) -> CompiledKernel:
    case, launch = next(iter(_uses(claim, len(cases))), (0, 0))
    error, message = None, ""
    if claim.fault is not None:
        error, message = _refusal(claim.fault, target, source)
    elif not reading.readable:
        message = "Its machine code could not be read."
    return CompiledKernel(
        kernel=clean(claim.kernel, MAX_TEXT),
        case=cases[case],
        launch=launch,
        config=clean(claim.config, MAX_TEXT),
        arguments=clean(claim.arguments, MAX_TEXT),
        registers=_number(reading.registers),
        stack_bytes=_number(reading.stack_bytes),
        spills=_number(reading.spills),
        shared_bytes=_number(claim.shared_bytes) + _number(reading.shared_bytes),
        wgmma=_number(reading.wgmma),
        imma=_number(reading.imma),
        tcgen05=_number(reading.tcgen05),
        tma=_number(reading.tma),
        ldg128=_number(reading.ldg128),
        mfma=_number(reading.mfma),
        message=message,
        error=error,
    )


def _refused(calls: Sequence[RefusedCall], target: str, cases: Sequence[str], source: str) -> Iterator[RejectedCase]:
    """The first that was said of each case."""
    first = {call.case: call for call in reversed(calls) if 0 <= call.case < len(cases)}
    for number, call in sorted(first.items()):
        error, message = _refusal(call.fault, target, source)
        yield RejectedCase(cases[number], f"`{clean(call.kernel, MAX_TEXT)}`: {message}", error)


def _refusal(fault: Fault, target: str, source: str) -> tuple[StudentError | None, str]:
    """Why a kernel is not taken: the error, and one line that begins with `REFUSED`."""
    error, place = _said(fault, source)
    runs = "run" if fault.kind in _AT_LAUNCH else "compile"
    return error, f"{REFUSED} {runs} for {target}: {place}"


def _number(said: int) -> int:
    return min(max(said, 0), 2**31)


def _said(fault: Fault, source: str) -> tuple[StudentError | None, str]:
    """The error, and one line about it with its place, in the file's own lines."""
    failure = from_raised(Raised(0, "call", fault.kind, fault.message, fault.frames), source)
    return failure.error, failure.message


def _incomplete(compiled: Compiled, cases: Sequence[str], source: str) -> str:
    """Why launches may be missing, for the student."""
    if compiled.fault is None:
        return ""
    if compiled.fault.kind in _WHY_NOTHING:
        return _WHY_NOTHING[compiled.fault.kind].format(target=compiled.target)
    _, place = _said(compiled.fault, source)
    if compiled.fault.kind in _LOOKS_AT_VALUES:
        line = place.partition(":")[0] if place.startswith("line") else "the entry"
        return (
            f"The host code reads a tensor's values ({line}), and a call without a device has none: launches after "
            "that are not listed."
        )
    where = f"case `{compiled.case}`" if compiled.case in cases else "loading the file"
    return f"The host code could not be followed without a device, in {where}: {place}"
