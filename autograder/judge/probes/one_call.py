"""One call of a public case, handed to a runner of its own that looks at it with a tool.

Only a public case, so that what is shown tells no hidden size. The answer is not compared. All that comes back is a
claim of the submission's own processes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import torch

from autograder import languages
from autograder.assignment import Assignment, Case, load_assignment
from autograder.contract import CaseResult, GradeRequest, GradeResult, Phase, Verdict
from autograder.errors import ContractError
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
from autograder.judge.protocol import devices, memfd
from autograder.judge.protocol.batch_inputs import place_tensors, stored_inputs
from autograder.judge.protocol.failure import MAX_LINE, Failure, clean, from_raised
from autograder.judge.protocol.own_time import Wait
from autograder.profiling.asking import BUDGET_S, FILES, Answer, Ask, logs_of
from autograder.protocol import Raised
from autograder.sandbox import Purpose, RunnerLimits, Sandbox, Side
from autograder.sanitizer import Check
from autograder.wire_format import decode

LIMITS = RunnerLimits(memory_bytes=24 * 2**30, processes=512, output_bytes=2**20, tmp_bytes=8 * 2**30)
"""The profiler keeps a copy of the device's memory to run a kernel several times."""
MOST_NAME = 200
MOST_TEXT = 1200
_GRACE_S = 10.0


@dataclass(frozen=True)
class Found:
    """What came back.

    Attributes:
        files: empty where there is none.
        problems: why something is not there, by what is not.
        tool: with its version; `""` where there is none.
        seconds: from the start of the runner to its answer.
    """

    files: dict[str, bytes]
    problems: dict[str, str]
    tool: str
    seconds: float


class OneCall:
    """One call's inputs in memory of their own, and room for what comes back.

    Attributes:
        files: descriptors of fixed size, in the order of what comes back.
    """

    def __init__(
        self, assignment: Assignment, case: Case, request: GradeRequest, folder: Path, *, sanitize: Sequence[Check] = ()
    ) -> None:
        """Draw them.

        Args:
            folder: the public part of the assignment.
            sanitize: checks of the sanitizer, which then looks at the call, not tracer and profiler.
        """
        self._sanitize = tuple(sanitize)
        self._most = logs_of(sanitize) or FILES
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
        self.files = {name: self._room(name, most) for name, most in self._most.items()}

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

    def ask(self, request: GradeRequest, sandbox: Sandbox) -> Found | Failure:
        """What the runner that looks at it finds."""
        began = time.monotonic()
        text = source_of(request)
        ask = Ask(
            filename=request.filename, language=request.language, lane=request.lane, entry=self.assignment.entry,
            arguments=arguments_of(self.assignment), signatures=self.assignment.signatures(request.lane),
            source_bytes=len(text), tensors=self.tensors, scalars=self.scalars, budget_s=BUDGET_S,
            adapter=self.assignment.adapter, sanitize=self._sanitize,
        )  # fmt: skip
        runner = sandbox.start(LIMITS, request.language, request.lane, side=Side.untimed, purpose=Purpose.profile)
        source = memfd.of_bytes("source", text)
        doing = "sanitizing" if self._sanitize else "profiling"
        try:
            send(runner, ask, [source, *self.inputs, *self.files.values()])
            answer = _understood(packet_of(runner, Wait(runner, BUDGET_S + _GRACE_S), doing=doing))
        except CompilerExitedError as error:
            return Failure(Verdict.time_limit, str(error))
        finally:
            os.close(source)
            runner.close()
        if isinstance(answer, Raised):
            return from_raised(answer, request.source, loading=answer.stage in {"load", "entry"})
        if len(answer.sizes) != len(self._most):
            return Failure(Verdict.rule_violation, "The process that looked at the call gave an unexpected answer.")
        files = {
            name: os.pread(self.files[name], size, 0) if 0 < size <= most else b""
            for (name, most), size in zip(self._most.items(), answer.sizes, strict=True)
        }
        problems = {clean(name, MOST_NAME): clean(why, MOST_TEXT) for name, why in answer.problems.items()}
        return Found(files, problems, clean(answer.tool, MOST_NAME), time.monotonic() - began)

    @property
    def size(self) -> str:
        """The case's size in words, `n=1,048,576`."""
        return ", ".join(f"{name}={value:,}" for name, value in self.case.size.items())

    def close(self) -> None:
        """Let it all go."""
        self._open.close()


def _understood(packet: bytes) -> Answer | Raised:
    try:
        return decode(packet, Answer)
    except ContractError:
        return understood(packet, Raised)


@dataclass(frozen=True)
class Way:
    """A way to look at a call.

    Attributes:
        done: what is done with the call, a participle.
        choose: the case.
        read: puts what was found into a result.
        sanitize: checks of the sanitizer, which then looks at the call, not tracer and profiler.
    """

    done: str
    choose: Callable[[Assignment, GradeRequest], Case]
    read: Callable[[OneCall, Found, GradeResult], GradeResult]
    sanitize: tuple[Check, ...] = ()


def look(request: GradeRequest, folder: Path, sandbox: Sandbox, phases: Phases, way: Way) -> GradeResult:
    """Draw one call, have it looked at, and report.

    Args:
        folder: the public part of the assignment.
    """
    phases.enter(Phase.preparing)
    assignment = load_assignment(folder)
    case = way.choose(assignment, request)
    if refused := languages.of(request.language).refused(request.lane):
        return _reported(Failure(Verdict.compile_error, refused), way.done, case, phases, sandbox)
    call = OneCall(assignment, case, request, folder, sanitize=way.sanitize)
    try:
        phases.enter(Phase.profiling)
        found = call.ask(request, sandbox)
        if isinstance(found, Failure):
            return _reported(found, way.done, case, phases, sandbox)
        phases.enter(Phase.reporting)
        return way.read(call, found, _reported(None, way.done, case, phases, sandbox))
    finally:
        call.close()


def _reported(failed: Failure | None, done: str, case: Case, phases: Phases, sandbox: Sandbox) -> GradeResult:
    """A result without what was found."""
    verdict = failed.verdict if failed else Verdict.passed
    message = failed.message if failed else f"One call of the case {case.name} was {done}."
    return GradeResult(
        verdict=verdict,
        explanation=clean(message, MOST_TEXT),
        cases=(
            CaseResult(
                case.name, case.category, case.group, case.visibility, case.ranked, verdict if failed else None,
                clean(message, MAX_LINE) if failed else f"It was {done}; its answer was not checked.",
                error=failed.error if failed else None,
            ),
        ),
        error=failed.error if failed else None,
        phases=phases.times(),
        environment=environment(sandbox, {}),
        promises=tuple(sorted(sandbox.promises)),
    )  # fmt: skip
