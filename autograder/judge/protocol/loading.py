"""How a source is loaded into a runner: the limits that it gets, and the message."""

from __future__ import annotations

from collections.abc import Callable

from autograder.assignment import Assignment, Limits
from autograder.contract import Lane, Language
from autograder.judge.protocol.failure import Failure
from autograder.judge.protocol.runner_client import RunnerClient
from autograder.protocol import Function, Load
from autograder.sandbox import RunnerLimits

Begin = Callable[[], RunnerClient | Failure]
"""Waits for a runner that has been started, and loads the submission into it."""

GPU_HOST_BYTES = 6 * 2**30
"""What a CUDA context and its libraries may take of the host's memory, beside what the manifest allows."""


def limits_of(assignment: Assignment, lane: Lane) -> RunnerLimits:
    """The manifest's limits in the sandbox's units."""
    return limits_on(lane, assignment.limits)


def limits_on(lane: Lane, limits: Limits) -> RunnerLimits:
    """The same of limits that no manifest has named yet."""
    return RunnerLimits(
        memory_bytes=limits.memory_mib * 2**20 + (0 if lane is Lane.cpu else GPU_HOST_BYTES),
        processes=limits.processes,
        output_bytes=limits.output_kib * 2**10,
        tmp_bytes=limits.tmp_mib * 2**20,
    )


def load_of(
    assignment: Assignment,
    language: Language,
    source: str,
    filename: str,
    *,
    lane: Lane = Lane.cpu,
    noop_replay: bool = False,
) -> Load:
    """The message that loads a source as a submission to `assignment`."""
    functions = tuple(
        Function(part.entry, tuple(argument.name for argument in part.arguments), part.signatures(lane))
        for part in assignment.parts
    )
    first = functions[0]
    return Load(
        # Some editors begin a UTF-8 file with a byte order mark; compilers pass over it in a file, not in a string.
        source=source.removeprefix("\ufeff"),
        filename=filename,
        language=language,
        entry=first.name if assignment.entry else "",
        arguments=first.arguments if assignment.entry else (),
        ghost=noop_replay,
        signatures=first.signatures if assignment.entry else (),
        functions=functions if assignment.functions else (),
        adapter=assignment.adapter,
    )
