"""Check one call, or one case: fresh inputs, a call, and the outputs against the oracle; then the same inputs again."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from autograder.assignment import Assignment, Case
from autograder.contract import Mismatch, StudentError, Verdict
from autograder.judge import explain, seeds
from autograder.judge.buffers import Buffers, SharedTensor, Snapshot, strides_of
from autograder.judge.compare import Comparison, compare, same_bits
from autograder.judge.conversation import Conversation, Finished
from autograder.judge.defences import Defences
from autograder.judge.devices import Device
from autograder.judge.failure import Failure
from autograder.judge.host import HOST
from autograder.judge.problem import Problem, Tensors, Truth


@dataclass(frozen=True)
class Checked:
    """What a call, or a case, showed.

    Attributes:
        ended: the runner is gone, or must go.
        finished: the call itself, where it came back, without its snapshots: those of a large case are not kept.
        outputs: private copies, by name, of the calls of a case that has to agree with itself bit for bit.
        seconds: from the reveal to the end of the comparison.
    """

    verdict: Verdict
    message: str
    mismatch: Mismatch | None = None
    error: StudentError | None = None
    ended: bool = False
    finished: Finished | None = None
    outputs: Tensors = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether nothing was found."""
        return self.verdict is Verdict.passed


class Checker:
    """Checks calls of one assignment."""

    def __init__(self, assignment: Assignment, problem: Problem, defences: Defences, device: Device = HOST) -> None:
        self._assignment = assignment
        self._problem = problem
        self._defences = defences
        self._device = device
        self._buffers = Buffers(assignment, defences, device)

    def case(self, runner: Conversation, case: Case) -> Checked:
        """Call twice on the same fresh inputs, in fresh memory: right, and right again in the same way."""
        inputs = self._inputs(case)
        first = self._call(runner, case, inputs)
        if not first.passed or not self._defences.second_call:
            return first
        second = self._call(runner, case, inputs)
        return self._repeated(first, second)

    def call(self, runner: Conversation, case: Case) -> Checked:
        """One checked and timed call on inputs that were never seen; nothing of its memory is kept."""
        return dataclasses.replace(self._call(runner, case, self._inputs(case), record=False), outputs={})

    def close(self) -> None:
        """Let go of memory that was kept."""
        self._buffers.close()

    def _inputs(self, case: Case) -> Tensors:
        seed = seeds.fresh_seed() if self._defences.fresh_inputs else seeds.KNOWN_SEED
        return self._problem.inputs(case, seed, self._device.where)

    def _call(self, runner: Conversation, case: Case, inputs: Tensors, *, record: bool = True) -> Checked:
        tensors = self._buffers.make(case, inputs)
        start = time.monotonic()
        try:
            called = runner.call(tensors, self._scalars(case, inputs, tensors), record=record)
            if isinstance(called, Failure):
                return Checked(called.verdict, called.message, error=called.error, ended=called.ended)
            checked = self._verified(case, inputs, called)
        finally:
            self._buffers.release(tensors)
        seconds = time.monotonic() - start
        return dataclasses.replace(checked, finished=dataclasses.replace(called, snapshots=()), seconds=seconds)

    def _scalars(self, case: Case, inputs: Tensors, tensors: Sequence[SharedTensor]) -> dict[str, int | float]:
        """Sizes, strides and what was drawn for this call, by argument."""
        strides = strides_of(tensors)
        scalars: dict[str, int | float] = {
            argument.name: inputs[argument.name].item() for argument in self._assignment.scalars
        }
        for argument in self._assignment.arguments:
            if argument.role == "size":
                scalars[argument.name] = case.size[argument.name]
            elif argument.role == "stride":
                scalars[argument.name] = strides[argument.of][argument.dim]
        return scalars

    def _verified(self, case: Case, inputs: Tensors, called: Finished) -> Checked:
        """Guards and inputs first: a right output does not excuse them."""
        by_name = {snapshot.source.spec.name: snapshot for snapshot in called.snapshots}
        outputs = {argument.name: by_name[argument.name].values() for argument in self._assignment.outputs}
        if self._defences.private_inputs:
            trusted = inputs
        else:
            shared = {argument.name: by_name[argument.name].values() for argument in self._assignment.inputs}
            trusted = inputs | shared
        broken = self._broken_rules(called)
        return broken or self._compared(case, trusted, outputs, by_name)

    def _broken_rules(self, called: Finished) -> Checked | None:
        """Guards that changed; then inputs that did, in shared memory or, as the runner says, in its own view."""
        for snapshot in called.snapshots:
            if self._defences.guard_bands and any(changed := snapshot.overflow()):
                return _overflow(snapshot.source.spec.name, *changed)
        for snapshot in called.snapshots:
            spec = snapshot.source.spec
            rewritten = not spec.writable and (spec.name in called.written or snapshot.rewritten())
            if self._defences.private_inputs and rewritten:
                message = f"The input `{spec.name}` was written to. Inputs are read only; write into the outputs."
                return Checked(Verdict.rule_violation, message)
        return None

    def _compared(self, case: Case, inputs: Tensors, outputs: Tensors, snapshots: dict[str, Snapshot]) -> Checked:
        truth = self._problem.truth(case, inputs)
        also_wrong = self._problem.wrong_by_check(inputs, outputs)
        for name, got in outputs.items():
            untouched = snapshots[name].untouched()
            comparison = self._comparison(name, got, truth, untouched)
            if name in also_wrong:
                comparison = Comparison(comparison.wrong | also_wrong[name], comparison.allowed)
            if not comparison.right:
                found = explain.mismatch(name, got, truth.expected[name], comparison, untouched)
                message = f"{explain.sentence(found)} {explain.HINTS[found.pattern]}"
                return Checked(Verdict.wrong_answer, message, mismatch=found, outputs=outputs)
        return Checked(Verdict.passed, "Passed.", outputs=outputs)

    def _comparison(self, name: str, got: torch.Tensor, truth: Truth, untouched: torch.Tensor) -> Comparison:
        """By the output's tolerance; and poison does not pass for a NaN that is expected."""
        found = compare(got, truth.expected[name], truth.scale[name], self._assignment.tolerance[name])
        stale = untouched & got.isnan() if got.dtype.is_floating_point else torch.zeros_like(untouched)
        return Comparison(found.wrong | stale, found.allowed)

    def _repeated(self, first: Checked, second: Checked) -> Checked:
        """The case's result after its second call."""
        if second.verdict is Verdict.wrong_answer:
            message = f"The first call was right, the second on the same inputs was not. {second.message}"
            return dataclasses.replace(second, verdict=Verdict.nondeterministic, message=message)
        if not second.passed or not self._assignment.bitwise:
            return dataclasses.replace(second, seconds=first.seconds)
        for name, got in second.outputs.items():
            differing = int((~same_bits(got, first.outputs[name])).sum())
            if differing:
                message = (
                    f"Two calls on the same inputs gave different outputs: {differing} of {got.numel()} elements of "
                    f"`{name}`. Look for atomics, races, or values that are kept between calls."
                )
                return dataclasses.replace(second, verdict=Verdict.nondeterministic, message=message)
        return dataclasses.replace(second, seconds=first.seconds)


def _overflow(name: str, before: int, after: int, between: int) -> Checked:
    """What was written around a tensor, most telling first."""
    places = ((after, "after its end"), (before, "before its start"), (between, "between its rows"))
    count, where = next(place for place in places if place[0])
    elements = "element was" if count == 1 else "elements were"
    message = f"{count} {elements} written outside `{name}`, {where}. Mask the stores of the last block."
    return Checked(Verdict.illegal_access, message)
