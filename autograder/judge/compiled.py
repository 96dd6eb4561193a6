"""What a submission's kernels become on devices that are not there, as far as a sandboxed runner says.

Two runners per target, one after the other; targets beside each other. The first loads the submission, calls its entry
without a device, has triton compile every launch, and leaves the machine code in memory of the judge's: it executes
untrusted code, so that all it says is a claim. Then it is ended and the memory is sealed. The second has loaded nothing
and reads those bytes, which may be anything: a flaw in a tool costs that runner, and what it says is taken no further
than a number to show.
"""

from __future__ import annotations

import dataclasses
import fcntl
import os
import select
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self, TypeVar

from autograder.assignment import Assignment, Case, Layout
from autograder.compile_checks.messages import (
    CODE_BYTES,
    MOST_KERNELS,
    MOST_USES,
    ClaimedKernel,
    Compile,
    Compiled,
    DryCase,
    DryTensor,
    Fault,
    Read,
    Reading,
    Readings,
    decode,
    encode,
)
from autograder.compile_checks.targets import LANES
from autograder.contract import CompiledFor, CompiledKernel, GradeRequest, Language, StudentError
from autograder.errors import ContractError, SandboxError
from autograder.judge.buffers import layout_of
from autograder.judge.failure import clean, from_exit, from_raised
from autograder.protocol import MAX_PACKET, Raised
from autograder.sandbox import Purpose, Runner, RunnerLimits, Sandbox

LANGUAGES = (Language.triton,)
"""Those whose launches are compiled."""

BUDGET_S = 20.0
"""No compilation begins later than this after the runner's first."""
DEADLINE_S = 45.0
"""How long either runner may take in all."""
LIMITS = RunnerLimits(memory_bytes=3 * 2**30, processes=64, output_bytes=2**20, tmp_bytes=256 * 2**20)
"""Of a runner that compiles: triton and ptxas need more than most kernels do."""

REFUSED = "Would not"
"""How a message begins that tells of a kernel which the compiler or the target refuses."""

MAX_TEXT = 300
MOST_LEFT_OUT = 10**6
_LOOK_S = 0.02
_SOME_SCALAR: Mapping[str, int | float] = {"float32": 0.5, "int64": 7}
"""A number that no kernel is specialised on."""
_LOOKS_AT_VALUES = ("DataDependentOutputException", "DynamicOutputShapeException", "UnsupportedOperatorException")

Said = TypeVar("Said", Compiled, Readings)


@dataclass(frozen=True)
class Checked:
    """What one target's compilation showed.

    Attributes:
        uses: for each kernel of `shown`, the numbers of case and launch that came to it.
        cases: names, by number.
        whole: every launch of every case was compiled.
        ours: it failed through no fault of the submission.
    """

    shown: CompiledFor
    uses: tuple[tuple[tuple[int, int], ...], ...] = ()
    cases: tuple[str, ...] = ()
    whole: bool = False
    ours: bool = False


class _EndedError(Exception):
    """A runner did not say what it was asked for; the text says why, for the student."""


class Compilation:
    """A submission being compiled for every target that the assignment names, beside each other; a context.

    It begins when it is made, and goes on by itself while the judge does something else.
    """

    def __init__(self, assignment: Assignment, request: GradeRequest, sandbox: Sandbox) -> None:
        self._jobs = tuple(_Job(target, assignment, request, sandbox) for target in assignment.compile_for)
        for job in self._jobs:
            job.go_on(_Job.begin)

    def finish(self) -> dict[str, Checked]:
        """Wait for it; what came of it, by target."""
        for step in (_Job.read, _Job.finish):
            for job in self._jobs:
                job.go_on(step)
        return {job.target: job.checked for job in self._jobs}

    def __enter__(self) -> Self:
        """It has begun."""
        return self

    def __exit__(self, *_: object) -> None:
        """End what still runs."""
        for job in self._jobs:
            job.close()


def cases_for(target: str, assignment: Assignment) -> tuple[Case, ...]:
    """Those that are compiled from: what a requirement names, the ranked ones, or the first of each type of element."""
    lane = next((lane for lane in LANES[target] if assignment.policy(lane)), LANES[target][0])
    cases = assignment.cases_for(lane)
    named = {requirement.case for requirement in assignment.requirements if requirement.target == target}
    chosen = [case for case in cases if case.ranked or case.name in named]
    firsts = {case.dtype: case for case in reversed(cases)}
    return tuple(chosen) or tuple(firsts.values())


def dry_case(case: Case, assignment: Assignment) -> DryCase:
    """A case as the runner gets it: layouts and numbers, no values."""
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
            scalars[argument.name] = _SOME_SCALAR[argument.dtype]
    return DryCase(case.name, tuple(tensors), scalars)


