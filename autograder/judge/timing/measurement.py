"""The measuring of one attempt, in the order that trust demands.

before the submission is loaded    the reference is called, batches are sized, null and reference alone are measured
while it lives                     pairs in two stages, batches
when its runner is killed          the A/A block; the reference's own batches, if the bound was missed
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Sequence

from autograder.assignment import Case
from autograder.contract import Bound, Lane, Measurement
from autograder.judge.correctness.checker import Checker
from autograder.judge.defences import Defences
from autograder.judge.probes.post_timing_trace import Seen, look
from autograder.judge.protocol.devices import Device
from autograder.judge.protocol.runner_client import Conversation
from autograder.judge.rules import Rules, node_spread
from autograder.judge.timing import validity
from autograder.judge.timing.aa_check import Quiet
from autograder.judge.timing.calibration import Prepared, Preparing
from autograder.judge.timing.estimators import far_slower, measurement
from autograder.judge.timing.floor import floor_us
from autograder.judge.timing.overhead_baseline import NullExchanges
from autograder.judge.timing.paired_timing import Stopwatch, Timed
from autograder.judge.timing.references import Reference


class Measuring:
    """Measures a submission's ranked cases beside one reference.

    Args:
        theirs: the reference's runner.
        known: what was prepared for it in earlier attempts, by case.

    Attributes:
        exclusive_s: how long the device was needed so far.
    """

    def __init__(
        self, checker: Checker, theirs: Conversation, reference: Reference, device: Device, *, defences: Defences,
        known: dict[str, Prepared], exchanges: NullExchanges,
    ) -> None:  # fmt: skip
        self._checker = checker
        self._theirs = theirs
        self._reference = reference
        self._device = device
        self._rules: Rules = device.rules
        self._defences = defences
        self._known = known
        self._exchanges = exchanges
        self.exclusive_s = 0.0

    def prepare(self, cases: Sequence[Case]) -> None:
        """Find out what is not known yet of the ranked cases; no untrusted process may live.

        What others disturbed is found out again for the next submission.
        """
        if not (self._rules.batches and self._defences.batches):
            return
        start = time.monotonic()
        preparing = Preparing(self._checker, self._theirs, self._device, self._rules, self._exchanges)
        for case in cases:
            known = self._known.get(case.name)
            if known is None or not known.quiet:
                self._known[case.name] = preparing.case(case)
        self.exclusive_s += time.monotonic() - start

    def time(self, ours: Conversation, case: Case, pairs: int) -> Timed:
        """Time one case while the submission lives."""
        start = time.monotonic()
        prepared = self._known.get(case.name) if self._defences.batches else None
        if prepared and not self._defences.copies:
            prepared = dataclasses.replace(prepared, copy_us=math.inf)
        watch = Stopwatch(
            self._checker, ours, self._theirs, reference=self._reference, device=self._device, rules=self._rules
        )
        timed = watch.case(case, pairs, prepared)
        self.exclusive_s += time.monotonic() - start
        return timed

    def look(self, ours: Conversation, timed: Sequence[Timed]) -> Seen | None:
        """See whose work was timed; not in cases in which it is too slow to be a library's."""
        clock, far = self._device.clock, self._rules.far
        wanted = [one for one in timed if not far_slower(one.pairs, clock, far)]
        if not (wanted and self._rules.looks and self._defences.looks):
            return None
        start = time.monotonic()
        seen = look(self._checker, ours, wanted, traces=self._rules.traces)
        self.exclusive_s += time.monotonic() - start
        return seen

    def conclude(self, timed: Timed, lane: Lane, asked: validity.Asked) -> Measurement:
        """What the samples of one case say, when the submission's runner is gone."""
        start = time.monotonic()
        found = measurement(self._checker.assignment, timed.case, timed.pairs, self._device.clock)
        quiet = Quiet(self._checker, self._theirs, self._device, self._rules)
        controls = self._rules.control and self._defences.control
        found = dataclasses.replace(
            found,
            stages=timed.stages,
            control=quiet.control(timed, node_spread()) if controls else None,
            floor_us=floor_us(self._checker.assignment, timed.case, lane) if self._defences.floor else 0.0,
        )
        if timed.batches and timed.prepared:
            made = self._bound(found, timed, timed.prepared, quiet)
            found = dataclasses.replace(found, bound=dataclasses.replace(made, dropped=timed.dropped))
        self.exclusive_s += time.monotonic() - start
        found = validity.standing(found, asked, self._rules)
        disturbed = timed.prepared is not None and not timed.prepared.quiet
        return validity.disturbed(found, asked) if disturbed else found

    def _bound(self, found: Measurement, timed: Timed, prepared: Prepared, quiet: Quiet) -> Bound:
        """The bound; where it was missed, by what the reference shows now, when nobody is left who could slow it.

        Not for a slow submission's fewer calls: in as few of the reference's the exchange would be what is seen.
        """
        taken = validity.Batches(prepared.calls, prepared.null_us, timed.batches, prepared.alone)
        made = validity.bound(validity.scored_us(found), taken, prepared.limit)
        if made.bounded or not prepared.alone:
            return made
        taken = dataclasses.replace(taken, theirs=quiet.batches(timed, prepared))
        alone_us = found.control.reference_us if found.control else found.reference_us
        return validity.bound(validity.scored_us(found), taken, validity.widened(alone_us, taken, self._rules))
