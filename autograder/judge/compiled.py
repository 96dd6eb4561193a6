"""What a submission's kernels become on devices that are not there, as far as a sandboxed runner says.

Two runners per target, one after the other. The first loads the submission, calls its entry without a device, has
triton compile every launch, and leaves the machine code in memory of the judge's: it executes untrusted code, so that
all it says is a claim. Then it is ended and the memory is sealed. The second has loaded nothing and reads those bytes,
which may be anything: a flaw in a tool costs that runner, and what it says is taken no further than a number to show.
"""

from __future__ import annotations

import dataclasses
import fcntl
import os
import select
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

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

BUDGET_S = 20.0
"""No compilation begins later than this after the runner's first."""
DEADLINE_S = 60.0
"""How long either runner may take in all."""
LIMITS = RunnerLimits(memory_bytes=3 * 2**30, processes=64, output_bytes=2**20, tmp_bytes=256 * 2**20)
"""Of a runner that compiles: triton and ptxas need more than most kernels do."""

REFUSED = "Would not"
"""How a message begins that tells of a kernel which the compiler or the target refuses."""

MAX_TEXT = 300
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


def check(assignment: Assignment, request: GradeRequest, sandbox: Sandbox) -> dict[str, Checked]:
    """Compile for every target that the assignment names, one after the other; by target."""
    if request.language is not Language.triton:
        return {}
    return {target: _for_target(target, assignment, request, sandbox) for target in assignment.compile_for}


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


def _for_target(target: str, assignment: Assignment, request: GradeRequest, sandbox: Sandbox) -> Checked:
    start = time.monotonic()
    cases = cases_for(target, assignment)
    try:
        compiled, readings = _both(target, cases, assignment, request, sandbox)
    except _EndedError as ended:
        return Checked(CompiledFor(target, message=str(ended), seconds=time.monotonic() - start))
    except (SandboxError, OSError):
        message = "It could not be compiled here. This is not your fault."
        return Checked(CompiledFor(target, message=message, seconds=time.monotonic() - start), ours=True)
    names = tuple(case.name for case in cases)
    kernels = tuple(
        _shown(claim, reading, target, names, request.source)
        for claim, reading in zip(compiled.kernels, readings, strict=True)
    )
    message = _incomplete(compiled, names, request.source)
    left_out = min(max(compiled.left_out, 0), 10**6)
    shown = CompiledFor(target, kernels, left_out, message, time.monotonic() - start)
    uses = tuple(_uses(claim, len(names)) for claim in compiled.kernels)
    return Checked(shown, uses, names, whole=not (message or left_out))


def _both(
    target: str, cases: Sequence[Case], assignment: Assignment, request: GradeRequest, sandbox: Sandbox
) -> tuple[Compiled, tuple[Reading, ...]]:
    """What the submission's runner said, and what the other read in the machine code that it left."""
    code = os.memfd_create("machine code", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    text = os.memfd_create("source", os.MFD_CLOEXEC)
    try:
        os.ftruncate(code, CODE_BYTES)
        fcntl.fcntl(code, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK)
        source = request.source.encode()
        os.pwrite(text, source, 0)
        dry = tuple(dry_case(case, assignment) for case in cases)
        arguments = tuple(argument.name for argument in assignment.arguments)
        ask = Compile(len(source), request.filename, assignment.entry, arguments, target, dry, BUDGET_S)
        compiled = _asked(sandbox, request.language, ask, [text, code], Compiled)
        compiled = dataclasses.replace(
            compiled, kernels=tuple(_bounded(one) for one in compiled.kernels[:MOST_KERNELS])
        )
        # Nobody who could still write has it, or has it mapped: the runner is gone.
        fcntl.fcntl(code, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)
        places = tuple((one.offset, one.bytes) for one in compiled.kernels)
        said = _asked(sandbox, request.language, Read(places), [code], Readings) if places else Readings(())
    finally:
        os.close(code)
        os.close(text)
    if len(said.kernels) != len(compiled.kernels):
        raise _EndedError("The machine code could not be read.")
    return compiled, said.kernels


def _bounded(claim: ClaimedKernel) -> ClaimedKernel:
    """Without machine code where it claims to have it outside of the room that it had."""
    inside = min(claim.offset, claim.bytes) >= 0 and claim.offset + claim.bytes <= CODE_BYTES
    return claim if inside else dataclasses.replace(claim, offset=0, bytes=0)


def _asked(
    sandbox: Sandbox, language: Language, ask: Compile | Read, descriptors: list[int], wanted: type[Said]
) -> Said:
    """Start a runner, ask it once, and end it."""
    runner = sandbox.start(LIMITS, language, purpose=Purpose.compile)
    try:
        try:
            socket.send_fds(runner.channel, [encode(ask)], descriptors)
        except OSError:
            raise _EndedError("The compiler's process ended before it began.") from None
        return _answer(runner, wanted)
    finally:
        runner.close()


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
