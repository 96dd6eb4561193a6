"""A profile of one call: inputs are drawn, a runner of its own traces and counts, and what it leaves is read.

Only a public case is profiled, so that counters tell no hidden size. The answer is not compared: who wants to know why
a wrong kernel is slow may. All that comes back is a claim of the submission's own processes, and is taken no further
than numbers and cleaned words in `autograder.profiles`.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path

import torch

from autograder import codec, languages
from autograder.assignment import Assignment, Case, load_assignment
from autograder.contract import CaseResult, GradeRequest, GradeResult, Phase, Verdict
from autograder.errors import ContractError, HarnessError
from autograder.judge.compile.compiler_client import (
    CompilerExitedError,
    arguments_of,
    packet_of,
    send,
    source_of,
    understood,
)
from autograder.judge.correctness import seeds
from autograder.judge.correctness.checker import integers_of
from autograder.judge.correctness.problem import load_problem
from autograder.judge.environment import environment
from autograder.judge.phases import Phases
from autograder.judge.probes import run_requirements
from autograder.judge.protocol import devices, memfd
from autograder.judge.protocol.batch_inputs import place_tensors, stored_inputs
from autograder.judge.protocol.failure import MAX_LINE, Failure, clean, from_raised
from autograder.judge.protocol.own_time import Wait
from autograder.profiles import (
    MAX_REPORT_BYTES,
    MOST_LINES,
    MOST_SPANS,
    MOST_STALLS,
    REPORT,
    Hint,
    LineCost,
    Profile,
    ProfiledKernel,
    Span,
    SpanKind,
    Stall,
    StalledFor,
    Timeline,
)
from autograder.profiling import ncu
from autograder.profiling.asking import BUDGET_S, FILES, Ask, Profiled, Ran, Traced
from autograder.protocol import Raised
from autograder.sandbox import Purpose, RunnerLimits, Sandbox, Side
from autograder.wire_format import decode

LIMITS = RunnerLimits(memory_bytes=24 * 2**30, processes=512, output_bytes=2**20, tmp_bytes=8 * 2**30)
"""The profiler keeps a copy of the device's memory to run a kernel several times."""
_NAME = 200
_TEXT = 1200
_GRACE_S = 10.0

Keep = Callable[[str, bytes], None]


def case_of(assignment: Assignment, request: GradeRequest) -> Case:
    """The public case that is asked for, or the ranked one with the most work.

    Raises:
        HarnessError: there is no such public case on the lane.
    """
    cases = [case for case in assignment.cases_for(request.lane) if not request.case or case.name == request.case]
    if not cases:
        raise HarnessError(f"{assignment.slug} has no public case {request.case!r} on the lane {request.lane}")
    return max(cases, key=lambda case: (case.ranked, sum(assignment.cost_of(case))))


def profile(request: GradeRequest, folder: Path, sandbox: Sandbox, phases: Phases, keep: Keep) -> GradeResult:
    """Profile one call of a source.

    Args:
        folder: the public part of the assignment.
        keep: gets the tool's own report.
    """
    began = time.monotonic()
    phases.enter(Phase.preparing)
    assignment = load_assignment(folder)
    case = case_of(assignment, request)
    if refused := languages.of(request.language).refused(request.lane):
        return _report(Failure(Verdict.compile_error, refused), None, case, phases, sandbox)
    drawn = _Drawn(assignment, case, request, folder)
    try:
        phases.enter(Phase.profiling)
        found = _asked(drawn, request, sandbox)
        if isinstance(found, Failure):
            return _report(found, None, case, phases, sandbox)
        phases.enter(Phase.reporting)
        made = dataclasses.replace(_read(found, drawn, request, keep), seconds=time.monotonic() - began)
        reported = _report(None, made, case, phases, sandbox)
        asked = run_requirements.evaluate(assignment, request.lane, made)
        return dataclasses.replace(reported, requirements=asked)
    finally:
        drawn.close()


