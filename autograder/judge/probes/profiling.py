"""A profile of one call: inputs are drawn, a runner of its own traces and counts, and what it leaves is read.

Only a public case is profiled, so that counters tell no hidden size. The answer is not compared: who wants to know why
a wrong kernel is slow may. All that comes back is a claim of the submission's own processes, and is taken no further
than numbers and cleaned words in `autograder.profiles`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from autograder import codec, languages
from autograder.assignment import Assignment, Case
from autograder.contract import GradeRequest, GradeResult
from autograder.errors import ContractError, HarnessError
from autograder.judge.phases import Phases
from autograder.judge.probes import run_requirements
from autograder.judge.probes.one_call import MOST_NAME, MOST_TEXT, Found, OneCall, Way, look
from autograder.judge.protocol.failure import clean
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
from autograder.profiling.asking import Ran, Traced
from autograder.sandbox import Sandbox

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

    def read(call: OneCall, found: Found, result: GradeResult) -> GradeResult:
        made = dataclasses.replace(_read(call, found, request, keep), seconds=found.seconds)
        asked = run_requirements.evaluate(call.assignment, request.lane, made)
        return dataclasses.replace(result, profile=made, requirements=asked)

    return look(request, folder, sandbox, phases, Way("profiled", case_of, read))


def _read(call: OneCall, found: Found, request: GradeRequest, keep: Keep) -> Profile:
    missing = dict(found.problems)
    traced = _traced(found.files["trace"], missing)
    kernels = _kernels(found.files, traced, request, missing)
    report = found.files["report"]
    if report:
        keep(REPORT, report)
    flops, moved = call.assignment.cost_of(call.case)
    return Profile(
        case=call.case.name,
        size=call.size,
        tool=found.tool,
        flops=flops,
        bytes_moved=moved,
        kernels=kernels,
        timeline=_timeline(traced),
        missing=missing,
        report_bytes=min(len(report), MAX_REPORT_BYTES),
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
        Span(SpanKind(kind), clean(name, MOST_NAME), max(0, start), max(0, end))
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
        name=clean(ran.shown, MOST_NAME),
        share=min(1.0, max(0.0, ran.ns / total)),
        calls=max(1, ran.calls),
        figures={figure.value: value for figure, value in launch.figures.items()},
        mix=mix,
        stalls=_stalled(launch.stalls),
        lines=_lines(rows),
        hints=tuple(_cleaned(one) for one in hints),
    )  # fmt: skip


def _cleaned(hint: Hint) -> Hint:
    return dataclasses.replace(hint, rule=clean(hint.rule, MOST_NAME), text=clean(hint.text, MOST_TEXT))


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
