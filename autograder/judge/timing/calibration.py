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
from autograder.judge.protocol.batch_buffer import bytes_of, most_held
from autograder.judge.protocol.devices import Device
from autograder.judge.protocol.runner_client import Conversation
from autograder.judge.rules import Rules
from autograder.judge.timing import validity
from autograder.judge.timing.overhead_baseline import NullExchanges
from autograder.judge.timing.paired_calls import Turns

WARM_CALLS = 6
"""Of the reference, of which the fastest says how many fit a batch; the first compiles and says nothing."""

MOST_BATCHES_WORTH = 10
"""Of a batch's usual work: longer calls are few in it, as an exchange is small beside each of them."""

STEP = 4
"""The number of calls is a multiple of it, so that a null serves again although the reference's time varies."""


@dataclass(frozen=True)
class Prepared:
    """One ranked case on one device.

    Attributes:
        calls: of a batch.
        together: of them share a slab.
        null_us: the shortest exchanges.
        copy_us: what the copies of the outputs take, of which no more is taken off a batch.
        alone: batches of the reference.
        limit: the excess over the event clock that is allowed to a submission, by what the reference shows.
        reference_us: of one call of the reference by the event clock; the median.
        quiet: false if others disturbed the node, so that neither null nor copies are known.
    """

    calls: int
    together: int
    null_us: tuple[float, ...]
    copy_us: float
    alone: tuple[Batch, ...]
    limit: float
    reference_us: float
    quiet: bool = True

    def fitting(self, call_us: float, rules: Rules) -> Prepared:
        """The same for a submission whose call takes so long: where a batch would take more than a second, fewer calls.

        They take half a second at least, beside which an exchange is nothing, disturbed or not: neither null nor copies
        are taken off, and nothing is compared with the reference's batches, which have another number of calls.
        """
        if self.calls * call_us <= rules.longest_us:
            return self
        calls = max(1, int(rules.longest_us / call_us))
        together = min(self.together, calls)
        calls -= calls % together
        return replace(self, calls=calls, together=together, null_us=(0.0,), copy_us=0.0, alone=(), quiet=True)

    def bound_us(self, batches: Sequence[Batch]) -> float:
        """An upper bound of one call's time: what is left of the shortest batch without the shortest null."""
        return validity.sealed_call_us(batches, self.null_us, self.calls)


class Preparing:
    """Prepares the cases of one reference."""

    def __init__(
        self, checker: Checker, theirs: Conversation, device: Device, rules: Rules, exchanges: NullExchanges
    ) -> None:
        self._checker = checker
        self._theirs = theirs
        self._device = device
        self._rules = rules
        self._exchanges = exchanges

    def case(self, case: Case) -> Prepared:
        """Call the reference, choose the number of calls, measure the null and the reference's batches.

        Raises:
            HarnessError: the reference or the native runner failed.
        """
        turns = Turns(self._checker, case, None, self._theirs, self._device)
        times = [finished.event_us for _ in range(WARM_CALLS) if (finished := turns.reference().finished)]
        if turns.inputs is None:
            raise HarnessError("the reference was not called")
        assignment = self._checker.assignment
        calls, together = calls_of(assignment, case, min(times), self._device.memory_bytes, self._rules)
        null = self._exchanges.taken(assignment, case, turns.inputs, calls, together)
        alone = turns.reference_batches(
            calls, together, self._rules.reference_batches, moved=False, most_copy_us=null.copy_us
        )
        call_us = statistics.median(times[1:])
        limit = validity.widened(call_us, validity.Batches(calls, null.us, (), alone), self._rules)
        return Prepared(calls, together, null.us, null.copy_us, alone, limit, call_us, null.quiet)


def calls_of(assignment: Assignment, case: Case, call_us: float, memory_bytes: int, rules: Rules) -> tuple[int, int]:
    """How many calls a batch has: enough work, not too many, and room for all of it; and how many share a slab."""
    inputs, outputs = bytes_of(assignment, case)
    work_us = rules.work_us(call_us, rules.light_bytes / (inputs + outputs) * call_us)
    wanted = STEP * math.ceil(work_us / max(call_us, 0.1) / STEP)
    if rules.least_calls * call_us <= MOST_BATCHES_WORTH * rules.batch_us:
        wanted = max(rules.least_calls, wanted)
    together = max(1, int(rules.together_us / max(call_us, 0.1)))
    calls = min(wanted, rules.most_calls, rules.most_slabs * together)
    room = rules.memory_share * memory_bytes if memory_bytes else math.inf
    while True:
        together = min(together, calls)
        calls -= calls % together
        if calls == 1 or most_held(inputs, outputs, calls, together) <= room:
            return calls, together
        calls -= 1