class _Drawn:
    """One call's inputs in memory of their own, and room for what comes back.

    Attributes:
        files: descriptors of fixed size, in the order of `FILES`.
    """

    def __init__(self, assignment: Assignment, case: Case, request: GradeRequest, folder: Path) -> None:
        where = devices.of(request.lane).where
        made = load_problem(assignment, folder).part(case).inputs(case, seeds.fresh_seed(), where)
        self.assignment = assignment = assignment.part(case)
        self.case = case
        inputs = stored_inputs(assignment, case, {name: tensor.cpu() for name, tensor in made.items()})
        self._open = ExitStack()
        images = dict(zip((spec.name for spec, _ in inputs.layout), inputs.images, strict=True))
        layouts = {
            spec.name: spec for spec, _ in (*inputs.layout, *place_tensors(assignment.outputs, assignment, case))
        }
        self.scalars = inputs.drawn | integers_of(assignment, case, {name: one.stride for name, one in layouts.items()})
        self.tensors = tuple(layouts[name] for name in arguments_of(assignment) if name in layouts)
        self.inputs = [self._filled(spec.name, images[spec.name]) for spec in self.tensors if not spec.writable]
        self.files = {name: self._room(name, most) for name, most in FILES.items()}

    def _filled(self, name: str, image: torch.Tensor) -> int:
        descriptor = self._room(name, image.numel())
        view = memoryview(image.numpy()).cast("B")  # type: ignore[arg-type]  # it is one
        done = 0
        while done < len(view):
            done += os.pwrite(descriptor, view[done : done + 2**30], done)
        return descriptor

    def _room(self, name: str, size: int) -> int:
        descriptor = memfd.of_fixed_size(name, size)
        self._open.callback(os.close, descriptor)
        return descriptor

    def close(self) -> None:
        """Let it all go."""
        self._open.close()


def _asked(drawn: _Drawn, request: GradeRequest, sandbox: Sandbox) -> Profiled | Failure:
    """What the runner that profiles says."""
    text = source_of(request)
    ask = Ask(
        filename=request.filename, language=request.language, lane=request.lane, entry=drawn.assignment.entry,
        arguments=arguments_of(drawn.assignment), signatures=drawn.assignment.signatures(request.lane),
        source_bytes=len(text), tensors=drawn.tensors, scalars=drawn.scalars, budget_s=BUDGET_S,
        adapter=drawn.assignment.adapter,
    )  # fmt: skip
    runner = sandbox.start(LIMITS, request.language, request.lane, side=Side.untimed, purpose=Purpose.profile)
    source = memfd.of_bytes("source", text)
    try:
        send(runner, ask, [source, *drawn.inputs, *drawn.files.values()])
        answer = _understood(packet_of(runner, Wait(runner, BUDGET_S + _GRACE_S), doing="profiling"))
    except CompilerExitedError as error:
        return Failure(Verdict.time_limit, str(error))
    finally:
        os.close(source)
        runner.close()
    if isinstance(answer, Raised):
        return from_raised(answer, request.source, loading=answer.stage in {"load", "entry"})
    if len(answer.sizes) != len(FILES):
        return Failure(Verdict.rule_violation, "The profiler's process gave an unexpected answer.")
    return answer


def _understood(packet: bytes) -> Profiled | Raised:
    try:
        return decode(packet, Profiled)
    except ContractError:
        return understood(packet, Raised)


def _read(found: Profiled, drawn: _Drawn, request: GradeRequest, keep: Keep) -> Profile:
    data = {
        name: os.pread(drawn.files[name], size, 0) if 0 < size <= most else b""
        for (name, most), size in zip(FILES.items(), found.sizes, strict=True)
    }
    missing = {clean(name, _NAME): clean(why, _TEXT) for name, why in found.problems.items()}
    traced = _traced(data["trace"], missing)
    kernels = _kernels(data, traced, request, missing)
    if data["report"]:
        keep(REPORT, data["report"])
    flops, moved = drawn.assignment.cost_of(drawn.case)
    return Profile(
        case=drawn.case.name,
        size=", ".join(f"{name}={value:,}" for name, value in drawn.case.size.items()),
        tool=clean(found.tool, _NAME),
        flops=flops,
        bytes_moved=moved,
        kernels=kernels,
        timeline=_timeline(traced),
        missing=missing,
        report_bytes=min(len(data["report"]), MAX_REPORT_BYTES),
    )


def _traced(data: bytes, missing: dict[str, str]) -> Traced:
    try:
        return codec.loads(Traced, data)
    except ContractError:
        missing.setdefault("trace", "The trace could not be read.")
        return Traced((), (), 0, 0, 0)


def _timeline(traced: Traced) -> Timeline:
    kinds = {kind.value for kind in SpanKind}
    spans = tuple(
        Span(SpanKind(kind), clean(name, _NAME), max(0, start), max(0, end))
        for kind, name, start, end in traced.spans[:MOST_SPANS]
        if kind in kinds
    )
    return Timeline(spans, max(0, traced.call_ns), max(0, min(traced.busy_ns, traced.call_ns)), max(0, traced.left_out))


