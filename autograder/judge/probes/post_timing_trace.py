"""Look at whose work it is once more, right after the timed calls and in the runner that made them.

The looks of a check (`look`) see other runners, which have made few calls: who calls a library from the tenth call on,
or where nothing is checked but only timed, has shown them work of their own. Here the same process is asked, with what
it has been timed on. Like those it is a claim of the runner's, and what comes of it is a finding, never a verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Protocol

from autograder.assignment import Case
from autograder.contract import DeviceKernel
from autograder.judge.correctness.checker import NO_MEMORY, CallResult, Checker
from autograder.judge.probes.work_findings import WorkRecord, device_kernels
from autograder.judge.protocol.runner_client import CallReply, RunnerClient
from autograder.judge.protocol.tensors import Tensors


class TimedCase(Protocol):
    """A ranked case whose calls were timed, and what the reference was called with last and made of it."""

    @property
    def case(self) -> Case:
        """Which."""

    @property
    def inputs(self) -> Tensors | None:
        """Inputs whose answer is known."""

    @property
    def expected(self) -> Tensors | None:
        """The answer."""


@dataclass
class KernelTrace:
    """What the calls after the timed ones showed.

    Attributes:
        record: what was launched and called in those that were recorded.
        traced: those that were traced, by case.
        failed: why there are no more of them; `""` if all were made, and right.
    """

    record: WorkRecord = field(default_factory=WorkRecord)
    traced: dict[str, CallReply] = field(default_factory=dict)
    failed: str = ""

    @property
    def kernels(self) -> tuple[DeviceKernel, ...]:
        """What ran on the device, most of its time first."""
        return device_kernels(self.record, self.traced.values())


def trace_calls(
    checker: Checker, runner: RunnerClient, timed: Sequence[TimedCase], *, traces: bool = True
) -> KernelTrace:
    """One call of every case that is recorded and, where something can be, one that is traced.

    On inputs whose answer is known, where the timed calls left some.

    Not before all cases are timed: what records and traces may leave something behind that costs time.
    """
    seen = KernelTrace()
    for one, trace in product(timed, (False, True) if traces else (False,)):
        checked = _called(checker, runner, one, trace=trace)
        if not trace:
            seen.record.add(checked)
        if not checked.passed:
            # Its runner may be gone: nothing more is asked of it.
            seen.failed = f"{one.case.name}: {checked.message}"
            break
        if trace and checked.finished:
            seen.traced[one.case.name] = checked.finished
    return seen


def _called(checker: Checker, runner: RunnerClient, timed: TimedCase, *, trace: bool) -> CallResult:
    """As it was timed, but for what looks on."""
    inputs = timed.inputs or checker.draw(timed.case)
    try:
        taken = checker.call_unverified(runner, timed.case, inputs, record=not trace, trace=trace)
        return taken if isinstance(taken, CallResult) else checker.verify(taken, timed.expected, suspect=runner)
    except NO_MEMORY as error:
        return checker.no_memory(runner, 0, error)
