"""What is found out about a ranked case before a submission is loaded: a batch's size, the null, the reference alone.

It follows from the reference, the device and the case alone, and no untrusted process lives: so it is kept for as long
as the reference's runner is.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from autograder.assignment import Assignment, Case
from autograder.contract import Batch
from autograder.errors import HarnessError
from autograder.judge.correctness.checker import Checker
from autograder.judge.protocol.batch_buffer import bytes_of, max_bytes_held
from autograder.judge.protocol.devices import Device
from autograder.judge.protocol.runner_client import RunnerClient
from autograder.judge.rules import Rules
from autograder.judge.timing import validity
from autograder.judge.timing.overhead_baseline import NullExchanges
from autograder.judge.timing.paired_calls import PairedCalls

WARM_CALLS = 6
"""Of the reference, of which the fastest says how many fit a batch; the first compiles and says nothing."""

MAX_BATCH_WORK_FACTOR = 10
"""Of a batch's usual work: longer calls are few in it, as an exchange is small beside each of them."""

STEP = 4
"""The number of calls is a multiple of it, so that a null serves again although the reference's time varies."""


@dataclass(frozen=True)
class CaseCalibration:
    """One ranked case on one device.

    Attributes:
        calls: of a batch.
        calls_per_buffer: of them share a buffer.
        null_us: the shortest exchanges.
        copy_us: what the copies of the outputs take, of which no more is taken off a batch.
        reference_batches: batches of the reference.
        tolerated_excess: the excess over the event clock that is allowed to a submission, by what the reference shows.
        reference_us: of one call of the reference by the event clock; the median.
        undisturbed: false if others disturbed the node, so that neither null nor copies are known.
    """

    calls: int
    calls_per_buffer: int
    null_us: tuple[float, ...]
    copy_us: float
    reference_batches: tuple[Batch, ...]
    tolerated_excess: float
    reference_us: float
    undisturbed: bool = True

    def fitting(self, call_us: float, rules: Rules) -> CaseCalibration:
        """The same for a submission whose call takes so long: where a batch would take more than a second, fewer calls.

        They take half a second at least, beside which an exchange is nothing, disturbed or not: neither null nor copies
        are taken off, and nothing is compared with the reference's batches, which have another number of calls.
        """
        if self.calls * call_us <= rules.max_batch_us:
            return self
        calls = max(1, int(rules.max_batch_us / call_us))
        calls_per_buffer = min(self.calls_per_buffer, calls)
        calls -= calls % calls_per_buffer
        return replace(
            self,
            calls=calls,
            calls_per_buffer=calls_per_buffer,
            null_us=(0.0,),
            copy_us=0.0,
            reference_batches=(),
            undisturbed=True,
        )

    def bound_us(self, batches: Sequence[Batch]) -> float:
        """An upper bound of one call's time: what is left of the shortest batch without the shortest null."""
        return validity.sealed_call_us(batches, self.null_us, self.calls)


class Calibrator:
    """Prepares the cases of one reference."""

    def __init__(
        self, checker: Checker, reference_runner: RunnerClient, device: Device, rules: Rules, exchanges: NullExchanges
    ) -> None:
        self._checker = checker
        self._reference_runner = reference_runner
        self._device = device
        self._rules = rules
        self._exchanges = exchanges

    def case(self, case: Case) -> CaseCalibration:
        """Call the reference, choose the number of calls, measure the null and the reference's batches.

        Raises:
            HarnessError: the reference or the native runner failed.
        """
        paired = PairedCalls(self._checker, case, None, self._reference_runner, self._device)
        times = [finished.event_us for _ in range(WARM_CALLS) if (finished := paired.reference().finished)]
        if paired.inputs is None:
            raise HarnessError("the reference was not called")
        assignment = self._checker.assignment
        calls, calls_per_buffer = calls_of(assignment, case, min(times), self._device.memory_bytes, self._rules)
        null = self._exchanges.taken(assignment, case, paired.inputs, calls, calls_per_buffer)
        reference_batches = paired.reference_batches(
            calls, calls_per_buffer, self._rules.reference_batches, moved=False, max_copy_us=null.copy_us
        )
        call_us = statistics.median(times[1:])
        tolerated_excess = validity.widened(
            call_us, validity.Batches(calls, null.us, (), reference_batches), self._rules
        )
        return CaseCalibration(
            calls,
            calls_per_buffer,
            null.us,
            null.copy_us,
            reference_batches,
            tolerated_excess,
            call_us,
            null.undisturbed,
        )


def calls_of(assignment: Assignment, case: Case, call_us: float, memory_bytes: int, rules: Rules) -> tuple[int, int]:
    """How many calls a batch has: enough work, not too many, and room for all of it; and how many share a buffer."""
    inputs, outputs = bytes_of(assignment, case)
    work_us = rules.work_us(call_us, rules.light_batch_bytes / (inputs + outputs) * call_us)
    wanted = STEP * math.ceil(work_us / max(call_us, 0.1) / STEP)
    if rules.min_calls * call_us <= MAX_BATCH_WORK_FACTOR * rules.batch_work_us:
        wanted = max(rules.min_calls, wanted)
    calls_per_buffer = max(1, int(rules.max_buffer_work_us / max(call_us, 0.1)))
    calls = min(wanted, rules.max_calls, rules.max_buffers * calls_per_buffer)
    room = rules.memory_share * memory_bytes if memory_bytes else math.inf
    while True:
        calls_per_buffer = min(calls_per_buffer, calls)
        calls -= calls % calls_per_buffer
        if calls == 1 or max_bytes_held(inputs, outputs, calls, calls_per_buffer) <= room:
            return calls, calls_per_buffer
        calls -= 1