def _kernels(
    data: Mapping[str, bytes], traced: Traced, request: GradeRequest, missing: dict[str, str]
) -> tuple[ProfiledKernel, ...]:
    texts = {name: data[name].decode("utf-8", "replace") for name in ("raw", "details", "source")}
    total = sum(one.ns for one in traced.kernels) or 1
    launches = ncu.launches(texts["raw"])
    names = [launch.name for launch in launches]
    by_line = ncu.instructions(texts["source"], languages.of(request.language).name_in_code(request.filename))
    hints = ncu.hints(texts["details"])
    if texts["raw"] and not launches:
        missing.setdefault("counters", "The profiler's page of counters could not be read.")
    ran = {one.name: one for one in traced.kernels}
    own, listed, advised = (ncu.matched(names, list(others)) for others in (ran, by_line, hints))
    kernels = []
    for launch in launches:
        for figure, why in launch.missing.items():
            missing.setdefault(figure.value, why)
        one = ran.get(own.get(launch.name, ""), Ran(launch.name, launch.name, 1, 0))
        rows = by_line.get(listed.get(launch.name, ""), [])
        kernels.append(_kernel(launch, one, total, rows, hints.get(advised.get(launch.name, ""), [])))
    if launches and not any(kernel.lines for kernel in kernels):
        missing.setdefault("lines", "The machine code names no line of the file.")
    return tuple(sorted(kernels, key=lambda kernel: -kernel.share))


def _kernel(
    launch: ncu.Launch, ran: Ran, total: int, rows: Iterable[ncu.Instruction], hints: Iterable[Hint]
) -> ProfiledKernel:
    rows = list(rows)
    mix: dict[str, int] = {}
    for row in rows:
        kind = ncu.mix_of(row.opcode).value
        mix[kind] = mix.get(kind, 0) + row.executed
    return ProfiledKernel(
        name=clean(ran.shown, _NAME),
        share=min(1.0, max(0.0, ran.ns / total)),
        calls=max(1, ran.calls),
        figures={figure.value: value for figure, value in launch.figures.items()},
        mix=mix,
        stalls=_stalled(launch.stalls),
        lines=_lines(rows),
        hints=tuple(_cleaned(one) for one in hints),
    )  # fmt: skip


def _cleaned(hint: Hint) -> Hint:
    return dataclasses.replace(hint, rule=clean(hint.rule, _NAME), text=clean(hint.text, _TEXT))


def _lines(rows: Iterable[ncu.Instruction]) -> tuple[LineCost, ...]:
    executed: dict[int, int] = {}
    samples: dict[int, int] = {}
    stalls: dict[int, dict[Stall, int]] = {}
    for row in rows:
        executed[row.line] = executed.get(row.line, 0) + row.executed
        samples[row.line] = samples.get(row.line, 0) + row.samples
        own = stalls.setdefault(row.line, {})
        for reason, count in row.stalls.items():
            own[reason] = own.get(reason, 0) + count
    if set(executed) <= {0}:
        return ()
    most = sorted(executed, key=lambda line: (-samples[line], -executed[line]))[:MOST_LINES]
    return tuple(LineCost(line, executed[line], samples[line], _stalled(stalls[line])) for line in sorted(most))


def _stalled(stalls: Mapping[Stall, int]) -> tuple[StalledFor, ...]:
    found = sorted(((reason, count) for reason, count in stalls.items() if count > 0), key=lambda one: -one[1])
    return tuple(StalledFor(reason, count) for reason, count in found[:MOST_STALLS])


def _report(failed: Failure | None, made: Profile | None, case: Case, phases: Phases, sandbox: Sandbox) -> GradeResult:
    verdict = failed.verdict if failed else Verdict.passed
    message = failed.message if failed else f"One call of the case {case.name} was profiled."
    return GradeResult(
        verdict=verdict,
        explanation=clean(message, _TEXT),
        cases=(
            CaseResult(
                case.name, case.category, case.group, case.visibility, case.ranked, verdict if failed else None,
                clean(message, MAX_LINE) if failed else "It was profiled; its answer was not checked.",
                error=failed.error if failed else None,
            ),
        ),
        error=failed.error if failed else None,
        profile=made,
        phases=phases.times(),
        environment=environment(sandbox, {}),
        promises=tuple(sorted(sandbox.promises)),
    )  # fmt: skip