class _Job:
    """One target: its two runners in turn, while those of other targets work.

    Attributes:
        checked: what came of it, in the end.
    """

    def __init__(self, target: str, assignment: Assignment, request: GradeRequest, sandbox: Sandbox) -> None:
        self.target = target
        self.checked = Checked(CompiledFor(target))
        self._assignment = assignment
        self._request = request
        self._sandbox = sandbox
        self._start = time.monotonic()
        self._cases = cases_for(target, assignment)
        self._compiled = Compiled(())
        self._code = os.memfd_create("machine code", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        self._runner: Runner | None = None
        self._failed = False

    def go_on(self, step: Callable[[_Job], None]) -> None:
        """Take a step, unless one has failed."""
        if self._failed:
            return
        try:
            step(self)
        except _EndedError as ended:
            self._fail(str(ended))
        except (SandboxError, OSError):
            self._fail("It could not be compiled here. This is not your fault.", ours=True)

    def begin(self) -> None:
        """Have a runner load the submission and compile what it launches."""
        os.ftruncate(self._code, CODE_BYTES)
        fcntl.fcntl(self._code, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK)
        source = self._request.source.encode()
        dry = tuple(dry_case(case, self._assignment) for case in self._cases)
        arguments = tuple(argument.name for argument in self._assignment.arguments)
        entry, name = self._assignment.entry, self._request.filename
        text = os.memfd_create("source", os.MFD_CLOEXEC)
        try:
            os.pwrite(text, source, 0)
            ask = Compile(len(source), name, entry, arguments, self.target, dry, BUDGET_S)
            self._ask(ask, [text, self._code])
        finally:
            os.close(text)

    def read(self) -> None:
        """Wait for it, end it, and have another runner read what it left."""
        compiled = self._answer(Compiled)
        self._end_runner()
        # Nobody who could still write has the memory, or has it mapped.
        fcntl.fcntl(self._code, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)
        kept = tuple(_bounded(kernel) for kernel in compiled.kernels[:MOST_KERNELS])
        self._compiled = dataclasses.replace(compiled, kernels=kept)
        if kept:
            self._ask(Read(tuple((kernel.offset, kernel.bytes) for kernel in kept)), [self._code])

    def finish(self) -> None:
        """Wait for the readings, and put both together."""
        claims = self._compiled.kernels
        readings = self._answer(Readings).kernels if claims else ()
        if len(readings) != len(claims):
            raise _EndedError("The machine code could not be read.")
        names, source = tuple(case.name for case in self._cases), self._request.source
        message = _incomplete(self._compiled, names, source)
        left_out = min(max(self._compiled.left_out, 0), MOST_LEFT_OUT)
        both = zip(claims, readings, strict=True)
        kernels = tuple(_shown(claim, reading, self.target, names, source) for claim, reading in both)
        shown = CompiledFor(self.target, kernels, left_out, message, self._seconds())
        uses = tuple(_uses(claim, len(names)) for claim in claims)
        self.checked = Checked(shown, uses, names, whole=not (message or left_out))

    def close(self) -> None:
        """End what still runs."""
        self._end_runner()
        os.close(self._code)

    def _fail(self, message: str, *, ours: bool = False) -> None:
        self._failed = True
        self.checked = Checked(CompiledFor(self.target, message=message, seconds=self._seconds()), ours=ours)

    def _seconds(self) -> float:
        return time.monotonic() - self._start

    def _ask(self, ask: Compile | Read, descriptors: list[int]) -> None:
        """Start a runner, and ask it the one thing that it is for."""
        self._runner = self._sandbox.start(LIMITS, self._request.language, purpose=Purpose.compile)
        try:
            socket.send_fds(self._runner.channel, [encode(ask)], descriptors)
        except OSError:
            raise _EndedError("The compiler's process ended before it began.") from None

    def _answer(self, wanted: type[Said]) -> Said:
        assert self._runner is not None  # noqa: S101 -- it was asked in the step before.
        return _answer(self._runner, wanted)

    def _end_runner(self) -> None:
        if self._runner is not None:
            self._runner.close()
            self._runner = None


def _bounded(claim: ClaimedKernel) -> ClaimedKernel:
    """Without machine code where it claims to have it outside of the room that it had."""
    inside = min(claim.offset, claim.bytes) >= 0 and claim.offset + claim.bytes <= CODE_BYTES
    return claim if inside else dataclasses.replace(claim, offset=0, bytes=0)


def _answer(runner: Runner, wanted: type[Said]) -> Said:
    poll = select.poll()
    poll.register(runner.channel, select.POLLIN)
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        if poll.poll(1000 * _LOOK_S):
            packet = runner.channel.recv(MAX_PACKET + 1)
            if packet:
                return _understood(packet, wanted)
        if (ending := runner.poll()) is not None:
            raise _EndedError(from_exit(ending, "compiling").message)
    raise _EndedError(f"Compiling did not end within {DEADLINE_S:.3g} s and was stopped.")


def _understood(packet: bytes, wanted: type[Said]) -> Said:
    try:
        return decode(packet, wanted)
    except ContractError:
        raise _EndedError("The compiler's process said something else than what it was asked for.") from None


def _uses(claim: ClaimedKernel, cases: int) -> tuple[tuple[int, int], ...]:
    return tuple(use for use in claim.uses[:MOST_USES] if 0 <= use[0] < cases)


def _shown(claim: ClaimedKernel, reading: Reading, target: str, cases: Sequence[str], source: str) -> CompiledKernel:
    case, launch = next(iter(_uses(claim, len(cases))), (0, 0))
    error, message = None, ""
    if claim.fault is not None:
        error, place = _said(claim.fault, source)
        runs = "run" if claim.fault.kind == "OutOfResources" else "compile"
        message = f"{REFUSED} {runs} for {target}: {place}"
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
        tcgen05=_number(reading.tcgen05),
        tma=_number(reading.tma),
        message=message,
        error=error,
    )


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
    _, place = _said(compiled.fault, source)
    if compiled.fault.kind in _LOOKS_AT_VALUES:
        line = place.partition(":")[0] if place.startswith("line") else "the entry"
        return (
            f"The host code looks at a tensor's values ({line}), and a call without a device has none: what it "
            "launches after that is not listed."
        )
    where = f"case `{compiled.case}`" if compiled.case in cases else "loading the file"
    return f"The host code could not be followed without a device, in {where}: {place}"
